"""Pairs of source and target ids -> batches for a pass over given translations, all positions at once.

As exact in fp32 as the search: pairs share a batch only with others of the same two padded lengths, and a
batch never has so few rows that matrix products round differently; a pair too long for that is by itself
always. Knows neither text nor what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from transformer_mt.decoding.batches import padded, padded_length, same_length_batches
from transformer_mt.decoding.models import evaluating
from transformer_mt.decoding.stepper import num_rows
from transformer_mt.errors import DataError
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.runtime.device import is_out_of_memory
from transformer_mt.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

# From this padded length of the longer side on, MIN_ROWS pairs would be too much for one batch.
_ALONE_FROM = 513

Result = TypeVar("Result")


@dataclass(frozen=True)
class Pair:
    """A source and a translation of it.

    src_ids end in eos; tgt_ids have neither bos nor eos; number is that of the line, for error messages.
    """

    src_ids: Sequence[int]
    tgt_ids: Sequence[int]
    number: int = 0


@dataclass(frozen=True)
class ForcedBatch:
    """B pairs of one padded length a side, and rows that repeat the last of them.

    src_ids: (R, S); src_mask: (R, 1, 1, S); decoder_input_ids: (R, T), bos first; labels: (R, T), eos last.
    All are followed by pad.
    """

    pairs: Sequence[Pair]
    src_ids: Tensor
    src_mask: Tensor
    decoder_input_ids: Tensor
    labels: Tensor


def teacher_forced(
    models: Sequence[TrainableModel],
    pairs: Sequence[Pair],
    work: Callable[[ForcedBatch], Sequence[Result]],
    *,
    device: torch.device,
    batch_size: int,
) -> list[Result | None]:
    """What `work` makes of every pair, in order; None for one that does not fit into the memory by itself.

    Args:
        models: on `device`; in evaluation mode meanwhile.
        pairs: in any order.
        work: from a batch to one result for each of its pairs.
        device: where the batches go.
        batch_size: most pairs in a batch.

    Raises:
        DataError: a pair that is too long for learned positions.
    """
    longest = min((model.max_length for model in models if model.max_length is not None), default=None)
    _check_lengths(pairs, longest)
    results: dict[int, Result | None] = {}
    with torch.inference_mode(), evaluating(models):
        for places in _batches(pairs, batch_size):
            found = _work_on([pairs[place] for place in places], work, device, longest)
            results.update(zip(places, found, strict=True))
    return [results[place] for place in range(len(pairs))]


def _check_lengths(pairs: Sequence[Pair], limit: int | None) -> None:
    for pair in pairs:
        longest = max(len(pair.src_ids), len(pair.tgt_ids) + 1)
        if limit is not None and longest > limit:
            side = "source" if len(pair.src_ids) == longest else "translation"
            raise DataError(
                f"line {pair.number}: the {side} has {longest} tokens with eos, but this model's learned "
                f"positions end at {limit}; split the line, or train with another model.positions"
            )


def _batches(pairs: Sequence[Pair], batch_size: int) -> Iterator[list[int]]:
    """Places of the pairs, longest first."""
    sides = [pair.src_ids for pair in pairs], [_with_eos(pair) for pair in pairs]
    for places in same_length_batches(*sides, batch_size=batch_size):
        if _is_alone(pairs[places[0]]):
            yield from ([place] for place in places)
        else:
            yield places


def _is_alone(pair: Pair) -> bool:
    return max(padded_length(pair.src_ids), padded_length(_with_eos(pair))) >= _ALONE_FROM


def _with_eos(pair: Pair) -> list[int]:
    return [*pair.tgt_ids, EOS_ID]


def _work_on(
    pairs: Sequence[Pair],
    work: Callable[[ForcedBatch], Sequence[Result]],
    device: torch.device,
    longest: int | None,
) -> list[Result | None]:
    """A batch that does not fit into memory is halved."""
    try:
        return [*work(_forced_batch(pairs, device, longest))]
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        if len(pairs) == 1:
            return [None]
    half = len(pairs) // 2
    first = _work_on(pairs[:half], work, device, longest)
    return first + _work_on(pairs[half:], work, device, longest)


def _forced_batch(pairs: Sequence[Pair], device: torch.device, longest: int | None) -> ForcedBatch:
    src_ids = padded([pair.src_ids for pair in pairs], longest)  # (B, S)
    inputs = padded([[BOS_ID, *pair.tgt_ids] for pair in pairs], longest)  # (B, T)
    labels = padded([_with_eos(pair) for pair in pairs], longest)
    # A recurrent layer multiplies one position of all rows at a time: the rows themselves have to be enough.
    rows = torch.arange(1 if _is_alone(pairs[0]) else num_rows(len(pairs), 1)).clamp(max=len(pairs) - 1)
    src_ids = src_ids[rows].to(device)
    return ForcedBatch(
        pairs, src_ids, padding_mask(src_ids, PAD_ID), inputs[rows].to(device), labels[rows].to(device)
    )
