"""What the records of a training tell: its curves, its probes, its best score, what it took, where it broke.

Reads what training wrote; knows no weights and no text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from pydantic import BaseModel

from transformer_mt.config import Recipe
from transformer_mt.data.prepare import prepare
from transformer_mt.data.sampler import epoch_batches
from transformer_mt.evaluation.comparison import CurvePoint
from transformer_mt.evaluation.run_facts import read_cost, read_curve, read_records
from transformer_mt.json_file import read_json
from transformer_mt.studies.values import Measured
from transformer_mt.training.run_directory import belongs_to_run, stored_recipe

_CURVES = ("loss", "grad_norm")
_PROBES = ("score_variance", "saturated", "entropy", "entropy_share")


class TrainingRecord(BaseModel):
    """What else is asked of a training besides all that its records tell."""

    model_config = Recipe.model_config

    bleu_levels: list[float] = []
    """Validation BLEU that training is timed to."""


def measure(recipe: Recipe, settings: TrainingRecord, device: torch.device) -> Iterator[Measured]:
    """Curves by step, probes by step and layer, and one number each of what came out.

    `loss` and `grad_norm` of the log lines, `valid_nll` and `valid_bleu` of the validations. Of each probe
    `score_variance`, `score_variance_per_dim` (divided by the size of a head), `saturated`, `entropy` and
    `entropy_share` of every layer, and as `last_score_variance` … the mean of the last probe over layers.
    `best_bleu`, or whichever metric chose the checkpoint; `nll` of the last validation; `tokens_per_second`,
    `seconds_per_epoch` (updates alone), `peak_gib`, `updates_to_bleu` and `seconds_to_bleu` by level (None:
    never reached). Seconds are those of the clock, with whatever else the machine did.
    `first_non_finite_step` (None: there was none), and `diverged`, 1 or 0. Nothing where nothing was trained.
    """
    run_dir = Path(recipe.run_dir)
    if not belongs_to_run(run_dir):
        return
    recipe = stored_recipe(run_dir)  # with all that was `auto` resolved
    records, curve = read_records(run_dir), read_curve(run_dir)
    for record in _of(records, "train"):
        for metric in _CURVES:
            yield Measured(metric, record.get(metric), {"step": record["step"]})
    yield from _validations(curve, settings.bleu_levels)
    yield from _probes(_of(records, "probe"), recipe)
    best = read_json(run_dir / "best.json") or {}
    yield Measured(f"best_{recipe.training.metric}", best.get("value"))
    cost = read_cost(run_dir, recipe, best.get("step"))
    yield Measured("tokens_per_second", cost.tokens_per_second)
    yield Measured("seconds_per_epoch", _seconds_per_epoch(recipe, _of(records, "train")))
    yield Measured("peak_gib", cost.peak_gib)
    broken = [record["step"] for record in _of(records, "skipped")]
    yield Measured("first_non_finite_step", min(broken, default=None))
    diverged = bool(_of(records, "diverged")) or any(point.nll is None for point in curve[-1:])
    yield Measured("diverged", float(diverged))


def _of(records: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in records if record.get("kind") == kind]


def _validations(curve: Sequence[CurvePoint], levels: Sequence[float]) -> Iterator[Measured]:
    for point in curve:
        yield Measured("valid_nll", point.nll, {"step": point.step})
        yield Measured("valid_bleu", point.bleu, {"step": point.step})
    yield Measured("nll", curve[-1].nll if curve else None)
    for level in levels:
        reached = next((point for point in curve if point.bleu is not None and point.bleu >= level), None)
        at = {"bleu": level}
        yield Measured("updates_to_bleu", None if reached is None else reached.step, at)
        yield Measured("seconds_to_bleu", None if reached is None else reached.seconds, at)


def _probes(probes: Sequence[dict[str, Any]], recipe: Recipe) -> Iterator[Measured]:
    found = [
        Measured(metric, value, {"step": record["step"], "layer": layer})
        for record in probes
        for key, value in record.items()
        for metric, _, layer in [key.partition("/")]
        if metric in _PROBES
    ]
    yield from found
    # Only attention that has scores to probe has heads, and so this number.
    head_dim = recipe.model.d_model // recipe.model.num_heads
    for one in found:
        if one.metric == "score_variance":
            share = None if one.value is None else one.value / head_dim
            yield Measured("score_variance_per_dim", share, one.at)
    for metric in _PROBES:
        last = [one.value for one in found if one.metric == metric and one.at["step"] == probes[-1]["step"]]
        if last:
            known = [value for value in last if value is not None]
            yield Measured(f"last_{metric}", fmean(known) if len(known) == len(last) else None)


def _seconds_per_epoch(recipe: Recipe, training: Sequence[dict[str, Any]]) -> float | None:
    """Seconds of all updates, by how often they went through the training text."""
    if not training:
        return None
    seconds = math.fsum(record["tokens"] / record["tokens_per_second"] for record in training)
    config, train = recipe.training, prepare(recipe, lambda message: None).train
    batches = epoch_batches(
        train.src_lengths, train.tgt_lengths, max_tokens=config.token_budget, seed=config.seed, epoch=1
    )
    epochs: float = training[-1]["step"] * config.update_freq / len(batches)
    return seconds / epochs
