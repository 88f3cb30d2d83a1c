"""`prepare` and `train` on corpora that went wrong elsewhere: what is kept, refused, or made anew."""

from __future__ import annotations

import os
import random
import shutil
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli.build_trainer import open_stream
from transformer_mt.cli.main import main
from transformer_mt.data.prepare import prepare
from transformer_mt.recipe import load_recipe

Capture = pytest.CaptureFixture[str]
Pairs = list[tuple[str, str]]

RECIPE = """\
run_dir: {folder}/run
data: {{train: train, valid: valid, src_lang: xx, tgt_lang: yy, max_length: 200, max_length_ratio: 50.0}}
tokenizer: {{type: bpe, vocab_size: 280}}
model: {{d_model: 32, num_heads: 2, d_ff: 48, num_encoder_layers: 1, num_decoder_layers: 1}}
training: {{max_steps: 2, max_tokens: 4096, precision: fp32, warmup_steps: 0, save_every: 1}}
decoding: {{beam_size: 1}}
"""


def invented(count: int, seed: int = 1) -> Pairs:
    """Different pairs of a few letters."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcdefgh", k=3)) for _ in range(40)]
    pairs = [tuple(" ".join(draw.choices(words, k=draw.randint(3, 6))) for _ in "ab") for _ in range(count)]
    assert len(set(pairs)) == count
    return pairs  # type: ignore[return-value]


def write(folder: Path, name: str, pairs: Pairs) -> None:
    for side, suffix in enumerate(("xx", "yy")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8", newline="")


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe of 30 training and 2 validation pairs."""
    monkeypatch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)
    write(tmp_path, "train", invented(30))
    write(tmp_path, "valid", invented(2, seed=2))
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE.format(folder=tmp_path), encoding="utf-8")
    return path


def kept(recipe: Path, *words: str) -> tuple[Pairs, dict[str, Any]]:
    """Pairs that can be trained on, as text, and the report on the training text; by the command."""
    assert main(["prepare", str(recipe), *words]) == 0
    prepared = prepare(load_recipe(recipe, words))
    assert not prepared.is_new
    src, tgt = prepared.tokenizers
    examples = [prepared.train.ids(index) for index in range(len(prepared.train))]
    return [(src.decode(one), tgt.decode(other)) for one, other in examples], prepared.report["train"]


def test_unequal_sides_are_refused_by_every_verb(recipe: Path, capsys: Capture) -> None:
    """B148: 31 lines and 30, swapped, or one side missing: both names, both counts, nothing to train on."""
    folder = recipe.parent
    with (folder / "train.xx").open("a", encoding="utf-8") as stream:
        stream.write("one more\n")
    for verb in ("prepare", "train"):
        for words, counts in [([], ("train.xx has 31", "train.yy has 30")), (_swapped(), ("31", "30"))]:
            assert main([verb, str(recipe), *words]) == 3
            error = capsys.readouterr().err.splitlines()[-1]
            assert all(count in error for count in counts) and "train.xx" in error and "train.yy" in error
    (folder / "valid.yy").unlink()
    assert main(["train", str(recipe)]) == 3
    assert "valid.yy: no such file" in capsys.readouterr().err
    assert not list(folder.glob("prepared/*")) and not (folder / "run" / "checkpoints").exists()


def _swapped() -> list[str]:
    return ["data.src_lang=yy", "data.tgt_lang=xx"]


def test_a_blank_line_on_one_side_drops_its_pair(recipe: Path) -> None:
    """B149: what follows keeps its partner."""
    write(recipe.parent, "train", [("a", "A"), ("", "X"), ("b", ""), ("c", "C"), *invented(30)])
    found, report = kept(recipe)
    assert found == [("a", "A"), ("c", "C"), *invented(30)]
    assert report["dropped"]["empty side"]["count"] == 2


def test_three_pairs_are_trained_on_in_every_epoch(recipe: Path) -> None:
    """B150: far fewer than a batch holds: one update an epoch, each of which changes the weights."""
    write(recipe.parent, "train", invented(3))
    assert main(["train", str(recipe), "tokenizer.vocab_size=270"]) == 0
    first, second = (files.read_checkpoint(files.folder_of(recipe.parent / "run", step)) for step in (1, 2))
    assert [one.scalars["progress"]["epoch"] for one in (first, second)] == [1, 2]
    assert first.scalars["progress"]["tokens"] > 0
    assert all(not first.weights[name].equal(second.weights[name]) for name in first.weights)


def test_a_pair_over_the_budget_is_a_batch_of_its_own(recipe: Path) -> None:
    """B152: 100 and more tokens where a batch has 64: seen once an epoch, alone, as all others are once."""
    long = (" ".join(["abc"] * 100), " ".join(["abc"] * 80))
    write(recipe.parent, "train", [*invented(30), long])
    words = ["training.max_tokens=64"]
    assert len(kept(recipe, *words)[0]) == 31
    asked = load_recipe(recipe, words)
    prepared = prepare(asked)
    assert max(map(len, prepared.train.ids(30))) > 64
    stream = open_stream(asked, prepared)(1, 0)
    batches = stream.take(len(stream.order()))
    assert sorted(chain.from_iterable(batch.indices.tolist() for batch in batches)) == list(range(31))
    assert [30] in [batch.indices.tolist() for batch in batches]
    assert min(batch.num_tokens for batch in batches) > 0
    assert main(["train", str(recipe), *words, "training.update_freq=20"]) == 0


def test_edited_text_of_the_same_size_and_time_is_prepared_anew(recipe: Path) -> None:
    """B153: also another option; what was prepared before stays as it was."""
    before, _ = kept(recipe)
    path = recipe.parent / "train.yy"
    stat, content = path.stat(), path.read_bytes()
    path.write_bytes(content.replace(content[:3], b"hgf", 1))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    after, _ = kept(recipe)
    assert after[1:] == before[1:] and after[0][1] == "hgf" + before[0][1][3:]
    assert len(kept(recipe, "data.max_length=12")[0]) < 30
    path.write_bytes(content)
    assert kept(recipe) == (before, kept(recipe)[1])


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["data.max_length=20"],
        ["data.max_length_ratio=2.0"],
        ["data.max_length=20", "data.max_length_ratio=2.0"],
    ],
)
def test_filters_act_on_pairs(recipe: Path, words: list[str]) -> None:
    """B155: of 1000 pairs with duplicates, empty sides and absurd lengths, what is kept is in its order and
    with its partner, and what is dropped adds up."""
    draw = random.Random(7)
    good = invented(600, seed=3)
    odd = [(src, " ".join([tgt] * 10)) for src, tgt in draw.choices(good, k=100)]
    odd += [("", tgt) for _, tgt in draw.choices(good, k=60)] + [(src, "\u3000") for src, _ in good[:40]]
    pairs = [*good, *odd, *draw.choices(good, k=200)]
    draw.shuffle(pairs)
    write(recipe.parent, "train", pairs)
    found, report = kept(recipe, *words)
    left = iter(pairs)
    assert all(pair in left for pair in found)  # `in` goes on from the last one found
    assert len(set(found)) == len(found) == report["kept"] < 700
    assert all(src and tgt.strip() for src, tgt in found)
    dropped = {reason: finding["count"] for reason, finding in report["dropped"].items()}
    assert sum(dropped.values()) + len(found) == report["read"] == 1000
    assert dropped["empty side"] == 100
    if not words:
        assert set(found) == {pair for pair in pairs if pair[0] and pair[1].strip()}


def test_tabs_and_spaces_are_text(recipe: Path, capsys: Capture) -> None:
    """B156: as two files they are kept; in a table a third column is refused by its line."""
    odd = [("a\tb", "A"), ("c ", "C"), (" d", "D")]
    write(recipe.parent, "train", [*odd, *invented(30)])
    assert kept(recipe)[0] == [*odd, *invented(30)]
    rows = ["\t".join(pair) for pair in [*invented(30), *odd]]
    (recipe.parent / "train.tsv").write_text("\n".join(rows), encoding="utf-8")
    capsys.readouterr()
    assert main(["prepare", str(recipe), "data.train=train.tsv"]) == 3
    assert "train.tsv:31: must be source TAB target, but has 3 columns" in capsys.readouterr().err


def test_vocabularies_that_do_not_fit_are_told_before_training(recipe: Path, capsys: Capture) -> None:
    """B163: three-way tying of two vocabularies; a vocabulary of the source alone, with a Cyrillic target."""
    assert main(["train", str(recipe), "tokenizer.shared=false"]) == 2
    assert "three_way needs one joint vocabulary, but tokenizer.shared is false" in capsys.readouterr().err
    assert not (recipe.parent / "prepared").exists()
    assert main(["prepare", str(recipe)]) == 0
    (folder,) = (recipe.parent / "prepared").iterdir()
    shutil.copy(folder / "tokenizer.model", recipe.parent)
    table = str.maketrans("abcdefgh", "абвгдежз")
    write(recipe.parent, "train", [(src, tgt.translate(table)) for src, tgt in invented(30)])
    capsys.readouterr()
    assert main(["prepare", str(recipe), f"tokenizer.from={recipe.parent / 'tokenizer.model'}"]) == 0
    out, err = capsys.readouterr()
    assert "of the target tokens spell single bytes; the vocabulary does not fit this text" in err
    assert "of the source tokens" not in err and "target tokens, longest" in out
    found, report = kept(recipe)
    assert "".join(tgt for _, tgt in found).translate({ord(" "): None}).isalpha()
    assert report["tgt"]["byte_tokens"] == 0  # a joint vocabulary reads both sides


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", ""])
def test_a_list_of_words_is_no_vocabulary(recipe: Path, capsys: Capture, end: str) -> None:
    """B162: sizes come from the model file alone; a text file in its place is refused, however it ends."""
    path = recipe.parent / "vocab.txt"
    path.write_text("<unk>\nabc\nabc\nxyz" + end, encoding="utf-8", newline="")
    assert main(["train", str(recipe), f"tokenizer.from={path}"]) in (2, 3, 5)
    assert str(path) in capsys.readouterr().err.splitlines()[-1]
    assert main(["train", str(recipe), "training.max_steps=1"]) == 0
    run = ckpt.load_run(recipe.parent / "run")
    assert run.model.output_weight.shape[0] == run.tokenizers.tgt.vocab_size == 280
    assert np.max(prepare(load_recipe(recipe)).train.ids(0)[0]) < 280
