"""`translate --resume` where an output stands whole: nothing is done for its source, all for another one."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from random_run import random_run

from transformer_mt.cli.main import main
from transformer_mt.decoding.translator import Translator

FAR = 2**62
"""Nanoseconds of a time that has not come."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one")


@pytest.fixture
def translate(run: Path, tmp_path: Path) -> Callable[..., int]:
    """translate(*words): a source of three lines into `out`; the exit code."""
    (tmp_path / "in").write_text("abe diek\n\nnor\n")

    def command(*words: str | Path) -> int:
        return main(
            list(map(str, ["translate", run, "--output", tmp_path / "out", "--device", "cpu", *words]))
        )

    return command


def _stdin(patch: pytest.MonkeyPatch, content: bytes) -> None:
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("style", ["text", "tsv", "jsonl", "moses"])
def test_what_is_done_is_not_done_again(
    translate: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    style: str,
) -> None:
    """In every format, of a file and of a stream; the file stays untouched and no model is loaded."""
    words = ["--format", style, *([] if style == "text" else ["--nbest", "2"])]
    assert translate(tmp_path / "in", *words) == 0
    made = (tmp_path / "out").stat()
    monkeypatch.setattr(Translator, "load", None)
    said = f"transformer-mt: {tmp_path / 'out'}: is there, with all 3 lines; delete it to begin anew\n"
    capsys.readouterr()
    assert translate(tmp_path / "in", "--resume", *words) == 0
    assert capsys.readouterr().err == said
    _stdin(monkeypatch, (tmp_path / "in").read_bytes())
    assert translate("--resume", *words) == 0
    assert capsys.readouterr().err == said
    found = (tmp_path / "out").stat()
    assert (found.st_ino, found.st_mtime_ns) == (made.st_ino, made.st_mtime_ns)


@pytest.mark.parametrize(
    ("content", "times", "said"),
    [
        ("abe\nnor\n", {}, "has 3 lines, but the source has 2 lines"),
        ("a\nb\nc\nd\n", {}, "has 3 lines, but the source has 4 lines"),
        ("abe\nnor\nd\n", {"in": FAR}, "is older than in"),
        ("abe diek\n\nnor\n", {"in": 1, "out": 1}, "is older than one/checkpoints/step_00000020/"),
    ],
)
def test_what_became_of_another_source_is_done_again(
    *,
    translate: Callable[..., int],
    tmp_path: Path,
    run: Path,
    capsys: pytest.CaptureFixture[str],
    content: str,
    times: dict[str, int],
    said: str,
) -> None:
    """It has shrunk, grown or changed, or the weights have: as without --resume."""
    assert translate(tmp_path / "in", "--format", "tsv") == 0
    (tmp_path / "in").write_text(content)
    for name, time in times.items():
        os.utime(tmp_path / name, ns=(time, time))
    capsys.readouterr()
    assert translate(tmp_path / "in", "--format", "tsv", "--resume") == 0
    told = capsys.readouterr().err.replace(f"{tmp_path}/", "").replace(f"{run.parent}/", "")
    assert told.startswith(f"transformer-mt: out: {said}")
    found = (tmp_path / "out").read_bytes()
    assert translate(tmp_path / "in", "--format", "tsv", "--quiet") == 0
    assert (tmp_path / "out").read_bytes() == found


def test_of_a_stream_what_has_been_read_is_gone(
    translate: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a difference is an error, and the finished output stays; another format is a difference too."""
    assert translate(tmp_path / "in") == 0
    made = (tmp_path / "out").read_bytes()
    for style, said in (("text", "has 3 lines, but"), ("tsv", "is of another format, but")):
        _stdin(monkeypatch, b"a\n")
        assert translate("--resume", "--format", style) == 3
        message = f"out: {said} the source has 1 lines; leave out --resume to translate all of it anew"
        assert message in capsys.readouterr().err
    assert (tmp_path / "out").read_bytes() == made
