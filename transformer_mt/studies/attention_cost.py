"""What attention alone costs by length: seconds, memory, and how fast both grow.

Measured are three ways of the same self-attention of one unpadded sentence, without projections: `plain`
products, the `fused` kernel, and `model`, which is the recipe's own: within its window where it has one, else
by whichever of the two it takes. Numbers are random; all is measured, nothing estimated.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from transformer_mt.config import Count, Recipe
from transformer_mt.errors import ConfigError
from transformer_mt.model.attention import attend_positions, fused_attention, plain_attention
from transformer_mt.runtime.device import autocast_dtype, pick_precision
from transformer_mt.runtime.memory import refusing_memory
from transformer_mt.studies.meter import if_it_fits, peak_of, timed
from transformer_mt.studies.values import At, Measured

Heads = tuple[Tensor, Tensor, Tensor]
"""Queries (1, H, T, E), and keys and values (1, H_kv, T, E)."""
Attention = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


class AttentionCost(BaseModel):
    """At which lengths attention is measured, and how."""

    model_config = Recipe.model_config

    lengths: Annotated[list[Count], Field(min_length=1)]
    """Positions of the sentence."""
    repeats: Count = 3
    """Passes that are timed, after one that is not; their median counts."""
    fit_from: Count = 1024
    """The shortest length that says how cost grows; below it other things cost more than the products."""


@dataclass(frozen=True)
class _Cost:
    """Of a pass; None where the memory does not hold it, or does not tell how much of it was taken."""

    seconds: float | None = None
    peak_mib: float | None = None


def measure(recipe: Recipe, settings: AttentionCost, device: torch.device) -> Iterator[Measured]:
    """`attention_seconds` and `attention_peak_mib` by kernel, pass and length, and how fast they grow.

    A recipe with a window has the kernel `model` alone. The pass `backward` is forward and backward.
    attention_peak_mib: held besides queries, keys and values. `time_exponent` and `memory_exponent` are the
    slopes of the straight lines through the logarithms of cost and length (least squares). What does not fit
    into the memory, and all that is longer, has None.

    Raises:
        ConfigError: the recipe's model has no such attention.
    """
    check(recipe)
    with refusing_memory(device):
        for backward in (False, True):  # libraries that come with the first pass are no cost of a length
            _run(plain_attention, _heads(recipe, 16, device=device, backward=backward))
        for kernel, attention in _kernels(recipe).items():
            for backward in (False, True):
                where: At = {"kernel": kernel, "pass": "backward" if backward else "forward"}
                heads = partial(_heads, recipe, device=device, backward=backward)
                costs = _costs(attention, heads, settings, device)
                for length, cost in costs.items():
                    at = {**where, "length": length}
                    yield Measured("attention_seconds", cost.seconds, at)
                    yield Measured("attention_peak_mib", cost.peak_mib, at)
                grown = {length: cost for length, cost in costs.items() if length >= settings.fit_from}
                seconds = {length: cost.seconds for length, cost in grown.items()}
                memory = {length: cost.peak_mib for length, cost in grown.items()}
                yield Measured("time_exponent", exponent(seconds), where)
                yield Measured("memory_exponent", exponent(memory), where)


def check(recipe: Recipe) -> None:
    """Raises: ConfigError, the recipe's model has no such attention."""
    if recipe.model.architecture == "lstm":
        raise ConfigError(
            "measure.attention_cost: needs the attention heads of a transformer, but model.architecture is "
            "lstm; leave this measure or that variant out"
        )


def exponent(costs: Mapping[int, float | None]) -> float | None:
    """Length -> cost: the b of cost = a length^b that fits best in logarithms; None of fewer than two."""
    points = [(math.log(length), math.log(cost)) for length, cost in costs.items() if cost]
    if len(points) < 2:
        return None
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def _kernels(recipe: Recipe) -> dict[str, Attention]:
    window = recipe.model.attention_window
    kernels: dict[str, Attention] = {"model": partial(attend_positions, window=window)}
    if window is None:
        # Plain products come last: a pass that the memory did not hold may leave holes for those after it.
        kernels |= {"fused": fused_attention, "plain": plain_attention}
    return kernels


def _costs(
    attention: Attention, heads: Callable[[int], Heads], settings: AttentionCost, device: torch.device
) -> dict[int, _Cost]:
    """Length -> cost, from the shortest on."""

    def cost(length: int) -> _Cost:
        run = partial(_run, attention, heads(length))
        _, peak = peak_of(run, device)
        times = [timed(run, device)[1] for _ in range(settings.repeats)]
        return _Cost(statistics.median(times), peak)

    found: dict[int, _Cost] = {}
    fits = True
    for length in sorted(settings.lengths):
        one = if_it_fits(partial(cost, length)) if fits else None
        fits = one is not None
        found[length] = one or _Cost()
    return found


def _heads(recipe: Recipe, length: int, *, device: torch.device, backward: bool) -> Heads:
    """As they come out of the projections of the model."""
    model = recipe.model
    dtype = autocast_dtype(pick_precision(recipe.training.precision, device))
    generator = torch.Generator(device).manual_seed(recipe.training.seed)

    def drawn(heads: int) -> Tensor:
        shape = (1, heads, length, model.d_model // model.num_heads)
        numbers = torch.randn(shape, generator=generator, device=device, dtype=dtype)
        return numbers.requires_grad_(backward)

    kv_heads = model.num_kv_heads or model.num_heads
    return drawn(model.num_heads), drawn(kv_heads), drawn(kv_heads)


def _run(attention: Attention, given: Heads) -> None:
    """Forward, and backward where gradients are wanted; what comes out is thrown away."""
    with torch.set_grad_enabled(given[0].requires_grad):
        context = attention(*given, None)
    if context.requires_grad:
        torch.autograd.grad(context, given, torch.ones_like(context))
