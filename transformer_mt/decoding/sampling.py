"""Translations that are drawn, not searched: temperature, top-k and top-p.

Every draw is a function of the seed, the step and the numbers of the line, of its part and of the sample, so
that the samples of a line depend on neither batches nor neighbours nor workers. Knows no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_mt.decoding.candidates import Candidates, top_candidates
from transformer_mt.decoding.greedy import Choice
from transformer_mt.decoding.stepper import Pick
from transformer_mt.runtime.seeds import derive_seed

_RANDOM_BITS = 53  # as many as a float64 holds
_SEED_BITS = 63


@dataclass(frozen=True)
class Sampling:
    """How to draw: temperature above 0; top_k 0 and top_p 1 narrow nothing; the seed."""

    temperature: float
    top_k: int
    top_p: float
    seed: int


def drawing(sampling: Sampling, draws: Sequence[tuple[int, int, int]]) -> Choice:
    """What draws the tokens of `token_by_token`; its stepper has no rough output matrix.

    Scores are the model's at temperature 1, of the whole distribution: what greedy search would give.

    Args:
        sampling: how to draw.
        draws: for each row the numbers of its line, of the part of it, and of the sample.
    """

    def choice(rows: Sequence[int], step: int) -> Pick:
        shares = [_uniform(sampling.seed, *draws[row], step) for row in rows]
        uniforms = torch.tensor(shares, dtype=torch.float64)
        return lambda log_probs, scores, _: draw(log_probs, scores, uniforms.to(scores.device), sampling)

    return choice


def draw(log_probs: Tensor, scores: Tensor, uniforms: Tensor, sampling: Sampling) -> Candidates:
    """One token per row: temperature, then the top_k likeliest, then the nucleus of them.

    The nucleus (Holtzman et al. 2020) is the fewest likeliest tokens that reach top_p of the probability left
    by temperature and top_k. Of equally likely tokens the lowest ids are taken.

    Args:
        log_probs: (B, 1, V) fp32, -inf for what may not come.
        scores: (B, 1) fp32 log-probabilities so far.
        uniforms: (B,) fp64 in [0, 1).
        sampling: how to draw.
    """
    if sampling.top_k:
        best = top_candidates(log_probs, torch.zeros_like(scores), sampling.top_k)
        values, columns = best.totals, best.token_ids
    elif sampling.top_p < 1.0:
        values, columns = log_probs[:, 0].sort(dim=-1, descending=True, stable=True)
    else:
        values = log_probs[:, 0]
        columns = torch.arange(values.size(1), device=values.device).expand_as(values)
    highest = values.amax(-1, keepdim=True)
    shares = ((values.double() - highest) / sampling.temperature).softmax(-1)  # (B, N)
    if sampling.top_p < 1.0:
        before = shares.cumsum(-1) - shares
        shares = shares.masked_fill(before >= sampling.top_p, 0.0)
    mass = shares.cumsum(-1)
    places = torch.searchsorted(mass, uniforms.unsqueeze(1) * mass[:, -1:], right=True)
    # Only where probabilities are not numbers is a place beyond the last one.
    token_ids = columns.gather(1, places.clamp(max=columns.size(1) - 1))  # (B, 1)
    totals = log_probs[:, 0].gather(1, token_ids) + scores
    return Candidates(totals, torch.zeros_like(token_ids), token_ids)


def _uniform(seed: int, line: int, part: int, sample: int, step: int) -> float:
    """In [0, 1), with as many random bits as fit."""
    bits = derive_seed(seed, "draw", line, part, sample, step) >> (_SEED_BITS - _RANDOM_BITS)
    return float(bits * 2.0**-_RANDOM_BITS)
