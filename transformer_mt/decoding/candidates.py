"""From the log-probabilities of every next token to the best continuations of every sentence.

The choice is exact and the same on every tie. Knows neither models nor what a search does with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# Width of the blocks whose maxima narrow the vocabulary down before the exact choice.
_BLOCK = 64
_LAST_ID = 2**32 - 1


@dataclass(frozen=True)
class Candidates:
    """The W best continuations of every sentence, best first, ties by lowest beam and then token id.

    totals: (B, W) fp32 log-probabilities of the hypotheses so continued, -inf where nothing is left;
    beams: (B, W) the beam that each continues; token_ids: (B, W).
    """

    totals: Tensor
    beams: Tensor
    token_ids: Tensor


def mean_log_probs(outputs: Sequence[Tensor]) -> Tensor:
    """Logits (B, K, V) of every model -> fp32 logarithms of the mean of their probabilities.

    On a CPU one kernel normalises whole rows in less time than the sum of exponentials takes by itself.
    """
    log_probs = [logits.float().log_softmax(-1) for logits in outputs]
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.stack(log_probs).logsumexp(0) - math.log(len(log_probs))


def top_candidates(log_probs: Tensor, scores: Tensor, count: int) -> Candidates:
    """The `count` largest sums of a beam's score and a token's log-probability, in every sentence.

    `torch.topk` leaves the order of ties open. Each of the `count` best lies in one of the `count` blocks of
    tokens with the best maxima, so only those are searched exactly.

    Args:
        log_probs: (B, K, V) fp32.
        scores: (B, K) fp32.
        count: W, cut to K * V.
    """
    batch, num_beams, vocab_size = log_probs.shape
    count = min(count, num_beams * vocab_size)
    num_blocks = vocab_size // _BLOCK
    ids = torch.arange(num_beams * vocab_size, device=log_probs.device)  # beam * V + token
    if num_beams * num_blocks > 2 * count:
        whole = num_blocks * _BLOCK
        blocks = log_probs[..., :whole].view(batch, num_beams, num_blocks, _BLOCK)
        maxima = blocks.amax(-1) + scores.unsqueeze(-1)  # (B, K, blocks)
        starts, rest = ids.view(num_beams, -1)[:, :whole:_BLOCK], ids.view(num_beams, -1)[:, whole:]
        chosen = _first_largest(maxima.flatten(1), starts.reshape(1, -1), count)  # (B, W)
        inside = (chosen.unsqueeze(-1) + ids[:_BLOCK]).flatten(1)  # (B, W * _BLOCK)
        candidates = torch.cat([inside, rest.reshape(1, -1).expand(batch, -1)], 1)
    else:
        candidates = ids.expand(batch, -1)
    log_probs = log_probs.flatten(1)  # (B, K * V)
    totals = log_probs.gather(1, candidates) + scores.gather(1, candidates // vocab_size)
    best = _first_largest(totals, candidates, count)
    beams = best // vocab_size
    return Candidates(log_probs.gather(1, best) + scores.gather(1, beams), beams, best % vocab_size)


def rescored(
    candidates: Candidates,
    log_probs: Tensor,
    scores: Tensor,
    changes: Tensor,
    count: int,
    *,
    factors: Tensor | None = None,
) -> Candidates:
    """The `count` best of some candidates after their logits were corrected.

    A beam's log-normaliser changes with them: among its tokens the candidates are the most probable ones, so
    what its other logits lack hardly counts.

    Args:
        candidates: W of them, chosen by `log_probs`.
        log_probs: (B, K, V) as they were.
        scores: (B, K) fp32.
        changes: (B, W) what every candidate's logit lacks.
        count: at most W.
        factors: (B, W) what every candidate's log-probability was multiplied by, if anything.
    """
    beams, tokens = candidates.beams, candidates.token_ids
    before = log_probs.flatten(1).gather(1, beams * log_probs.size(-1) + tokens)
    if factors is not None:
        before = before / factors
    mass = torch.zeros_like(scores).scatter_add_(1, beams, before.exp() * changes.expm1())  # (B, K)
    if factors is None:
        totals = before + changes + (scores - mass.log1p()).gather(1, beams)
    else:
        totals = (before + changes - mass.log1p().gather(1, beams)) * factors + scores.gather(1, beams)
    totals, order = totals.sort(dim=-1, descending=True, stable=True)
    order = order[:, :count]
    return Candidates(totals[:, :count], beams.gather(1, order), tokens.gather(1, order))


def _first_largest(values: Tensor, ids: Tensor, count: int) -> Tensor:
    """(B, N) fp32 -> (B, count) ids of the largest, best first, equal ones by id; ids: (B or 1, N) < 2^32.

    Value and id make one integer key without ties: the bits of a float order like integers once those of
    negative numbers are flipped.
    """
    bits = (values + 0.0).view(torch.int32)  # + 0.0: minus zero equals zero
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = (ordered.long() << 32) | (_LAST_ID - ids)
    return _LAST_ID - (keys.topk(count, dim=1).values & _LAST_ID)
