"""A probed training is the same training, and every probe is recorded once, whatever interrupts it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from tests.end_to_end.conftest import LSTM, MakeTask
from tests.small_runs import (
    assert_same_run,
    assert_same_tensors,
    curves,
    killed_in_step,
    records,
    run_of,
    train,
)
from transformer_mt.checkpoint_files import folder_of
from transformer_mt.training.step import Updater

WORDS = (
    "training.max_steps=12",
    "training.save_every=4",
    "training.validate_every=12",
    "training.log_every=2",
    "training.attention_dropout=0.1",
    "tokenizer.sampling=0.1",
)


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)


@pytest.mark.parametrize("model", [{}, LSTM], ids=["transformer", "lstm"])
def test_probes_change_no_bit(copy_task: MakeTask, model: dict[str, str]) -> None:
    """Off by default, and where they are on: the same weights and the same records beside theirs."""
    off, on = (copy_task(model, pairs=200, num_valid=4) for _ in range(2))
    assert train(off, *WORDS) == 0
    assert train(on, *WORDS, "training.probe_every=5") == 0
    assert_same_tensors(folder_of(run_of(off), 12), folder_of(run_of(on), 12))
    for kind in ("train", "valid"):
        assert records(run_of(off), kind) == records(run_of(on), kind)
    assert records(run_of(off), "probe") == []
    probes = records(run_of(on), "probe")
    assert [record["step"] for record in probes] == [5, 10]
    name = "decoder_layers.0.attention" if model else "encoder.layers.0.self_attention"
    drawn = curves(run_of(on))[f"probe/entropy/{name}"]
    assert drawn == [(one["step"], pytest.approx(one[f"entropy/{name}"])) for one in probes]
    assert not [tag for tag in curves(run_of(off)) if tag.startswith("probe/")]


def test_a_killed_run_has_every_probe_once(copy_task: MakeTask) -> None:
    """Killed in step 8, continued from 4: the probes of 6 and 7 are made again, and are the same."""
    whole, parts = (copy_task(pairs=200, num_valid=4) for _ in range(2))
    words = (*WORDS, "training.probe_every=1")
    assert train(whole, *words) == 0
    killed_in_step(8, parts, *words)
    assert [record["step"] for record in records(run_of(parts), "probe")] == list(range(1, 8))
    assert train(parts, *words) == 0
    assert_same_run(run_of(whole), run_of(parts))
    assert records(run_of(whole), "probe") == records(run_of(parts), "probe")
    assert [record["step"] for record in records(run_of(parts), "probe")] == list(range(1, 13))


def _steps(run: Path, kind: str) -> list[int]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [record["step"] for record in map(json.loads, lines) if record["kind"] == kind]


def test_the_first_update_that_is_not_finite_is_told(
    copy_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins a step that is known to ten updates only, or not at all because the run diverged before its log
    line; a run that goes on has not diverged."""
    recipe = copy_task(pairs=200, num_valid=4)
    monkeypatch.setattr("transformer_mt.training.trainer.MAX_SKIPPED_IN_ROW", 3)
    finish, broken = Updater._finish, {2, 6, 7, 8}
    made = iter(range(1, 99))

    def break_some(updater: Updater, loss: torch.Tensor, nll: torch.Tensor) -> tuple[float, float, float]:
        return finish(updater, loss * math.inf if next(made) in broken else loss, nll)

    words = (*WORDS[:1], "training.save_every=4", "training.validate_every=12", "training.log_every=10")
    with monkeypatch.context() as patch:
        patch.setattr(Updater, "_finish", break_some)
        assert train(recipe, *words) == 4
    assert _steps(run_of(recipe), "skipped") == [2, 6, 7, 8]
    assert _steps(run_of(recipe), "train") == []
    assert _steps(run_of(recipe), "diverged") == [8]
    assert train(recipe, *words) == 0
    assert _steps(run_of(recipe), "skipped") == [2]
    assert _steps(run_of(recipe), "diverged") == []
