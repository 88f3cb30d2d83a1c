"""The only maker of attention masks. One polarity everywhere: True = may attend.

Masks are bool and broadcast over (B, H, T, S). This module knows nothing of attention itself.
"""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Keys that are real tokens.

    Args:
        ids: (B, S) token ids.
        pad_id: the id that fills short rows.

    Returns:
        (B, 1, 1, S) bool.
    """
    return (ids != pad_id)[:, None, None, :]


def position_mask(
    query_positions: Tensor, key_positions: Tensor, *, causal: bool, window: int | None
) -> Tensor | None:
    """Which positions may see which, by their numbers alone.

    Args:
        query_positions: (T,) int positions of the queries.
        key_positions: (S,) int positions of the keys.
        causal: no query sees a later position than its own.
        window: a query sees positions less than `window` away from its own: 1 is itself alone.

    Returns:
        (1, 1, T, S) bool, or None when everything may be seen.
    """
    if not causal and window is None:
        return None
    distance = query_positions[:, None] - key_positions[None, :]  # (T, S)
    if window is None:
        allowed = distance >= 0
    elif causal:
        allowed = (distance >= 0) & (distance < window)
    else:
        allowed = distance.abs() < window
    return allowed[None, None]


def sentence_mask(query_starts: Tensor, num_queries: int, key_starts: Tensor, num_keys: int) -> Tensor:
    """Which tokens of two packed rows belong to the same sentence.

    Args:
        query_starts: (B + 1,) int32, queries before each sentence, and their number N at last.
        num_queries: N.
        key_starts: the same for the keys.
        num_keys: M.

    Returns:
        (1, 1, N, M) bool.
    """
    queries = torch.arange(num_queries, dtype=torch.int32, device=query_starts.device)
    keys = torch.arange(num_keys, dtype=torch.int32, device=key_starts.device)
    sentence_of_query = torch.searchsorted(query_starts, queries, right=True)  # (N,), from 1
    sentence_of_key = torch.searchsorted(key_starts, keys, right=True)
    return (sentence_of_query[:, None] == sentence_of_key[None, :])[None, None]


def beam_mask(ancestors: Tensor, slots: int) -> Tensor:
    """Which cached slots belong to the past of which beam.

    Every position of the cache holds one slot per beam of that time; a beam sees one of each position.

    Args:
        ancestors: (B, K, T) int64, the slot that beam k's history went through at position t.
        slots: how many the cache holds.

    Returns:
        (B, 1, K, slots) bool.
    """
    batch, beams, _ = ancestors.shape
    mask = torch.zeros(batch, beams, slots, dtype=torch.bool, device=ancestors.device)
    return mask.scatter_(2, ancestors, True).unsqueeze(1)


def combine(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """Both masks at once; None stands for a mask that allows everything."""
    if first is None or second is None:
        return second if first is None else first
    return first & second
