"""What a training update costs by the length of its sentences: seconds, memory, bytes kept for backward.

Weights and sentences are random, since none of this depends on what they are. All is measured in this
process, nothing is estimated; knows no data and no training run.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from transformer_mt.config import Count, Recipe
from transformer_mt.data.batch import Batch
from transformer_mt.errors import ConfigError
from transformer_mt.model.build import Model
from transformer_mt.runtime.device import autocast_dtype, pick_precision
from transformer_mt.runtime.memory import refusing_memory
from transformer_mt.studies.meter import MIB, if_it_fits, peak_of, saved_mib, timed
from transformer_mt.studies.random_ids import random_batch
from transformer_mt.studies.values import Measured
from transformer_mt.training.build import new_updater
from transformer_mt.training.precision import autocast
from transformer_mt.training.step import Updater


class UpdateCost(BaseModel):
    """At which lengths updates are measured, and how."""

    model_config = Recipe.model_config

    lengths: Annotated[list[Count], Field(min_length=1)]
    """Tokens of every source and every target, eos counted."""
    tokens: Count = 4096
    """An update has about so many on each side: as many sentences as that takes, and at least one."""
    updates: Count = 3
    """Updates that are timed, after one that is not; their median counts."""


@dataclass(frozen=True)
class _Cost:
    """Of an update; None where the memory does not hold it, or does not tell how much of it was taken."""

    seconds: float | None = None
    peak_mib: float | None = None
    saved_mib: float | None = None


def measure(recipe: Recipe, settings: UpdateCost, device: torch.device) -> Iterator[Measured]:
    """`model_mib`; of every length `update_seconds`, `update_tokens_per_second`, `peak_mib`, `saved_mib`.

    model_mib: weights, gradients, optimizer and moving average, the same at all lengths. peak_mib: the most
    that training held, all of these included, above what the process held before there was a model.
    saved_mib: what forward keeps for backward besides the weights; with gradient checkpointing that is what
    every layer starts from. update_tokens_per_second: target tokens. Where an update does not fit into the
    memory, it and all longer ones have None.
    """
    precision = pick_precision(recipe.training.precision, device)
    training = recipe.training.model_copy(update={"precision": precision})
    recipe = recipe.model_copy(update={"training": training})
    check(recipe, settings)
    with refusing_memory(device):
        model_mib = if_it_fits(lambda: _model_mib(recipe, device))
        yield Measured("model_mib", model_mib)
        fits = model_mib is not None
        for length in sorted(settings.lengths):
            rows = max(1, round(settings.tokens / length))
            batch = random_batch(rows, length, recipe.tokenizer.vocab_size)
            cost = _cost(batch, recipe, settings, device) if fits else _Cost()
            fits = cost.seconds is not None
            speed = None if cost.seconds is None else rows * length / cost.seconds
            at = {"length": length}
            yield Measured("update_seconds", cost.seconds, at)
            yield Measured("update_tokens_per_second", speed, at)
            yield Measured("peak_mib", cost.peak_mib, at)
            yield Measured("saved_mib", cost.saved_mib, at)


def check(recipe: Recipe, settings: UpdateCost) -> None:
    """Raises: ConfigError, the recipe's model takes no sentence of such a length."""
    model = recipe.model
    if model.positions == "learned" and max(settings.lengths) > model.max_positions:
        raise ConfigError(
            f"measure.update_cost.lengths: {max(settings.lengths)} is beyond the learned positions, which "
            f"end at model.max_positions {model.max_positions}; raise that, or measure shorter sentences"
        )


def _cost(batch: Batch, recipe: Recipe, settings: UpdateCost, device: torch.device) -> _Cost:
    saved = if_it_fits(lambda: _saved_mib(batch, recipe, device))
    if saved is None:
        return _Cost()
    # With a model of its own, so that the peak is not that of the pass before.
    seconds, peak = peak_of(lambda: if_it_fits(lambda: _seconds(batch, recipe, settings, device)), device)
    return _Cost() if seconds is None else _Cost(seconds, peak, saved)


def _seconds(batch: Batch, recipe: Recipe, settings: UpdateCost, device: torch.device) -> float | None:
    """Of an update of a new model; None where the memory does not hold the batch in one piece."""
    _, updater = _new(recipe, device)
    times = []
    for step in range(1, settings.updates + 2):
        try:
            update, seconds = timed(partial(updater.run, step, [batch]), device)
        except ConfigError:  # one sentence is too much
            return None
        if update.pieces > 1:
            return None
        times.append(seconds)
    return statistics.median(times[1:])


def _saved_mib(batch: Batch, recipe: Recipe, device: torch.device) -> float:
    model, updater = _new(recipe, device)
    precision = recipe.training.precision
    packs = model.has_packed_kernel(device, autocast_dtype(precision))
    given = (batch.packed() if packs else batch).to(device)

    def forward() -> Tensor:
        with autocast(precision, device):
            loss: Tensor = updater.loss_module(given)[0]
        return loss

    return saved_mib(forward, model.parameters())


def _model_mib(recipe: Recipe, device: torch.device) -> float:
    """Counted after an update of a few tokens, when all of it exists."""
    model, updater = _new(recipe, device)
    batch = random_batch(1, 2, recipe.tokenizer.vocab_size)
    updater.run(1, [batch])
    updater.replay(2, [batch])
    return sum(tensor.nbytes for tensor in _lasting(model, updater)) / MIB


def _new(recipe: Recipe, device: torch.device) -> tuple[Model, Updater]:
    return new_updater(recipe, (recipe.tokenizer.vocab_size,) * 2, device)


def _lasting(model: Model, updater: Updater) -> Iterator[Tensor]:
    """What does not end with an update, and the gradients."""
    for weight in model.parameters():
        yield weight
        if weight.grad is not None:
            yield weight.grad
        yield from updater.optimizer.state[weight].values()
    if updater.ema is not None:
        yield from updater.ema.tensors().values()
