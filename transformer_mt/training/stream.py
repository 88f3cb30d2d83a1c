"""The endless stream of micro-batches, and where in it a run stands.

The stream is a pure function of seed and position: epoch after epoch, each example once per epoch. The
position counts micro-batches that were used, so a continued run goes on with the next one. Nothing is known
of models.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transformer_mt.data.batch import Batch, make_batch
from transformer_mt.data.dataset import ParallelDataset
from transformer_mt.data.sampler import epoch_batches


class MicroBatches:
    """`take(n)` gives the next n micro-batches; `epoch` (from 1) and `position` say where it stands."""

    def __init__(
        self,
        dataset: ParallelDataset,
        *,
        max_tokens: int,
        seed: int,
        sampling: float,
        epoch: int,
        position: int,
    ) -> None:
        self.epoch, self.position = epoch, position
        self._dataset, self._max_tokens, self._seed, self._sampling = dataset, max_tokens, seed, sampling
        self._order = self._order_of(epoch)

    def take(self, count: int) -> list[Batch]:
        """The next micro-batches, across the end of an epoch where needed."""
        batches = []
        for _ in range(count):
            if self.position == len(self._order):
                self.epoch, self.position = self.epoch + 1, 0
                self._order = self._order_of(self.epoch)
            batches.append(self.build(self._order[self.position]))
            self.position += 1
        return batches

    def build(self, indices: NDArray[np.int64]) -> Batch:
        """The batch of these examples, in this epoch's segmentation."""
        if not self._sampling:
            return make_batch([self._dataset.ids(int(i)) for i in indices], indices=indices)
        longest = max(self._max_tokens // len(indices), 1)
        return make_batch(
            [
                self._dataset.sampled_ids(
                    int(i), rate=self._sampling, seed=self._seed, epoch=self.epoch, max_length=longest
                )
                for i in indices
            ],
            indices=indices,
        )

    def order(self) -> Sequence[NDArray[np.int64]]:
        """All micro-batches of the current epoch, as example indices."""
        return self._order

    def _order_of(self, epoch: int) -> list[NDArray[np.int64]]:
        return epoch_batches(
            self._dataset.src_lengths,
            self._dataset.tgt_lengths,
            max_tokens=self._max_tokens,
            seed=self._seed,
            epoch=epoch,
        )
