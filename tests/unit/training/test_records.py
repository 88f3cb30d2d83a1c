"""metrics.jsonl: each record once, in whole lines, also on a full disk."""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.small_runs import ended, forked
from transformer_mt.training.records import Records


def _steps(path: Path) -> list[tuple[str, int]]:
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    return [(record["kind"], record["step"]) for record in records]


def _record(step: int, kind: str = "train") -> dict[str, Any]:
    return {"kind": kind, "step": step, "filling": "x" * 50}


@pytest.mark.parametrize(
    ("validated", "left"), [(True, [("train", 2), ("valid", 2)]), (False, [("train", 2)])]
)
def test_a_validation_that_is_made_again_is_cut(
    tmp_path: Path, validated: bool, left: list[tuple[str, int]]
) -> None:
    """Of the step that a run continues from, where a signal had come before its validation."""
    path = tmp_path / "metrics.jsonl"
    for step, kind in ((2, "train"), (2, "valid"), (3, "train")):
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(_record(step, kind)) + "\n")
    records = Records(path, 2, validated=validated)
    records.add(_record(3))
    records.close()
    kept = [("valid", 2)] if validated else []
    assert _steps(path) == [("train", 2), *kept, ("train", 3)]


def test_a_full_disk_makes_records_wait(tmp_path: Path) -> None:
    """No half lines, and none missing once there is room; until then `sync` says that some are."""
    path = tmp_path / "metrics.jsonl"

    def write() -> int:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        records = Records(path, 0)
        records.add(_record(1))
        size = path.stat().st_size
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
        for step in (2, 3):
            records.add(_record(step))
        assert path.stat().st_size == size
        with pytest.raises(OSError, match="File too large"):
            records.sync()
        assert path.stat().st_size == size
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        records.sync()
        assert _steps(path) == [("train", 1), ("train", 2), ("train", 3)]
        records.close()
        return 0

    assert ended(forked(write)) == 0


def test_one_warning_for_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not said again for every record."""

    def fail(_: Records) -> None:
        raise OSError(28, "No space left on device")

    records = Records(tmp_path / "metrics.jsonl", 0)
    monkeypatch.setattr(Records, "_write", fail)
    for step in (1, 2):
        records.add(_record(step))
    assert caplog.text.count("metrics.jsonl: records wait: No space left on device; free some space") == 1


def test_records_are_on_the_disk_before_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a power cut after which a checkpoint stands without the records of its steps."""
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.readlink(f"/proc/self/fd/{number}")))
    records = Records(tmp_path / "metrics.jsonl", 0)
    records.add(_record(1))
    assert not synced
    records.sync()
    assert synced == [str(tmp_path / "metrics.jsonl")]
