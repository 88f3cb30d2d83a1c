"""Which examples are batched together, and in which order: a pure function of (seed, epoch).

Batches hold examples of like length on both sides, within a budget of padded tokens. Whoever consumes them
keeps a position in the list; nothing here has a state. Knows lengths only, no ids and no text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.integer]
Lengths = npt.NDArray[np.integer]

# Sorting reaches this far: more examples than this are first dealt at random into windows.
_WINDOW = 1 << 20


def epoch_batches(
    src_lengths: Lengths, tgt_lengths: Lengths, *, max_tokens: int, seed: int, epoch: int
) -> list[Indices]:
    """The micro-batches of one epoch; every example is in exactly one of them.

    An example that alone exceeds `max_tokens` is a batch by itself.

    Args:
        src_lengths: (N,) source tokens with eos.
        tgt_lengths: (N,) target tokens with eos.
        max_tokens: most rows times padded length of the larger side.
        seed: any non-negative number.
        epoch: any non-negative number.

    Returns:
        Arrays of example indices, in the order of consumption.
    """
    generator = np.random.Generator(np.random.PCG64([seed, epoch]))
    # Half the memory of the usual indices, and the same permutation.
    order = generator.permutation(np.arange(len(src_lengths), dtype=np.int32))
    batches: list[Indices] = []
    for start in range(0, len(order), _WINDOW):
        window = _by_length(order[start : start + _WINDOW], src_lengths, tgt_lengths)
        batches += _cut(window, np.maximum(src_lengths[window], tgt_lengths[window]), max_tokens)
    return [batches[place] for place in generator.permutation(len(batches))]


def padding_share(lengths: Lengths, batches: Sequence[Indices]) -> float:
    """Share of padding among the places of one side of the batches, 0 … 1."""
    real = sum(int(lengths[batch].sum()) for batch in batches)
    places = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    return 1.0 - real / places if places else 0.0


def _by_length(indices: Indices, src_lengths: Lengths, tgt_lengths: Lengths) -> Indices:
    """Sorted by target length, then source length, up and down by turns so that neighbours stay alike."""
    tgt, src = tgt_lengths[indices], src_lengths[indices]
    if max(tgt.max(initial=0), src.max(initial=0)) <= np.iinfo(np.uint16).max:
        tgt, src = (
            tgt.astype(np.uint16),
            src.astype(np.uint16),
        )  # numpy sorts these by radix, five times as fast
    by_src = np.argsort(np.where(tgt % 2 == 0, src, src.max(initial=0) - src), kind="stable")
    return indices[by_src[np.argsort(tgt[by_src], kind="stable")]]


def _cut(order: Indices, longer: Lengths, max_tokens: int) -> list[Indices]:
    """Cut a sorted row of examples into batches, each as large as the budget allows.

    Args:
        order: (N,) example indices.
        longer: (N,) tokens of the longer side of each.
    """
    batches: list[Indices] = []
    start = 0
    while start < len(order):
        ahead = longer[start : start + max(max_tokens // int(longer[start]), 1)]
        places = np.maximum.accumulate(ahead.astype(np.int64)) * np.arange(1, len(ahead) + 1)
        size = max(int(np.searchsorted(places, max_tokens, side="right")), 1)
        batches.append(order[start : start + size])
        start += size
    return batches
