"""SIGTERM, SIGINT, SIGUSR1, SIGHUP: saved at the next update, the right exit code, nobody left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.conftest import MakeTask
from tests.small_runs import assert_same_run, at_step, ended, forked, records, run_of, scalars, train
from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli import build_trainer

LIMIT = 30.0
"""Seconds that a scheduler may leave between its signal and SIGKILL."""


@pytest.fixture
def task(copy_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> MakeTask:
    """`copy_task` with little text."""
    monkeypatch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)
    return partial(copy_task, pairs=250, num_valid=4)


def _in_a_session(work: Callable[[], int]) -> int:
    """A process that with all its own can be found by its number."""

    def lead() -> int:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup has ignored
        return work()

    return forked(lead)


def _nobody_left(session: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def _wait_for_step(run: Path, step: int) -> None:
    deadline = time.monotonic() + 60
    while (
        not (run / "metrics.jsonl").exists() or f'"step": {step},' not in (run / "metrics.jsonl").read_text()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGUSR1, 143), (signal.SIGHUP, 143)],
)
def test_a_signal_to_all_saves_and_leaves_nobody_behind(task: MakeTask, number: int, code: int) -> None:
    """B186: as a scheduler or Ctrl-C sends it, to the processes that build batches as well."""
    recipe = task()
    run = run_of(recipe)
    words = ["training.log_every=1", "training.save_every=999", "training.validate_every=999"]
    session = _in_a_session(lambda: train(recipe, "training.max_steps=5000", "training.workers=2", *words))
    _wait_for_step(run, 3)
    asked = time.monotonic()
    os.killpg(session, number)
    assert ended(session) == code
    assert time.monotonic() - asked < LIMIT
    assert _nobody_left(session, 1.0)
    saved = ckpt.newest_valid(run)
    assert saved is not None
    assert saved.step == records(run, "train")[-1]["step"] >= 3
    name = signal.Signals(number).name
    assert f"stopped by {name} after step {saved.step}, saved" in (run / "train.log").read_text("utf-8")
    assert train(recipe, f"training.max_steps={saved.step + 2}", *words) == 0
    assert [record["step"] for record in records(run, "train")] == list(range(1, saved.step + 3))


def test_a_killed_training_leaves_nobody_behind(task: MakeTask) -> None:
    """The processes that build batches notice that nobody reads them."""
    recipe = task()
    session = _in_a_session(
        lambda: train(recipe, "training.max_steps=5000", "training.workers=2", "training.log_every=1")
    )
    _wait_for_step(run_of(recipe), 3)
    os.kill(session, signal.SIGKILL)
    assert ended(session) == -signal.SIGKILL
    assert _nobody_left(session, 10.0)


def test_further_signals_do_no_harm(task: MakeTask) -> None:
    """An impatient Ctrl-C, and a SIGTERM, while the checkpoint is written and after it."""
    recipe = task()

    def be_impatient() -> int:
        write_manifest = files._write_manifest

        def twice(folder: Path) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            write_manifest(folder)
            os.kill(os.getpid(), signal.SIGTERM)

        files._write_manifest = twice
        at_step(4, lambda: os.kill(os.getpid(), signal.SIGINT))
        return train(recipe, "training.max_steps=50", "training.save_every=99")

    assert ended(forked(be_impatient)) == 130
    run = run_of(recipe)
    assert ckpt.saved_steps(run) == [4]
    assert files.read_checkpoint(files.folder_of(run, 4)).step == 4
    assert not list((run / "checkpoints").glob(".*"))


@pytest.mark.parametrize("last", [False, True], ids=["amid", "the last"])
def test_a_validation_is_broken_off_and_made_again(task: MakeTask, last: bool) -> None:
    """However long it takes: the run ends in time, and goes on as one that was never interrupted."""
    whole, parts = task(), task()
    end = 4 if last else 6
    words = [f"training.max_steps={end}", "training.log_every=1", "training.save_every=2"]
    words += ["training.validate_every=2", "training.ema=0.9", "training.patience=9"]
    assert train(whole, *words) == 0

    def take_for_ever() -> int:
        own_share, calls = build_trainer.own_share, []

        def slow(*what: object) -> object:
            calls.append(what)
            if len(calls) == 2:  # that of step 4
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(2 * LIMIT)
            return own_share(*what)  # type: ignore[arg-type]

        build_trainer.own_share = slow  # type: ignore[assignment]
        return train(parts, *words)

    asked = time.monotonic()
    assert ended(forked(take_for_ever)) == 143
    assert time.monotonic() - asked < LIMIT
    run = run_of(parts)
    assert scalars(files.folder_of(run, 4))["progress"]["validation_due"]
    assert [record["step"] for record in records(run, "valid")] == [2]
    assert train(parts, *words) == 0
    assert_same_run(run_of(whole), run)
    assert "cost" in json.loads((run / "run.json").read_text(encoding="utf-8"))
