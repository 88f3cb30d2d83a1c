"""The output file of `translate`: whole or not there, its journal, and what may continue it."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.cli import partial_output
from transformer_mt.cli.output_journal import names_beside
from transformer_mt.cli.partial_output import PartialOutput
from transformer_mt.errors import ConfigError, DataError

SETTINGS: dict[str, Any] = {"checkpoint": ["a"], "beam_size": 5}
SOURCE = [b"one", b"two", b"three", b"four"]


def _open(path: Path, resume: bool = False, **settings: Any) -> PartialOutput:
    return PartialOutput(path, {**SETTINGS, **settings}, resume=resume)


def _leave(path: Path, lines: int = 2) -> None:
    """An output that was interrupted after these lines."""
    with pytest.raises(KeyboardInterrupt), _open(path) as output:
        output.write(SOURCE[:lines], b"".join(line.upper() + b"\n" for line in SOURCE[:lines]))
        raise KeyboardInterrupt


def _finish(path: Path, source: list[bytes] = SOURCE, **settings: Any) -> None:
    with _open(path, resume=True, **settings) as output:
        rest = source[output.skip_done(source) :]
        output.write(rest, b"".join(line.upper() + b"\n" for line in rest))


def test_the_file_appears_whole_and_nothing_else_stays(tmp_path: Path) -> None:
    """B185: an older file stands until then; a link stays a link; the permissions are ordinary."""
    (tmp_path / "old").write_bytes(b"old\n")
    (tmp_path / "out").symlink_to("old")
    with _open(tmp_path / "out") as output:
        output.write(SOURCE[:1], b"ONE\n")
        assert (tmp_path / "out").read_bytes() == b"old\n"
        assert (tmp_path / "old.partial").read_bytes() == b"ONE\n"
    assert (tmp_path / "old").read_bytes() == b"ONE\n"
    assert (tmp_path / "out").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["old", "out"]
    (tmp_path / "plain").touch()
    assert (tmp_path / "old").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_is_done_is_kept_and_continued(tmp_path: Path) -> None:
    """B185: the same bytes as without an interruption, however often there is one."""
    out = tmp_path / "out"
    kept = pytest.raises(
        KeyboardInterrupt, match=r"^the first 2 lines are kept in .*out.partial, .*--resume$"
    )
    with kept, _open(out) as output:
        output.write(SOURCE[:2], b"ONE\nTWO\n")
        raise KeyboardInterrupt
    kept_too = pytest.raises(DataError, match=r"^no memory; the first 3 lines are kept")
    with kept_too, _open(out, resume=True) as output:
        assert output.found == 2
        assert output.skip_done(SOURCE[:1]) == 1
        assert output.skip_done(SOURCE[1:3]) == 1
        output.write(SOURCE[2:3], b"THREE\n")
        raise DataError("no memory")
    _finish(out)
    assert out.read_bytes() == b"ONE\nTWO\nTHREE\nFOUR\n"
    assert sorted(os.listdir(tmp_path)) == ["out", "out.done.json"]


def test_the_journal_stays_for_who_resumes(tmp_path: Path) -> None:
    """It tells of the finished file then, and never of one that has gone."""
    out, record = tmp_path / "out", tmp_path / "out.done.json"
    _finish(out, SOURCE[:3])
    entry = json.loads(record.read_text())
    assert (entry["lines"], entry["bytes"], entry["settings"]) == (3, 14, SETTINGS)
    assert entry["source_sha256"] == hashlib.sha256(b"one\ntwo\nthree\n").hexdigest()
    assert entry["output_sha256"] == hashlib.sha256(b"ONE\nTWO\nTHREE\n").hexdigest()
    with _open(out) as output:
        output.write(SOURCE[:1], b"ONE\n")
        assert json.loads(record.read_text()) == entry
    assert os.listdir(tmp_path) == ["out"]


def test_a_torn_end_is_cut_off(tmp_path: Path) -> None:
    """A process that is killed leaves more than its journal tells of, and perhaps half a line."""
    out = tmp_path / "out"
    _leave(out)
    with (tmp_path / "out.partial").open("ab") as stream:
        stream.write(b"THR")
    _finish(out)
    assert out.read_bytes() == b"ONE\nTWO\nTHREE\nFOUR\n"


def test_the_journal_follows_while_lines_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At first it tells of nothing, and from then on of all that is more than a second old."""
    journal = tmp_path / "out.partial.json"
    with _open(tmp_path / "out") as output:
        assert json.loads(journal.read_text())["lines"] == 0
        monkeypatch.setattr(partial_output, "_SECONDS_BETWEEN_ENTRIES", 1000.0)
        output.write(SOURCE[:1], b"ONE\n")
        assert json.loads(journal.read_text())["lines"] == 0
        monkeypatch.setattr(partial_output, "_SECONDS_BETWEEN_ENTRIES", 0.0)
        output.write(SOURCE[1:3], b"TWO\nTHREE\n")
        entry = json.loads(journal.read_text())
        assert (entry["lines"], entry["bytes"], entry["settings"]) == (3, 14, SETTINGS)


def test_nothing_is_kept_of_nothing(tmp_path: Path) -> None:
    """An error before the first line leaves no files and says no more than itself."""
    with pytest.raises(DataError, match=r"^bad$"), _open(tmp_path / "out"):
        raise DataError("bad")
    assert os.listdir(tmp_path) == []


def test_an_unfinished_output_is_never_written_over(tmp_path: Path) -> None:
    """Without --resume, with other settings, of another or a shorter source: all stays as it is."""
    out = tmp_path / "out"
    _leave(out)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ConfigError, match=r"out.partial: is an unfinished output; go on with --resume"):
        _open(out)
    with pytest.raises(ConfigError, match=r"other settings \(beam_size was 5, is 4; nbest was None, is 2\)"):
        _finish(out, beam_size=4, nbest=2)
    with pytest.raises(DataError, match=r"out.partial: its 2 lines were made of another source; give that"):
        _finish(out, [b"one", b"2", b"three"])
    with pytest.raises(DataError, match=r"out.partial: its 2 lines were made of another source; give that"):
        _finish(out, [b"one"])
    with pytest.raises(DataError, match=r"out.partial: its 2 lines were made of another source; give that"):
        _finish(out, [b"one\ntwo", b"three"])
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_source_that_has_grown_is_the_same_source(tmp_path: Path) -> None:
    """Only the lines that are done must be the same, and all of them may be."""
    out = tmp_path / "out"
    _leave(out, lines=4)
    _finish(out, [*SOURCE, b"five"])
    assert out.read_bytes().endswith(b"FOUR\nFIVE\n")
    _leave(out, lines=4)
    _finish(out)
    assert out.read_bytes().endswith(b"FOUR\n")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda entry: None, r"out.partial.json: tells nothing about .*out.partial .*; delete both"),
        (lambda entry: entry | {"format": 2}, r"format 2, this version reads 1"),
        (lambda entry: entry | {"lines": None}, r"tells nothing"),
        (lambda entry: entry | {"bytes": 7}, r"out.partial: is not what .*out.partial.json tells of"),
        (lambda entry: entry | {"bytes": 9}, r"out.partial: is not what"),
    ],
)
def test_what_does_not_belong_together_is_refused(tmp_path: Path, damage: Any, message: str) -> None:
    """A file that is not ours, a journal of another version, a partial output that was changed."""
    out = tmp_path / "out"
    _leave(out)
    partial, journal, _ = names_beside(out)
    damaged = damage(json.loads(journal.read_text()))
    journal.write_text("{" if damaged is None else json.dumps(damaged))
    with pytest.raises(DataError, match=message):
        _open(out, resume=True)
    assert partial.read_bytes() == b"ONE\nTWO\n"


def test_a_partial_output_without_its_journal_is_refused(tmp_path: Path) -> None:
    """Nothing says of which source its lines are."""
    out = tmp_path / "out"
    _leave(out)
    partial, journal, _ = names_beside(out)
    journal.unlink()
    with pytest.raises(
        DataError, match=r"out.partial.json: is missing, and nothing else says .*; delete that"
    ):
        _open(out, resume=True)
    assert partial.read_bytes() == b"ONE\nTWO\n"


def test_a_start_that_was_killed_at_once_can_be_continued(tmp_path: Path) -> None:
    """There is an empty file, and no journal yet; or there is nothing."""
    (tmp_path / "out.partial").touch()
    _finish(tmp_path / "out")
    _finish(tmp_path / "two")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "two").read_bytes() == b"ONE\nTWO\nTHREE\nFOUR\n"


HOLD = """
import fcntl, sys
stream = open(sys.argv[1], "r+b")
fcntl.lockf(stream, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("resume", [False, True])
def test_two_processes_do_not_write_one_file(tmp_path: Path, resume: bool) -> None:
    """The second is told so, and does not advise to delete what the first is writing."""
    _leave(tmp_path / "out")
    command = [sys.executable, "-c", HOLD, str(tmp_path / "out.partial")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin and other.stdout and other.stdout.readline() == b"held\n"
        with pytest.raises(DataError, match="out.partial: another process is writing it"):
            _open(tmp_path / "out", resume=resume)
        other.stdin.close()


def test_a_full_disk_is_told_and_costs_nothing_that_was_done(tmp_path: Path) -> None:
    """B185: the lines before stand; here a limit on the size of files plays the full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with (
            pytest.raises(
                DataError,
                match=r"out.partial: cannot be written: File too large; free some space; the first 2",
            ),
            _open(tmp_path / "out") as output,
        ):
            output.write(SOURCE[:2], b"ONE\nTWO\n")
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
            output.write(SOURCE[2:3], b"THREE" * 1000 + b"\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (tmp_path / "out.partial").read_bytes() == b"ONE\nTWO\n"  # what was torn takes no space
    _finish(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"ONE\nTWO\nTHREE\nFOUR\n"


def test_a_disk_that_is_full_from_the_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's own error passes, with a file in it."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device", "out")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        _open(tmp_path / "out")
    assert os.listdir(tmp_path) == []
