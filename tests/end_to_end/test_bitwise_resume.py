"""Twenty updates are nine, a kill, and eleven more: nothing but the clock tells the two runs apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.conftest import LSTM, MakeTask
from tests.small_runs import assert_same_run, killed_in_step, note_batches, records, run_of, scalars, train
from transformer_mt import checkpoint as ckpt
from transformer_mt.checkpoint_files import folder_of

EVERY = ("training.log_every=1", "training.save_every=3", "training.validate_every=7", "training.keep_last=9")
# What draws, what is averaged, what is counted; each setting goes with both architectures.
_DRAWN = ("tokenizer.sampling=0.2", "training.attention_dropout=0.1", "training.update_freq=2")
_AVERAGED = ("training.ema=0.9", "training.patience=9", "training.metric=nll")
_NOISED = ("data.noise.upper=0.3", "data.noise.typos=0.3", "training.update_freq=3")


def _continues(task: MakeTask, model: dict[str, str], words: tuple[str, ...], tmp_path: Path) -> Path:
    """A whole run and a killed one compared in everything; returns the second."""
    whole, parts = (task(model, pairs=250, num_valid=4) for _ in range(2))
    noted = [tmp_path / "whole", tmp_path / "parts"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)
        note_batches(patch)
        patch.setenv("NOTED_BATCHES", str(noted[0]))
        assert train(whole, "training.max_steps=20", *EVERY, *words) == 0
        patch.setenv("NOTED_BATCHES", str(noted[1]))
        killed_in_step(12, parts, "training.max_steps=20", *EVERY, *words)
        assert ckpt.saved_steps(run_of(parts))[-1] == 9
        stood = scalars(folder_of(run_of(parts), 9))["progress"]
        assert stood["epoch"] > 1 and stood["position"] > 0  # amid an epoch
        assert records(run_of(parts), "train")[-1]["step"] == 11  # records that are made again
        assert train(parts, "training.max_steps=20", *EVERY, *words) == 0
    batches, again = (path.read_text(encoding="ascii").splitlines() for path in noted)
    assert len(batches) == 20 and again == batches[:11] + batches[9:]
    assert_same_run(run_of(whole), run_of(parts))
    assert [record["step"] for record in records(run_of(parts), "train")] == list(range(1, 21))
    assert [record["step"] for record in records(run_of(parts), "valid")] == [7, 14, 20]
    return run_of(parts)


@pytest.mark.parametrize("model", [{}, LSTM], ids=["transformer", "lstm"])
def test_a_killed_run_is_the_whole_one(copy_task: MakeTask, tmp_path: Path, model: dict[str, str]) -> None:
    """B100: dropout, sampling, accumulation, moving averages, patience, processes that build batches."""
    words = ("training.workers=2",) if not model else ()
    _continues(copy_task, model, (*_DRAWN, *_AVERAGED, *words), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model", [{}, LSTM], ids=["transformer", "lstm"])
@pytest.mark.parametrize(
    "words",
    [
        ("training.precision=fp16", *_DRAWN, *_AVERAGED),
        ("training.precision=bf16", *_NOISED, *_AVERAGED, "training.gradient_checkpointing=true"),
        ("training.precision=bf16", *_DRAWN, "training.workers=2"),
        ("training.precision=fp32", *_NOISED, "training.workers=1", "training.dropout=0.3"),
    ],
    ids=lambda words: "-".join(word.rpartition(".")[2] for word in words),
)
def test_with_every_precision(
    copy_task: MakeTask, tmp_path: Path, model: dict[str, str], words: tuple[str, ...]
) -> None:
    """B100, B102: 16 bits, loss scaling with its counters, noise, recomputed activations."""
    run = _continues(copy_task, model, words, tmp_path)
    scaler = scalars(folder_of(run, 20))["scaler"]
    assert (scaler["_growth_tracker"] > 11) if "training.precision=fp16" in words else not scaler


def test_what_the_last_bits_depend_on_is_told(copy_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine, torch or number of threads continues a run, but does not promise the same bits."""
    monkeypatch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)
    recipe = copy_task(pairs=200, num_valid=3)
    assert train(recipe, "training.max_steps=1") == 0
    assert train(recipe, "training.max_steps=2") == 0
    log = run_of(recipe) / "train.log"
    assert "differ in their last bits" not in log.read_text(encoding="utf-8")
    path = run_of(recipe) / "run.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(known | {"torch": "2.10.0", "threads": 99}), encoding="utf-8")
    assert train(recipe, "training.max_steps=3") == 0
    told = log.read_text(encoding="utf-8")
    for name, old in (("torch", "2.10.0"), ("threads", "99")):
        assert f"continuing with {name}: {old} -> {known[name]}: the data come in the same order" in told
    assert "continuing with machine" not in told
