"""`max_tokens: auto`: the largest micro-batch that fits into the memory, found by training on such ones.

Tried is the worst batch of an epoch: the one with the most places, and of such the longest sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from transformer_mt.data.dataset import ParallelDataset
from transformer_mt.data.sampler import Indices, epoch_batches
from transformer_mt.errors import ConfigError
from transformer_mt.runtime.device import peak_memory, reset_peak_memory
from transformer_mt.training.step import Updater
from transformer_mt.training.stream import MicroBatches

# Budgets are multiples of the first that is tried.
UNIT = 512
# A CPU is asked for no more than this: from there on memory grows in proportion, and trying takes long.
_LARGEST_TRIED_ON_CPU = 8192
# Left for validation, for batches whose sentences are drawn longer, and for holes between blocks.
_SHARE = 0.8


class Budget(NamedTuple):
    """Tokens of a micro-batch, and the bytes that training on it is thought to take."""

    tokens: int
    bytes: int


def find_budget(peak: Callable[[int], int | None], limit: int, most: int, *, tried: int | None) -> Budget:
    """The largest multiple of UNIT whose peak stays below the limit; UNIT where none does.

    Args:
        peak: tokens -> bytes that an update of so many takes; None where it does not fit.
        limit: bytes.
        most: more tokens than this are of no use.
        tried: larger budgets than this are not tried, but thought to be in line; None: everything is tried.
    """
    fits, too_large = Budget(UNIT, peak(UNIT) or limit), max(most // UNIT, 1) * UNIT + UNIT
    if fits.bytes >= limit:
        return fits
    before = fits
    while (next_tokens := min(fits.tokens * 2, too_large - UNIT)) > fits.tokens:
        if tried is not None and next_tokens > tried:
            return _in_line(before, fits, limit, too_large - UNIT)
        found = peak(next_tokens)
        if found is None or found > limit:
            too_large = next_tokens
            break
        before, fits = fits, Budget(next_tokens, found)
    while too_large - fits.tokens > UNIT:
        middle = (fits.tokens + too_large) // 2 // UNIT * UNIT
        found = peak(middle)
        if found is None or found > limit:
            too_large = middle
        else:
            fits = Budget(middle, found)
    return fits


def _in_line(first: Budget, second: Budget, limit: int, most: int) -> Budget:
    """As far as the line through two points stays below the limit."""
    per_token = max((second.bytes - first.bytes) / (second.tokens - first.tokens), 1.0)
    tokens = int(second.tokens + (limit - second.bytes) / per_token) // UNIT * UNIT
    tokens = max(min(tokens, most), second.tokens)
    return Budget(tokens, int(second.bytes + (tokens - second.tokens) * per_token))


def budget_of(
    updater: Updater, dataset: ParallelDataset, stream: Callable[[int], MicroBatches], limit: int
) -> Budget:
    """The largest budget for a model, its optimizer and these data. The model is spoilt by it.

    Args:
        updater: of a model that is thrown away afterwards.
        dataset: whose sentences are trained on.
        stream: tokens -> a stream with that budget, which builds the batches.
        limit: bytes that this process may hold.

    Raises:
        ConfigError: one sentence is too much, or the memory cannot be measured here.
    """
    lengths = dataset.src_lengths, dataset.tgt_lengths

    def size(batch: Indices) -> tuple[int, int]:
        longest = max(int(side[batch].max()) for side in lengths)
        return longest * len(batch), longest

    def peak(tokens: int) -> int | None:
        worst = max(epoch_batches(*lengths, max_tokens=tokens, seed=0, epoch=0), key=size)
        if not reset_peak_memory(updater.device):
            raise ConfigError(
                "training.max_tokens: auto cannot measure memory here (/proc/self/clear_refs); set a number"
            )
        update = updater.run(1, [stream(tokens).build(worst)])
        return peak_memory(updater.device) if update.pieces == 1 else None

    most = max(int(side.sum(dtype="int64")) for side in lengths)
    tried = _LARGEST_TRIED_ON_CPU if updater.device.type == "cpu" else None
    return find_budget(peak, int(limit * _SHARE), most, tried=tried)
