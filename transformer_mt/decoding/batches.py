"""Sentences of token ids -> batches whose results do not depend on who shares them.

Two things make fp32 exact: sentences share a batch only with others of the same padded length, and that
length is a function of the sentence alone. (The third, enough rows, is the stepper's.) Knows neither models
nor text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from transformer_mt.text.tokenizer import PAD_ID

# Source lengths are padded up to a multiple of this.
_LENGTH_STEP = 8
# Padded tokens of the longest side in one batch, so that a long line gets a batch to itself.
_MAX_BATCH_TOKENS = 8192


def padded_length(ids: Sequence[int]) -> int:
    """The length of the batches that these ids may be in."""
    return -(-len(ids) // _LENGTH_STEP) * _LENGTH_STEP


def padded(sequences: Sequence[Sequence[int]], longest: int | None = None) -> Tensor:
    """B sequences of one padded length -> (B, S) ids on the CPU, pad behind them.

    Args:
        sequences: none is longer than `longest`.
        longest: positions that a model has; padding takes no more either.
    """
    width = padded_length(sequences[0])
    width = width if longest is None else min(width, longest)
    rows = torch.full((len(sequences), width), PAD_ID, dtype=torch.long)
    for row, ids in enumerate(sequences):
        rows[row, : len(ids)] = torch.tensor(ids)
    return rows


def padded_prefixes(prefixes: Sequence[Sequence[int]]) -> Tensor | None:
    """Target ids that B translations begin with -> (B, P) on the CPU, -1 behind them; None: all are free."""
    width = max(padded_length(prefix) for prefix in prefixes)
    if not width:
        return None
    return torch.tensor([[*prefix, *[-1] * (width - len(prefix))] for prefix in prefixes])


def same_length_batches(*sides: Sequence[Sequence[int]], batch_size: int) -> Iterator[list[int]]:
    """Places of examples in batches of one padded length a side, longest first, not above either bound.

    Args:
        sides: each has one sequence per example.
        batch_size: most examples in a batch.
    """
    by_lengths: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, sequences in enumerate(zip(*sides, strict=True)):
        by_lengths[tuple(padded_length(ids) for ids in sequences)].append(place)
    for lengths in sorted(by_lengths, reverse=True):
        # Neighbours of like length end at about the same step.
        places = sorted(by_lengths[lengths], key=lambda place: (len(sides[0][place]), place))
        size = min(batch_size, max(_MAX_BATCH_TOKENS // max(lengths), 1))
        for start in range(0, len(places), size):
            yield places[start : start + size]
