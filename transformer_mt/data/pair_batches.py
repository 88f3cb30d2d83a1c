"""Pairs as sequences, source and then target, in batches of equal length: nothing is padded, nothing masked.

An epoch holds every pair and one counter-example of it, of a kind that is drawn. Knows no model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer_mt.data.dataset import Ids, ParallelDataset
from transformer_mt.data.negatives import KINDS, Indices, Negatives
from transformer_mt.text.tokenizer import Tokenizers

TRANSLATION = "translation"
"""What a pair is called that is not a counter-example of some kind."""


@dataclass(frozen=True)
class PairBatch:
    """B sequences of one length L."""

    ids: Tensor
    """(B, L) int64."""
    src_lengths: Tensor
    """(B,) int64, source tokens with eos."""
    is_translation: Tensor
    """(B,) float32, 1 or 0."""
    rows: Indices
    """(B,) which rows of all these are."""

    def to(self, device: torch.device) -> PairBatch:
        """The batch on another device."""
        moved = {name: getattr(self, name).to(device) for name in ("ids", "src_lengths", "is_translation")}
        return replace(self, **moved)


class PairRows:
    """Pairs and counter-examples in one order; each is made when its batch is."""

    def __init__(
        self,
        data: ParallelDataset,
        indices: Indices,
        kinds: Sequence[str],
        tokenizers: Tokenizers,
        negatives: Negatives,
    ) -> None:
        """Args: indices (N,), examples; kinds (N,), TRANSLATION or one of KINDS for each."""
        self._data, self._negatives = data, negatives
        self._first_target_id = 0 if tokenizers.shared else tokenizers.src.vocab_size
        made, lengths = [], []
        for row, (index, kind) in enumerate(zip(indices, kinds, strict=True)):
            target = self._target(int(index), kind)
            if target is not None:  # of some kinds a pair has no counter-example
                made.append(row)
                lengths.append(int(data.src_lengths[index]) + len(target))
        self.indices: Indices = indices[np.array(made, dtype=np.int64)]
        """(N',) the example of each row."""
        self.kinds = [kinds[row] for row in made]
        """What each row is."""
        self.lengths: Indices = np.array(lengths, dtype=np.int64)
        """(N',) tokens of both sides."""

    def __len__(self) -> int:
        return len(self.indices)

    def batches(self, max_tokens: int, draw: np.random.Generator | None = None) -> Iterator[PairBatch]:
        """Every row once.

        Args:
            max_tokens: places of a batch at most, of which a long sequence may have more by itself.
            draw: which rows of one length come together, and in which order; None leaves them as they are.
        """
        order = np.arange(len(self)) if draw is None else draw.permutation(len(self))
        cut = cut_by_length(self.lengths, order, max_tokens)
        for number in range(len(cut)) if draw is None else draw.permutation(len(cut)):
            yield self.batch(cut[number])

    def batch(self, rows: Indices) -> PairBatch:
        """One batch of rows of equal length."""
        sides = [self._sides(int(row)) for row in rows]
        ids = np.stack([np.concatenate([src, tgt + self._first_target_id]) for src, tgt in sides])
        labels = [float(self.kinds[row] == TRANSLATION) for row in rows]
        return PairBatch(
            ids=torch.from_numpy(ids.astype(np.int64)),
            src_lengths=torch.tensor([len(src) for src, _ in sides]),
            is_translation=torch.tensor(labels),
            rows=rows,
        )

    def _sides(self, row: int) -> tuple[Ids, Ids]:
        index, kind = int(self.indices[row]), self.kinds[row]
        target = self._target(index, kind)
        assert target is not None
        return self._data.ids(index)[0], target

    def _target(self, index: int, kind: str) -> Ids | None:
        return self._data.ids(index)[1] if kind == TRANSLATION else self._negatives.make(index, kind)


def training_rows(
    data: ParallelDataset,
    indices: Indices,
    tokenizers: Tokenizers,
    kinds: Sequence[str],
    *,
    seed: int,
    epoch: int,
) -> PairRows:
    """Each of these examples as it is, and a counter-example of it: a pure function of the arguments.

    Args:
        indices: (N,) examples, from which other targets are taken as well.
        kinds: the kind of each is drawn from these, which may name one several times.
    """
    negatives = Negatives(data, indices, tokenizers.tgt, seed=seed, epoch=epoch)
    drawn = np.random.default_rng([seed, epoch]).integers(len(kinds), size=len(indices))
    drawn_kinds = [*[TRANSLATION] * len(indices), *(kinds[number] for number in drawn)]
    return PairRows(data, np.tile(indices, 2), drawn_kinds, tokenizers, negatives)


def every_row(data: ParallelDataset, indices: Indices, tokenizers: Tokenizers, *, seed: int) -> PairRows:
    """Each of these examples as it is, and a counter-example of every kind."""
    negatives = Negatives(data, indices, tokenizers.tgt, seed=seed, epoch=0)
    kinds = (TRANSLATION, *KINDS)
    repeated = [kind for kind in kinds for _ in indices]
    return PairRows(data, np.tile(indices, len(kinds)), repeated, tokenizers, negatives)


def plain_rows(data: ParallelDataset, indices: Indices, tokenizers: Tokenizers) -> PairRows:
    """Each of these examples as it is."""
    negatives = Negatives(data, indices, tokenizers.tgt, seed=0, epoch=0)
    return PairRows(data, indices, [TRANSLATION] * len(indices), tokenizers, negatives)


def cut_by_length(lengths: Indices, order: Indices, max_tokens: int) -> list[Indices]:
    """Rows of equal length, as many together as the budget allows; every row once.

    Args:
        lengths: (N,) of each row.
        order: (N,) the rows, of which those of one length keep their order.
        max_tokens: budget of a batch.
    """
    order = order[np.argsort(lengths[order], kind="stable")]
    ends = np.flatnonzero(np.diff(lengths[order])) + 1
    batches = []
    for rows in np.split(order, ends) if len(order) else []:
        size = max(max_tokens // int(lengths[rows[0]]), 1)
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return batches
