"""What prepare did with every line: the same verdicts, line by line, as the prepared data show in sum."""

from __future__ import annotations

from pathlib import Path

from tests.small_pairs import invented, small_recipe
from transformer_mt.data.prepare import prepare
from transformer_mt.data.verdicts import training_text, verdicts
from transformer_mt.text.corpus_check import DUPLICATE, EMPTY, KEPT, LEAK, OUT_OF_PROPORTION, TOO_LONG


def test_every_reason_stands_at_its_line(tmp_path: Path) -> None:
    """Pins verdicts that are shifted, and a reason that prepare has but this has not."""
    pairs = invented(30, 1)
    pairs[3] = ("", "bakas")
    pairs[5] = pairs[4]
    pairs[7] = invented(40, 99)[0]  # a validation pair
    pairs[9] = ("kaba " * 60, "bakas " * 60)
    pairs[11] = ("kaba", "bakas dekas fikas " * 4)
    recipe = small_recipe(tmp_path, pairs)
    recipe = recipe.model_copy(
        update={"data": recipe.data.model_copy(update={"max_length": 50, "max_length_ratio": 1.5})}
    )
    prepared = prepare(recipe, log=lambda message: None)
    codes = verdicts(recipe.data, prepared.tokenizers)
    expected = {3: EMPTY, 5: DUPLICATE, 7: LEAK, 9: TOO_LONG, 11: OUT_OF_PROPORTION}
    assert {line: int(code) for line, code in enumerate(codes) if code != KEPT} == expected
    kept = [pair for pair, code in zip(training_text(recipe.data), codes, strict=True) if code == KEPT]
    decode = prepared.tokenizers.src.decode
    assert [decode(prepared.train.ids(index)[0]) for index in range(len(prepared.train))] == [
        src for src, _ in kept
    ]


def test_several_sources_are_one_text(tmp_path: Path) -> None:
    """Pins a duplicate that is looked for within one source alone."""
    recipe = small_recipe(tmp_path, invented(12, 1))
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"train": ("train", "train")})})
    codes = verdicts(recipe.data, prepare(recipe, log=lambda message: None).tokenizers)
    assert codes.tolist() == [KEPT] * 12 + [DUPLICATE] * 12
