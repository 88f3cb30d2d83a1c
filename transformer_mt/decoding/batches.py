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
# Padded source tokens in one batch, so that a long line gets a batch to itself.
_MAX_BATCH_TOKENS = 8192


def padded_length(ids: Sequence[int]) -> int:
    """The length of the batches that these ids may be in."""
    return -(-len(ids) // _LENGTH_STEP) * _LENGTH_STEP


def padded(sequences: Sequence[Sequence[int]]) -> Tensor:
    """B sequences of one padded length -> (B, S) ids on the CPU, pad behind them."""
    rows = torch.full((len(sequences), padded_length(sequences[0])), PAD_ID, dtype=torch.long)
    for row, ids in enumerate(sequences):
        rows[row, : len(ids)] = torch.tensor(ids)
    return rows


def same_length_batches(sequences: Sequence[Sequence[int]], batch_size: int) -> Iterator[list[int]]:
    """Places of the sequences in batches of one padded length each, longest first, not above either bound."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, ids in enumerate(sequences):
        by_length[padded_length(ids)].append(place)
    for length in sorted(by_length, reverse=True):
        # Neighbours of like length end at about the same step.
        places = sorted(by_length[length], key=lambda place: (len(sequences[place]), place))
        size = min(batch_size, max(_MAX_BATCH_TOKENS // length, 1))
        for start in range(0, len(places), size):
            yield places[start : start + size]
