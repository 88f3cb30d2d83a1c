"""Model 1 against a plain loop, and the file that a run keeps its table in."""

from __future__ import annotations

import errno
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from random_run import made_up_lines, random_run

from transformer_mt.checkpoint import load_run
from transformer_mt.decoding import lexical_table as module
from transformer_mt.decoding.lexical_table import FILE, LexicalTable, learn, lexical_table
from transformer_mt.errors import CheckpointError, DataError
from transformer_mt.text.tokenizer import Tokenizers

EOS = 3
Pairs = list[tuple[np.ndarray, np.ndarray]]


def _pairs(count: int, seed: int) -> Pairs:
    """Target token 40 + s for source token s, in another order, and token 39 in every target sentence."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        src = [draw.randint(4, 18) for _ in range(draw.randint(1, 6))]
        tgt = [40 + token for token in src] + [39]
        draw.shuffle(tgt)
        pairs.append((np.array([*src, EOS], dtype=np.int32), np.array([*tgt, EOS], dtype=np.int32)))
    return pairs


def _plain_model_1(pairs: Pairs, rounds: int) -> dict[int, dict[int, float]]:
    """The expectation and maximisation steps as the paper's equations 17 and 18 have them."""
    table: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(lambda: 1.0))
    for _ in range(rounds):
        counts: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for src, tgt in pairs:
            words = [0, *src[:-1].tolist()]
            for token in tgt[:-1].tolist():
                total = sum(table[word][token] for word in words)
                for word in words:
                    counts[word][token] += table[word][token] / total
        table = defaultdict(
            dict, {word: {t: c / sum(row.values()) for t, c in row.items()} for word, row in counts.items()}
        )
    return table


def test_the_likeliest_tokens_are_those_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, cut to the size of the table."""
    monkeypatch.setattr(module, "LINKS", 4)
    pairs = _pairs(40, seed=1)
    found = learn(pairs, 23, 71).best
    expected = _plain_model_1(pairs, 5)
    assert found.shape == (23, 4)
    for source in range(4, 19):
        ranked = sorted(expected[source].items(), key=lambda item: (-round(item[1], 12), item[0]))[:4]
        likelihoods = [expected[source][token] for token in found[source].tolist() if token >= 0]
        assert likelihoods == pytest.approx([value for _, value in ranked], abs=1e-9)
    assert (found[[0, 1, 2, 3, 19, 22]] == -1).all()


def test_a_token_of_every_sentence_is_nobodys_translation() -> None:
    """Counting alone would put it first for every source token."""
    table = learn(iter(_pairs(300, seed=2)), 23, 71)
    assert table.best[4:19, 0].tolist() == list(range(44, 59))
    assert table.by_frequency[0] == 39
    assert sorted(table.by_frequency.tolist()) == list(range(71))


def _run(folder: Path) -> tuple[Path, Tokenizers]:
    """A run whose training text is there."""
    folder.mkdir()
    for name, count in (("train", 60), ("valid", 5)):
        for side, seed in (("de", 1), ("en", 4)):
            text = "\n".join(made_up_lines(count, seed)) + "\n"
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")
    model = load_run(random_run(folder / "first")).checkpoint_dir / "tokenizer.model"
    data = {"root": str(folder), "train": "train", "valid": "valid", "src_lang": "de", "tgt_lang": "en"}
    data["max_length_ratio"] = 99.0
    run = random_run(folder / "run", tokenizer={"from": str(model)}, data=data)
    return run, load_run(run).tokenizers


def _equal(one: LexicalTable, other: LexicalTable) -> bool:
    return np.array_equal(one.best, other.best) and np.array_equal(one.by_frequency, other.by_frequency)


def test_a_table_is_learned_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a note; afterwards the training data may go. Damaged files and those of others are named."""
    run, tokenizers = _run(tmp_path / "runs")
    table = lexical_table(run, "best", tokenizers)
    path = run / FILE
    assert f"learning {path} from the training data" in capsys.readouterr().err
    assert (table.best >= 4).any()
    assert [name.name for name in run.iterdir() if "writing" in name.name] == []
    for text in run.parent.glob("train.*"):
        text.unlink()
    for place in (run, load_run(run).checkpoint_dir):
        assert _equal(lexical_table(place, "latest", tokenizers), table)
    assert capsys.readouterr().err == ""
    stranger = load_run(random_run(tmp_path / "stranger", tokenizer_seed=2)).tokenizers
    with pytest.raises(CheckpointError, match="shortlist.safetensors: was learned for another tokenizer"):
        lexical_table(run, "best", stranger)
    whole = path.read_bytes()
    for_nobody = safetensors.numpy.save({"best": table.best, "by_frequency": table.by_frequency})
    for damaged in (whole[:-9], whole[:-9] + b"\x01" + whole[-8:], b"", b"something else", for_nobody):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="is damaged or something else; delete it, and it is learn"):
            lexical_table(run, "best", tokenizers)
    path.unlink()
    with pytest.raises(DataError, match="has to be learned from the training data first, but: .*train"):
        lexical_table(run, "best", tokenizers)


def test_a_table_that_cannot_be_kept_serves_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins a run directory that must not be written to and so cannot be translated with."""
    run, tokenizers = _run(tmp_path / "runs")

    def refused(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(module, "_write", refused)
    table = lexical_table(run, "best", tokenizers)
    assert (table.best >= 4).any()
    assert "cannot be written (Read-only file system); it serves this time" in capsys.readouterr().err
    assert not (run / FILE).exists()


def test_training_text_that_has_changed_is_not_learned_from(tmp_path: Path) -> None:
    """Its vocabulary would be another; a run that learned its own tokenizer shows it."""
    run, tokenizers = _run(tmp_path / "runs")
    data = {"root": str(run.parent), "train": "train", "valid": "valid", "src_lang": "de", "tgt_lang": "en"}
    other = random_run(
        run.parent / "other",
        tokenizer={"type": "bpe", "vocab_size": 330},
        data={**data, "max_length_ratio": 99.0},
    )
    with pytest.raises(
        DataError, match="holds other text than the run was trained on; leave --shortlist out"
    ):
        lexical_table(other, "best", tokenizers)
    assert not (other / FILE).exists()
