"""`translate --output --resume`: killed, stopped, out of memory or space, and then the same bytes."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from random_run import made_up_lines, random_run

from transformer_mt.cli import partial_output
from transformer_mt.cli.main import main
from transformer_mt.decoding.translation import MEMORY, NOTHING
from transformer_mt.decoding.translator import Translation, Translator
from transformer_mt.errors import DataError

LINES = made_up_lines(90, seed=11)
CONTENT = ("\n".join(LINES) + "\n").encode()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one run")


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """After an interruption the command takes no other signal; the processes of later tests shall."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture(scope="module")
def whole(run: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What comes out without an interruption."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "in.txt").write_bytes(CONTENT)
    words = [str(run), str(folder / "in.txt"), "--output", str(folder / "out"), "--format", "tsv"]
    assert main(["translate", *words, "--device", "cpu", "--quiet"]) == 0
    return (folder / "out").read_bytes()


@pytest.fixture
def translate(run: Path, tmp_path: Path) -> Callable[..., int]:
    """translate(*words): tsv into `out` in buffers of 10 lines; the exit code."""

    def command(*words: str | Path) -> int:
        fixed = ["--output", tmp_path / "out", "--format", "tsv", "--buffer-size", "10", "--device", "cpu"]
        return main(list(map(str, ["translate", run, *fixed, *words])))

    return command


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """failing(error): the fourth buffer of every command from now on raises it."""
    original = Translator.translate

    def set_up(error: BaseException) -> None:
        def fail(self: Translator, lines: list[str], first_line: int = 1, **options: Any) -> Any:
            if first_line == 31:
                raise error
            return original(self, lines, first_line, **options)

        monkeypatch.setattr(Translator, "translate", fail)

    return set_up


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted; the first 30 lines are kept in "),
        (
            DataError("a worker process ended by itself"),
            3,
            "a worker process ended by itself; the first 30 lines",
        ),
    ],
)
def test_what_was_done_is_kept_and_not_done_again(
    *,
    translate: Callable[..., int],
    failing: Callable[[BaseException], None],
    source: Path,
    tmp_path: Path,
    whole: bytes,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    said: str,
) -> None:
    """B184, B185: one line says what is kept and how to go on, and an older output stands until the end."""
    (tmp_path / "out").write_bytes(b"old\n")
    failing(error)
    assert translate(source) == code
    monkeypatch.undo()
    (message,) = capsys.readouterr().err.splitlines()
    assert message.startswith(f"transformer-mt: error: {said}")
    assert message.endswith(f"{tmp_path / 'out'}.partial, and the same command goes on with --resume")
    assert (tmp_path / "out").read_bytes() == b"old\n"
    assert translate(source) == 2
    assert (
        "out.partial: is an unfinished output; go on with --resume, or delete it" in capsys.readouterr().err
    )
    seen: list[int] = []
    original = Translator.translate

    def count(self: Translator, lines: list[str], first_line: int = 1, **options: Any) -> Any:
        seen.append(len(lines))
        return original(self, lines, first_line, **options)

    monkeypatch.setattr(Translator, "translate", count)
    assert translate(source, "--resume") == 0
    assert sum(seen) == 60
    assert (tmp_path / "out").read_bytes() == whole
    first, last = capsys.readouterr().err.splitlines()[:2]
    assert first.endswith("out.partial: has 30 lines; goes on with line 31")
    assert last.startswith("transformer-mt: 60 lines (0 blank), ")
    assert sorted(os.listdir(tmp_path)) == ["in.txt", "out", "out.done.json"]


def test_lines_that_did_not_fit_into_the_memory_are_not_forgotten(
    translate: Callable[..., int],
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Code 3 and which they are: from the command that goes on, and from one that finds all done."""
    original = Translator.translate
    errors = [KeyboardInterrupt()]

    def tight(self: Translator, lines: list[str], first_line: int = 1, **options: Any) -> list[Translation]:
        if first_line == 31 and errors:
            raise errors.pop()
        found = original(self, lines, first_line, **options)
        return [replace(found[0], nbest=[NOTHING], flags=(MEMORY,)), *found[1:]]

    monkeypatch.setattr(Translator, "translate", tight)
    assert translate(source, "--resume") == 130
    for _ in range(2):
        capsys.readouterr()
        assert translate(source, "--resume") == 3
        said = capsys.readouterr().err
        assert "/out: line 1 and 8 more did not fit into the memory and stayed blank; translate" in said


def test_stdin_is_continued_by_the_lines_it_gives_again(
    *,
    translate: Callable[..., int],
    failing: Callable[[BaseException], None],
    tmp_path: Path,
    whole: bytes,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that are done are read, compared and skipped; another text is refused."""

    def stdin(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    stdin(CONTENT)
    failing(DataError("bad"))
    assert translate() == 3
    monkeypatch.undo()
    stdin(CONTENT.replace(LINES[29].encode(), b"other"))
    assert translate("--resume") == 3
    assert "out.partial: its 30 lines were made of another source" in capsys.readouterr().err
    stdin(CONTENT)
    assert translate("--resume", "--quiet") == 0
    assert (tmp_path / "out").read_bytes() == whole


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--beam-size", "2"], "(beam_size was 3, is 2)"),
        (["--format", "text"], "(format was tsv, is text)"),
        (["--checkpoint", "latest", "--max-len-b", "9"], "(max_len_b was 4, is 9)"),
        (["--batch-size", "3", "--buffer-size", "7", "--workers", "1"], None),
    ],
)
def test_only_what_changes_the_lines_must_be_the_same(
    *,
    translate: Callable[..., int],
    failing: Callable[[BaseException], None],
    source: Path,
    tmp_path: Path,
    whole: bytes,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str | None,
) -> None:
    """Batches, buffers and workers may change: after running out of memory they have to."""
    failing(DataError("bad"))
    assert translate(source) == 3
    monkeypatch.undo()
    capsys.readouterr()
    if message is None:
        assert translate(source, "--resume", *words) == 0
        assert (tmp_path / "out").read_bytes() == whole
        return
    assert translate(source, "--resume", *words) == 2
    assert f"was made with other settings {message}; use those" in capsys.readouterr().err


def test_another_checkpoint_is_another_setting(
    *,
    translate: Callable[..., int],
    failing: Callable[[BaseException], None],
    source: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that was trained on in between must not finish what its earlier weights began."""
    failing(DataError("bad"))
    assert translate(source) == 3
    monkeypatch.undo()
    other = random_run(tmp_path / "other", seed=9)
    words = ["--output", tmp_path / "out", "--format", "tsv", "--device", "cpu", "--resume"]
    assert main(["translate", str(other), str(source), *map(str, words)]) == 2
    assert "other settings (checkpoint was " in capsys.readouterr().err


def test_without_anything_to_go_on_with_it_begins(
    translate: Callable[..., int],
    source: Path,
    tmp_path: Path,
    whole: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And says so; a script may always say --resume."""
    assert translate(source, "--resume") == 0
    assert "out.partial: nothing is there yet; begins with line 1\n" in capsys.readouterr().err
    assert (tmp_path / "out").read_bytes() == whole


def _wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)])
def test_a_process_that_is_ended_from_outside_is_continued(
    *,
    run: Path,
    source: Path,
    translate: Callable[..., int],
    tmp_path: Path,
    whole: bytes,
    number: int,
    code: int,
) -> None:
    """B185: whatever the signal, and whatever was written after the last entry of the journal."""
    words = ["--output", tmp_path / "out", "--format", "tsv", "--device", "cpu", "--workers", "2"]
    command = [sys.executable, "-m", "transformer_mt", "translate", run, *words]
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin and process.stderr
        sent = 0
        partial, journal = tmp_path / "out.partial", tmp_path / "out.partial.json"
        for end, shown in (
            (30, lambda: partial.exists() and partial.stat().st_size > 0),
            (50, lambda: json.loads(journal.read_bytes())["lines"] > 0),
            (70, lambda: partial.read_bytes().count(b"\n") == 70),
        ):
            process.stdin.write(b"".join(line.encode() + b"\n" for line in LINES[sent:end]))
            process.stdin.flush()
            _wait_for(shown)
            sent = end
            time.sleep(partial_output._SECONDS_BETWEEN_ENTRIES * (end == 30))
        process.send_signal(number)
        said = process.stderr.read().decode()
    assert process.returncode == code
    assert not (tmp_path / "out").exists()
    if number == signal.SIGKILL:
        with partial.open("ab") as stream:
            stream.write(b"71\thalf a li")
    else:
        assert said.count("\n") == 1
        assert "lines are kept in" in said
    assert translate(source, "--resume") == 0
    assert (tmp_path / "out").read_bytes() == whole
