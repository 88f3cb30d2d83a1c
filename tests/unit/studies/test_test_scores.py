"""Scores of a run's test sets: those of its translations, whole and by length, none of them made twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from random_run import MODELS, made_up_lines, random_run

from transformer_mt.checkpoint import load_run
from transformer_mt.config import Recipe
from transformer_mt.decoding.translator import Translator
from transformer_mt.evaluation.buckets import by_length
from transformer_mt.evaluation.scores import score
from transformer_mt.studies.test_scores import TestScores, measure

CPU = torch.device("cpu")
SETS = {"one": 9, "two": 6}


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """A run that was trained on at most 12 tokens, with test sets of 9 and 6 lines.

    References are its own translations, many of them lengthened: random weights get no score otherwise,
    and write characters rather than words.
    """
    data = {"root": str(tmp_path), "train": "train", "valid": "valid", "test": list(SETS)}
    run = random_run(
        tmp_path / "run",
        model=MODELS["lstm"],
        data={**data, "src_lang": "de", "tgt_lang": "zh", "max_length": 12},
        evaluation={"metrics": ["bleu", "chrf"]},
    )
    translator = Translator.load(run, device="cpu")
    for seed, (name, size) in enumerate(SETS.items(), start=30):
        sources = made_up_lines(size, seed=seed)
        outputs = [one.text for one in translator.translate(sources)]
        references = [text + "书本好" * (number % 3) for number, text in enumerate(outputs)]
        for side, texts in (("de", sources), ("zh", references)):
            (tmp_path / f"{name}.{side}").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return load_run(run).recipe


def lines(recipe: Recipe, name: str, side: str) -> list[str]:
    return (Path(str(recipe.data.root)) / f"{name}.{side}").read_text(encoding="utf-8").split("\n")[:-1]


def found(recipe: Recipe, **settings: Any) -> dict[tuple[str, ...], float | None]:
    values = measure(recipe, TestScores.model_validate(settings), CPU)
    return {(one.metric, *map(str, one.at.values())): one.value for one in values}


def bleu(outputs: list[str], references: list[str], rows: list[int]) -> float:
    chosen = [[texts[row] for row in rows] for texts in (outputs, references)]
    return score(chosen[0], [chosen[1]], ("bleu",), "zh")[0].value


def test_scores_are_those_of_the_lines_by_their_tokens(recipe: Recipe) -> None:
    """Pins every set by itself, both together, parts up to 9 and to 18 tokens with eos, and one beyond."""
    values = found(recipe, edges=[0.75, 1.5], relative=True)
    assert len({value for key, value in values.items() if "bleu" in key[0] and value}) > 6
    assert list(values.values()) == list(found(recipe, edges=[9, 18]).values())
    loaded = load_run(recipe.run_dir)
    translator = Translator.load(recipe.run_dir, device="cpu")
    texts: dict[str, list[list[str]]] = {}
    for name in SETS:
        sources, references = lines(recipe, name, "de"), lines(recipe, name, "zh")
        outputs = [one.text for one in translator.translate(sources)]
        texts[name] = [sources, references, outputs]
        for metric in ("bleu", "chrf"):
            assert values[metric, name] == score(outputs, [references], (metric,), "zh")[0].value
    texts["all"] = [a + b for a, b in zip(texts["one"], texts["two"], strict=True)]
    for name, (sources, references, outputs) in texts.items():
        lengths = [len(loaded.tokenizers.src.encode(source)) + 1 for source in sources]
        for label, low, high in (("up to 0.75x", 0, 9), ("0.75x to 1.5x", 9, 18), ("over 1.5x", 18, 99)):
            rows = [row for row, length in enumerate(lengths) if low < length <= high]
            assert rows, "the made-up lines have all lengths"
            if name == "all":
                assert values["pooled_bleu", label] == bleu(outputs, references, rows)
                assert values["pooled_sentences", label] == len(rows)
                first, kept = values["pooled_bleu", "up to 0.75x"], values["bleu_kept", label]
                assert first and kept == bleu(outputs, references, rows) / first
            else:
                assert values["bleu_by_length", name, label] == bleu(outputs, references, rows)


def test_without_edges_the_parts_are_those_of_compare(recipe: Recipe) -> None:
    values = found(recipe)
    sources = [line for name in SETS for line in lines(recipe, name, "de")]
    parts = {label: len(rows) for label, rows in by_length(sources)}
    assert {key[1]: value for key, value in values.items() if key[0] == "pooled_sentences"} == parts


def test_what_is_translated_is_not_translated_again(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins hours of work done twice; a changed text is translated anew."""
    before = found(recipe)
    translated: list[int] = []
    translate = Translator.translate

    def note(self: Translator, texts: list[str]) -> Any:
        translated.append(len(texts))
        return translate(self, texts)

    monkeypatch.setattr(Translator, "translate", note)
    assert found(recipe) == before
    assert translated == []
    (Path(recipe.run_dir).parent / "two.de").write_text("ab\n" * SETS["two"], encoding="utf-8")
    after = found(recipe)
    assert after["bleu", "one"] == before["bleu", "one"] and after["bleu", "two"] != before["bleu", "two"]
    assert translated == [SETS["two"]]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"edges": [3.0, 3.0]}, r"edges: must rise, but are \[3.0, 3.0\]"),
        ({"relative": True}, "relative: is about edges, but there are none"),
        ({"edges": [0.0]}, "greater than 0"),
    ],
)
def test_edges_that_part_nothing_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        TestScores.model_validate(settings)
