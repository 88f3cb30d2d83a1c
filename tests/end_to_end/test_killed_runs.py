"""SIGKILL at random instants, also amid the writing of a checkpoint: the same command ends where a quiet
run ends."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.conftest import MakeTask
from tests.small_runs import assert_same_run, ended, forked, run_of, train
from transformer_mt import checkpoint as ckpt

KILLS = 20
_SEED = 20


def _newest(run: Path) -> int:
    return max(ckpt.saved_steps(run), default=0)


def _wait_for_a_save(run: Path, child: int) -> None:
    """Until the process begins to write a checkpoint."""
    deadline = time.monotonic() + 30
    while not list((run / "checkpoints").glob(".writing-*")):
        assert os.waitpid(child, os.WNOHANG) == (0, 0) and time.monotonic() < deadline


@pytest.mark.slow
def test_twenty_kills_change_nothing(copy_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """B107: every other kill comes amid the writing of a checkpoint; what is left always verifies."""
    monkeypatch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)
    drawn = random.Random(_SEED)
    whole, killed = (copy_task(pairs=250, num_valid=4) for _ in range(2))
    words = ["training.max_steps=300", "training.log_every=1", "training.validate_every=50"]
    words += ["training.save_every=2", "training.keep_last=3", "tokenizer.sampling=0.2", "training.ema=0.9"]
    assert train(whole, *words) == 0
    run, amid = run_of(killed), 0
    for number in range(KILLS):
        child = forked(partial(train, killed, *words, f"training.workers={number % 2}"))
        newest = _newest(run)
        if number % 2:
            while _newest(run) == newest:
                assert os.waitpid(child, os.WNOHANG) == (0, 0)
                time.sleep(0.001)
            _wait_for_a_save(run, child)
            time.sleep(drawn.uniform(0.0, 0.02))
        else:
            instant = time.monotonic() + drawn.uniform(0.0, 3.0)
            while time.monotonic() < instant and _newest(run) < newest + 16:
                time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
        amid += bool(list((run / "checkpoints").glob(".writing-*step_*")))
        left = ckpt.newest_valid(run)
        assert (left.step if left else 0) == _newest(run) >= newest
    assert amid >= KILLS // 5
    assert _newest(run) < 300  # the last kill still interrupted something
    assert train(killed, *words) == 0
    assert_same_run(run_of(whole), run)
    assert not list((run / "checkpoints").glob(".*"))
