"""`filter` through the command: what stays, what is written about all, and what is refused how."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from tests.small_pairs import invented, small_recipe_file, write_sides
from transformer_mt.cli import filter_corpus
from transformer_mt.cli.main import main

COPY = "das ist ein ganz anderer satz."


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """60 pairs; the third is empty, the fifth a copy, the seventh the same as the sixth."""
    pairs = invented(60, 1)
    pairs[2], pairs[4], pairs[6] = ("", "DABI"), (COPY, COPY), pairs[5]
    return small_recipe_file(tmp_path, pairs)


@pytest.fixture
def by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """No classifier: the answers of the pairs that it would judge are 10, 9, 8, …"""

    def answers(recipe: Any, data: Any, indices: Any, *rest: Any, **more: Any) -> Any:
        return np.arange(10, 10 - len(indices), -1, dtype=np.float32), {"shuffled": 0.9}

    monkeypatch.setattr(filter_corpus, "cross_fitted", answers)


def rows(folder: Path) -> list[list[str]]:
    return [line.split("\t") for line in (folder / "scores.tsv").read_text("utf-8").split("\n")[:-1]]


def sides(folder: Path, name: str) -> list[tuple[str, str]]:
    texts = (
        (folder / f"{name}.{lang}").read_text(encoding="utf-8").split("\n")[:-1] for lang in ("de", "en")
    )
    return list(zip(*texts, strict=True))


@pytest.mark.usefixtures("by_place")
def test_what_stays_and_why_the_rest_does_not(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pins lines in another order, scores beside other lines, and a threshold that is kept itself."""
    assert main(["filter", str(recipe), "--output", str(tmp_path / "out")]) == 0
    found, text = rows(tmp_path / "out"), sides(tmp_path / "text", "train")
    assert [row[0] for row in found] == [str(line) for line in range(1, 61)]
    assert found[0] == ["1", "10.0000", "kept", ""]
    assert found[2] == ["3", "", "dropped", "empty side"]
    assert found[4] == ["5", "", "dropped", "copy"]
    assert found[6] == ["7", "", "dropped", "exact duplicate"]
    assert found[12] == ["13", "1.0000", "kept", ""]
    assert found[13] == ["14", "0.0000", "dropped", "score"]
    kept = [pair for pair, row in zip(text, found, strict=True) if row[2] == "kept"]
    assert sides(tmp_path / "out", "clean") == kept and len(kept) == 10
    told = capsys.readouterr().err
    assert "kept 10 of 60 pairs; dropped: 47 score, 1 empty side, 1 copy, 1 exact duplicate" in told
    assert "warning" not in told
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "clean.de",
        "clean.en",
        "scores.tsv",
    ]


@pytest.mark.usefixtures("by_place")
@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["--threshold", "7.5"], 3),
        (["--keep", "0.5"], 30),
        (["--keep", "1"], 57),
        (["--threshold", "-99"], 57),
    ],
)
def test_how_much_stays(recipe: Path, tmp_path: Path, words: list[str], kept: int) -> None:
    """Pins a share of the judged pairs where one of all is meant; what rules drop never comes back."""
    assert main(["filter", str(recipe), "--output", str(tmp_path / "out"), *words]) == 0
    assert len(sides(tmp_path / "out", "clean")) == kept
    best = [float(row[1]) for row in rows(tmp_path / "out") if row[2] == "kept"]
    assert best == sorted(best, reverse=True)[:kept] and best[0] == 10.0


def test_it_learns_and_says_how_well(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pins the whole road, twice the same, and silence where scores mean nothing."""
    for name in ("one", "two"):
        words = ["--output", str(tmp_path / name), "--updates", "6", "--keep", "0.5"]
        assert main(["filter", str(recipe), *words]) == 0
    assert (tmp_path / "one" / "scores.tsv").read_bytes() == (tmp_path / "two" / "scores.tsv").read_bytes()
    assert len(sides(tmp_path / "one", "clean")) == 30
    told = capsys.readouterr().err
    assert "of made-up targets told from true ones, half by chance: " in told and "% shuffled, " in told
    assert "warning: scores mean little" in told


@pytest.mark.usefixtures("by_place")
def test_where_copies_are_many_they_go_too(tmp_path: Path) -> None:
    """Pins copies that are taken for usual in a text full of them, but where both sides are one language."""
    pairs = invented(40, 1) + [(f"{COPY[:-1]} {word}.",) * 2 for word in "abcdefghijklmnop"]
    recipe = small_recipe_file(tmp_path, pairs)  # type: ignore[arg-type]
    assert main(["filter", str(recipe), "--output", str(tmp_path / "out"), "--keep", "1"]) == 0
    assert [row[3] for row in rows(tmp_path / "out")][40:] == ["copy"] * 16
    (tmp_path / "text" / "train.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
    (tmp_path / "text" / "valid.tsv").write_text("eins\tzwei\n", "utf-8")
    words = ["data.train=train.tsv", "data.valid=valid.tsv", "data.tgt_lang=de", "--keep", "1"]
    assert main(["filter", str(recipe), "--output", str(tmp_path / "same"), *words]) == 0
    assert {row[3] for row in rows(tmp_path / "same")} == {""}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--keep", "0"], "--keep: 0: must be above 0 and at most 1"),
        (["--keep", "much"], "--keep: much: must be above 0 and at most 1"),
        (["--threshold", "nan"], "--threshold: nan: must be a number"),
        (["--updates", "0"], "--updates: 0: must be a whole number from 1 on"),
        (["--output", ""], "is empty; name a file or folder"),
    ],
)
def test_flags_that_mean_nothing(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    """Pins Python's own words for a mistake."""
    with pytest.raises(SystemExit, match="2"):
        main(["filter", str(recipe), "--output", str(tmp_path / "out"), *words])
    assert message in capsys.readouterr().err


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    """Exit code and the one line of the error."""
    code = main(["filter", *map(str, words)])
    errors = [line for line in capsys.readouterr().err.split("\n") if "error: " in line]
    assert len(errors) == 1
    return code, errors[0]


def test_outputs_that_cannot_be(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins files mixed with those of an earlier command, and an hour of work before the refusal."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").touch()
    for there in ("full", "small.yaml"):
        code, error = refused(capsys, recipe, "--output", tmp_path / there)
        assert code == 2 and "exists already; remove it, or name another folder" in error
    code, error = refused(capsys, recipe, "--output", tmp_path / "no" / "out")
    assert code == 2 and "there is no folder" in error
    with monkeypatch.context() as unwritable:
        refuse = Mock(side_effect=PermissionError(13, "Permission denied", str(tmp_path)))
        unwritable.setattr("tempfile.mkdtemp", refuse)
        unwritable.setattr("transformer_mt.data.prepare.prepare", Mock(side_effect=AssertionError))
        code, error = refused(capsys, recipe, "--output", tmp_path / "out")
        assert code == 3 and f"{tmp_path}: Permission denied" in error
    words = ["--keep", "0.5", "--threshold", "0"]
    code, error = refused(capsys, recipe, "--output", tmp_path / "out", *words)
    assert code == 2 and "--keep, --threshold: " in error


@pytest.mark.usefixtures("by_place")
def test_an_empty_folder_is_taken(recipe: Path, tmp_path: Path) -> None:
    """Pins a refusal of what `mkdir` has made."""
    (tmp_path / "out").mkdir()
    assert main(["filter", str(recipe), "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "clean.de").exists()


def test_text_that_cannot_be_used(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pins tracebacks, and anything left behind, for every text that real people have."""
    text = tmp_path / "text"
    (text / "train.en").write_bytes((text / "train.en").read_bytes() + b"one more\n")
    cases = [(["data.train=train"], 3, "train.de has 60 lines but ")]
    write_sides(text, "empty", [])
    cases.append((["data.train=empty"], 3, "empty: is empty"))
    write_sides(text, "one", invented(1, 5))
    cases.append((["data.train=one", "tokenizer.vocab_size=276"], 3, "too few pairs that can be used (1)"))
    (text / "latin.de").write_bytes("ein Stück\n".encode("latin-1"))
    (text / "latin.en").write_bytes(b"a piece\n")
    cases.append((["data.train=latin"], 3, "latin.de:1: byte 7 of the line (0xfc) is not UTF-8"))
    cases.append((["data.train=train", "data.tgt_lang=fr"], 3, "train.fr: no such file"))
    cases.append((["data.train=train", "model.d_modl=1"], 2, "did you mean"))
    for words, code, message in cases:
        found, error = refused(capsys, recipe, *words, "--output", tmp_path / "out")
        assert (found, message in error) == (code, True), error
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


def test_text_that_changes_meanwhile(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins scores that stand beside other lines than those they are of."""
    read = filter_corpus.verdicts
    monkeypatch.setattr(filter_corpus, "verdicts", lambda *args: read(*args)[:-1])
    code, error = refused(capsys, recipe, "--output", tmp_path / "out")
    assert code == 3 and "the training text has changed while it was read; start again" in error


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_nothing_is_left(recipe: Path, tmp_path: Path, number: int, code: int) -> None:
    """Pins a half-written folder, and a traceback."""
    words = ["filter", str(recipe), "--output", str(tmp_path / "out"), "--updates", "1000000"]
    child = subprocess.Popen(
        [sys.executable, "-m", "transformer_mt", *words],
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    for _ in range(600):
        if any((tmp_path / "prepared").glob("[!.]*")):
            break
        time.sleep(0.1)
    time.sleep(1.0)
    child.send_signal(number)
    _, told = child.communicate(timeout=60)
    assert child.returncode == code and "Traceback" not in told
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]
