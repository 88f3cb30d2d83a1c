"""`translate --resume` where an output stands whole: all is as before, or it is refused."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from random_run import random_run

from transformer_mt.cli.main import main
from transformer_mt.decoding.translator import Translator


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
    """In every format, of a file, its copy and a stream; the file stays untouched and no model is loaded."""
    words = ["--format", style, *([] if style == "text" else ["--nbest", "2"])]
    assert translate(tmp_path / "in", "--resume", *words) == 0
    made = (tmp_path / "out").stat()
    monkeypatch.setattr(Translator, "load", None)
    said = f"transformer-mt: {tmp_path / 'out'}: is there, with all 3 lines; delete it to begin anew\n"
    capsys.readouterr()
    content = (tmp_path / "in").read_bytes()
    (tmp_path / "copy").write_bytes(content)
    for name in ("in", "copy"):
        assert translate(tmp_path / name, "--resume", "--buffer-size", "2", *words) == 0
        assert capsys.readouterr().err == said
    _stdin(monkeypatch, content)
    assert translate("--resume", *words) == 0
    assert capsys.readouterr().err == said
    found = (tmp_path / "out").stat()
    assert (found.st_ino, found.st_mtime_ns) == (made.st_ino, made.st_mtime_ns)


@pytest.mark.parametrize(
    ("source", "output", "words", "code", "said"),
    [
        ("abe\nnor\n", None, [], 3, "out: its 3 lines were made of another source; give that one, or delete"),
        ("abe diek\n\nnor\nd\n", None, [], 3, "out: its 3 lines were made of another source"),
        ("abe diek\n\nnar\n", None, [], 3, "out: its 3 lines were made of another source"),
        (None, lambda made: made[:-1], [], 3, "out: is not what out.done.json tells of; delete both to"),
        (None, lambda made: b"3\tx\n", [], 3, "out: is not what out.done.json tells of"),
        (
            None,
            None,
            ["--format", "jsonl"],
            2,
            "out: was made with other settings (format was tsv, is jsonl)",
        ),
        (
            None,
            None,
            ["--protect", "a"],
            2,
            "other settings (protect was [], is ['a']); use those, or delete",
        ),
        (None, None, ["--beam-size", "2"], 2, "other settings (beam_size was 3, is 2)"),
        (None, None, ["--ensemble", "one"], 2, "out: was made with other settings (checkpoint was ["),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_was_made_otherwise_is_refused(
    *,
    translate: Callable[..., int],
    tmp_path: Path,
    run: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    source: str | None,
    output: Callable[[bytes], bytes] | None,
    words: list[str],
    code: int,
    said: str,
    streamed: bool,
) -> None:
    """Another source, other settings, a file that was changed: one line says what, and all stays."""
    out = tmp_path / "out"
    assert translate(tmp_path / "in", "--resume", "--format", "tsv") == 0
    if source is not None:
        (tmp_path / "in").write_text(source)
    if output is not None:
        out.write_bytes(output(out.read_bytes()))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(Translator, "load", None)
    _stdin(monkeypatch, (tmp_path / "in").read_bytes())
    words = [str(run) if word == "one" else word for word in words]
    capsys.readouterr()
    assert translate("-" if streamed else tmp_path / "in", "--resume", "--format", "tsv", *words) == code
    (message,) = capsys.readouterr().err.replace(f"{tmp_path}/", "").splitlines()
    assert message.startswith("transformer-mt: error: out: ")
    assert said in message
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_reading_of_the_same_bytes_is_another_source(
    translate: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name of a file may say that its lines are objects."""
    for name in ("a.jsonl", "a.txt"):
        (tmp_path / name).write_text('{"src": "abe"}\n')
    assert translate(tmp_path / "a.jsonl", "--resume", "--format", "tsv") == 0
    assert translate(tmp_path / "a.txt", "--resume", "--format", "tsv") == 3
    assert "out: its 1 lines were made of another source" in capsys.readouterr().err


def test_what_nothing_is_known_of_is_done_again(
    translate: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was made without --resume; then no file but it is there, and one line says why all begins anew."""
    (tmp_path / "out").write_text("1\n2\n3\n")
    assert translate(tmp_path / "in", "--resume") == 0
    said = "out: no out.done.json says what it was made of; all of it is translated anew\n"
    assert capsys.readouterr().err.replace(f"{tmp_path}/", "").startswith(f"transformer-mt: {said}")
    made, record = (tmp_path / "out").read_bytes(), tmp_path / "out.done.json"
    assert made != b"1\n2\n3\n"
    assert json.loads(record.read_text())["lines"] == 3
    (tmp_path / "out").write_text("old\n")
    assert translate(tmp_path / "in") == 0
    assert (tmp_path / "out").read_bytes() == made
    assert not record.exists()


def test_a_record_that_cannot_be_read_is_named(
    translate: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says nothing about the output, so both must go."""
    assert translate(tmp_path / "in", "--resume") == 0
    (tmp_path / "out.done.json").write_text("[")
    assert translate(tmp_path / "in", "--resume") == 3
    assert "out.done.json: tells nothing about " in capsys.readouterr().err


def test_a_source_is_not_written_over_by_a_record(
    translate: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every name that is written to may be that of an input."""
    (tmp_path / "out.done.json").write_text("abe\n")
    assert translate(tmp_path / "out.done.json", "--resume") == 2
    assert "out.done.json: is also the input" in capsys.readouterr().err
