"""What the records of a run come to, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from transformer_mt.config import Recipe
from transformer_mt.recipe import dump_recipe
from transformer_mt.studies import training_record
from transformer_mt.studies.training_record import TrainingRecord, measure
from transformer_mt.studies.values import At

RECORDS: list[dict[str, Any]] = [
    {"kind": "probe", "step": 5, "score_variance/a": 9.0, "score_variance/b": 3.0, "entropy/a": 1.0},
    {"kind": "train", "step": 10, "loss": 8.0, "grad_norm": 2.5, "tokens": 90, "tokens_per_second": 9.0},
    {"kind": "probe", "step": 10, "score_variance/a": 24.0, "score_variance/b": 12.0, "entropy/a": None},
    {"kind": "valid", "step": 10, "nll": 5.0, "bleu": 11.0, "seconds": 12.0, "target_tokens": 90},
    {"kind": "skipped", "step": 13},
    {"kind": "skipped", "step": 17},
    {"kind": "train", "step": 20, "loss": 6.0, "grad_norm": None, "tokens": 90, "tokens_per_second": 4.5},
    {"kind": "valid", "step": 20, "nll": 4.0, "bleu": 29.5, "seconds": 44.0, "target_tokens": 180},
]


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """Two heads of six; an epoch of eight sentences is four batches."""
    lengths = SimpleNamespace(train=SimpleNamespace(src_lengths=np.full(8, 4), tgt_lengths=np.full(8, 5)))
    monkeypatch.setattr(training_record, "prepare", lambda recipe, log: lengths)
    return Recipe.model_validate(
        {
            "run_dir": str(tmp_path),
            "data": {"train": "t", "valid": "v", "src_lang": "de", "tgt_lang": "en"},
            "model": {"d_model": 12, "num_heads": 2},
            "training": {"max_tokens": 10, "update_freq": 2, "metric": "bleu"},
        }
    )


def write_run(recipe: Recipe, records: list[dict[str, Any]]) -> None:
    folder = Path(recipe.run_dir)
    (folder / "config.yaml").write_text(dump_recipe(recipe), encoding="utf-8")
    (folder / "run.json").write_text("{}", encoding="utf-8")
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "metrics.jsonl").write_text(lines, encoding="utf-8")


def found(recipe: Recipe, **settings: Any) -> dict[str, list[tuple[At, float | None]]]:
    values: dict[str, list[tuple[At, float | None]]] = {}
    for one in measure(recipe, TrainingRecord.model_validate(settings), torch.device("cpu")):
        values.setdefault(one.metric, []).append((dict(one.at), one.value))
    return values


def test_every_number_is_in_its_place(recipe: Recipe) -> None:
    """Pins curves, probes by layer, their last mean, times, and the first update that was not finite."""
    write_run(recipe, RECORDS)
    best = {"step": 20, "metric": "bleu", "value": 29.5}
    (Path(recipe.run_dir) / "best.json").write_text(json.dumps(best), encoding="utf-8")
    at5a, at5b, at10a, at10b = ({"step": step, "layer": layer} for step in (5, 10) for layer in "ab")
    assert found(recipe, bleu_levels=[11, 20, 30]) == {
        "loss": [({"step": 10}, 8.0), ({"step": 20}, 6.0)],
        "grad_norm": [({"step": 10}, 2.5), ({"step": 20}, None)],
        "valid_nll": [({"step": 10}, 5.0), ({"step": 20}, 4.0)],
        "valid_bleu": [({"step": 10}, 11.0), ({"step": 20}, 29.5)],
        "nll": [({}, 4.0)],
        "updates_to_bleu": [({"bleu": 11}, 10), ({"bleu": 20}, 20), ({"bleu": 30}, None)],
        "seconds_to_bleu": [({"bleu": 11}, 12.0), ({"bleu": 20}, 44.0), ({"bleu": 30}, None)],
        "score_variance": [(at5a, 9.0), (at5b, 3.0), (at10a, 24.0), (at10b, 12.0)],
        "score_variance_per_dim": [(at5a, 1.5), (at5b, 0.5), (at10a, 4.0), (at10b, 2.0)],
        "entropy": [(at5a, 1.0), (at10a, None)],
        "last_score_variance": [({}, 18.0)],
        "last_entropy": [({}, None)],
        "best_bleu": [({}, 29.5)],
        "tokens_per_second": [({}, 6.0)],
        "seconds_per_epoch": [({}, 3.0)],  # 30 seconds for 40 batches, four an epoch
        "peak_gib": [({}, None)],
        "first_non_finite_step": [({}, 13)],
        "diverged": [({}, 0.0)],
    }


@pytest.mark.parametrize(
    "end",
    [{"kind": "diverged", "step": 21}, {"kind": "valid", "step": 30, "nll": None, "bleu": 0.0}],
    ids=lambda record: str(record["kind"]),
)
def test_a_training_that_ended_badly_has_diverged(recipe: Recipe, end: dict[str, Any]) -> None:
    write_run(recipe, [*RECORDS, end])
    assert found(recipe)["diverged"] == [({}, 1.0)]


def test_a_training_that_broke_at_once_has_a_step_and_no_curve(recipe: Recipe) -> None:
    """Pins a study that fails because a variant diverged before its first log line."""
    write_run(recipe, [{"kind": "skipped", "step": 1}, {"kind": "diverged", "step": 20}])
    values = found(recipe)
    assert values["first_non_finite_step"] == [({}, 1)] and values["diverged"] == [({}, 1.0)]
    assert "loss" not in values and values["nll"] == values["best_bleu"] == [({}, None)]
    assert values["seconds_per_epoch"] == [({}, None)]


def test_nothing_was_trained(recipe: Recipe) -> None:
    assert found(recipe) == {}
