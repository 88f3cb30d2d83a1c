"""A clock that goes back, and files from another time, change nothing that is trained, written or chosen."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from tests.end_to_end.conftest import MakeTask
from tests.small_runs import assert_same_run, at_step, ended, forked, run_of, train
from transformer_mt import checkpoint as ckpt

DAY = 86_400.0


def _age(folder: Path, seconds: float) -> None:
    """As if every file had been written that much earlier than now."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (time.time() - seconds,) * 2)


def test_a_clock_that_goes_back_changes_nothing(copy_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an hour amid training, by a day before it goes on; the newest checkpoint looks the oldest."""
    monkeypatch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)
    whole, parts = (copy_task(pairs=250, num_valid=4) for _ in range(2))
    words = ["training.log_every=1", "training.save_every=2", "training.validate_every=3"]
    assert train(whole, "training.max_steps=10", *words) == 0
    now = time.time

    def train_under_it() -> int:
        def go_back() -> None:
            time.time = lambda: now() - 3600.0

        at_step(4, go_back)
        return train(parts, "training.max_steps=6", *words)

    assert ended(forked(train_under_it)) == 0
    run = run_of(parts)
    for number, step in enumerate(ckpt.saved_steps(run)):
        _age(run / "checkpoints" / f"step_{step:08d}", number * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now() - DAY)
        assert train(parts, "training.max_steps=10", *words) == 0
    assert_same_run(run_of(whole), run)
    log = (run / "train.log").read_text(encoding="utf-8")
    assert "continuing after step 6\n" in log
    assert len(re.findall(r" eta \d\d:\d\d\n", log)) == 10
    seconds = [
        float(number) for number in re.findall(r'"seconds": ([-\d.e]+)', (run / "metrics.jsonl").read_text())
    ]
    assert seconds == sorted(seconds) and seconds[0] > 0.0
    assert "-" not in "".join(re.findall(r"([-\d,]+) tok/s", log))
