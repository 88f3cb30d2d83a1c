"""What a hypothesis may not say again, and what it says again at a price.

Acts on log-probabilities, in place, for all beams of a batch at once. Knows neither models nor searches; a
column is a token's place among the log-probabilities.
"""

from __future__ import annotations

import torch
from torch import Tensor

from transformer_mt.decoding.candidates import Candidates

_NEVER = float("-inf")


def penalise_repeats(log_probs: Tensor, history: Tensor, penalty: float) -> None:
    """Multiply the log-probabilities of tokens that a beam has had, once each (after Keskar et al. 2019).

    They are never above 0, so that none can rise; logits, which the paper divides, may have either sign. eos
    is in no history. Nothing is normalised again.

    Args:
        log_probs: (B, K, V).
        history: (B, K, T) columns of each beam's tokens so far.
        penalty: at least 1.
    """
    log_probs.scatter_(2, history, log_probs.gather(2, history) * penalty)


def repeat_factors(candidates: Candidates, history: Tensor, penalty: float) -> Tensor:
    """(B, W) what `penalise_repeats` has multiplied every candidate by; their token ids are columns."""
    past = history.gather(1, candidates.beams.unsqueeze(-1).expand(-1, -1, history.size(2)))  # (B, W, T)
    repeated = (past == candidates.token_ids.unsqueeze(-1)).any(-1)
    return torch.where(repeated, penalty, 1.0)


def ban_repeated_ngrams(log_probs: Tensor, history: Tensor, size: int, eos_column: int) -> None:
    """Rule out every token that would complete an n-gram for the second time (Paulus et al. 2018); never eos.

    Args:
        log_probs: (B, K, V).
        history: (B, K, T) columns of each beam's tokens so far.
        size: n, at least 1.
        eos_column: of eos.
    """
    length = history.size(2)
    if length < size:
        return
    ngrams = history.unfold(2, size, 1)  # (B, K, T - n + 1, n)
    newest = history[..., length - size + 1 :].unsqueeze(2)  # (B, K, 1, n - 1)
    repeats = (ngrams[..., :-1] == newest).all(-1)
    eos = log_probs[..., eos_column].clone()
    log_probs.scatter_(2, ngrams[..., -1].masked_fill(~repeats, eos_column), _NEVER)
    log_probs[..., eos_column] = eos
