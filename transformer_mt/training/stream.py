"""The endless stream of micro-batches, and where in it a run stands.

The stream is a pure function of seed and position: epoch after epoch, each example once per epoch, its source
noised and its segmentation drawn anew where the recipe wants that. The position counts micro-batches that
were used, not those that are built ahead, so a continued run goes on with the next one. Several processes
deal them out among each other, and all stand at the same position. Nothing is known of models.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from itertools import islice

from transformer_mt.data.batch import Batch, make_batch
from transformer_mt.data.dataset import Ids, ParallelDataset, SourceNoise
from transformer_mt.data.sampler import Indices, epoch_batches
from transformer_mt.training.loader import built_ahead


class MicroBatches:
    """`take(n)` gives the next n micro-batches; `epoch` (from 1) and `position` say where it stands."""

    def __init__(
        self,
        dataset: ParallelDataset,
        *,
        max_tokens: int,
        seed: int,
        sampling: float,
        noise: SourceNoise | None = None,
        epoch: int,
        position: int,
        workers: int = 0,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        """Stand at a place.

        Args:
            workers: processes that build batches ahead; with 0 each is built when it is taken.
            rank: of this process among those that train together.
            world: their number.
        """
        self.epoch, self.position = epoch, position
        self._rank, self._world = rank, world
        self._workers = workers
        self._ahead: Generator[Batch] | None = None
        self._dataset, self._max_tokens, self._seed, self._sampling = dataset, max_tokens, seed, sampling
        self._noise = noise
        self._start(epoch)

    def take(self, count: int) -> list[Batch]:
        """This process's part of the next `count * world` micro-batches: every world-th from its rank on.

        They go across the end of an epoch where needed, so that every process has as many.
        """
        batches = []
        for number in range(count * self._world):
            if self.position == len(self._order):
                self.epoch, self.position = self.epoch + 1, 0
                self._start(self.epoch)
            if number % self._world == self._rank:
                batches.append(self._next())
            self.position += 1
        return batches

    def close(self) -> None:
        """End the processes that build ahead; `take` starts new ones."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def build(self, indices: Indices, epoch: int | None = None) -> Batch:
        """The batch of these examples as an epoch draws them (default: this one)."""
        if not self._sampling and self._noise is None:
            return make_batch([self._dataset.ids(int(i)) for i in indices], indices=indices)
        longest = max(self._max_tokens // len(indices), 1)
        return make_batch(
            [
                self._dataset.drawn_ids(
                    int(i),
                    rate=self._sampling,
                    seed=self._seed,
                    epoch=epoch or self.epoch,
                    max_length=longest,
                    noise=self._noise,
                )
                for i in indices
            ],
            indices=indices,
        )

    def order(self) -> Sequence[Indices]:
        """All micro-batches of the current epoch, as example indices."""
        return self._order

    def src_lengths(self) -> Ids:
        """(N,) source tokens with eos in the current epoch, before subword sampling."""
        return self._src_lengths

    def _next(self) -> Batch:
        if not self._workers:
            return self.build(self._order[self.position])
        if self._ahead is None:
            self._ahead = built_ahead(lambda place: self.build(*place), self._own_places(), self._workers)
        return next(self._ahead)

    def _own_places(self) -> Iterator[tuple[Indices, int]]:
        return islice(self._places(), 0, None, self._world)

    def _places(self) -> Iterator[tuple[Indices, int]]:
        """(examples, epoch) of every micro-batch from here on."""
        epoch, order, start = self.epoch, self._order, self.position
        while True:
            yield from ((indices, epoch) for indices in order[start:])
            epoch, start = epoch + 1, 0
            order = self._order_of(epoch, self._lengths_of(epoch))

    def _start(self, epoch: int) -> None:
        self._order: Sequence[Indices] = ()  # the last epoch's is as large as the one that is made now
        self._src_lengths = self._lengths_of(epoch)
        self._order = self._order_of(epoch, self._src_lengths)

    def _lengths_of(self, epoch: int) -> Ids:
        dataset, noise = self._dataset, self._noise
        return (
            dataset.src_lengths
            if noise is None
            else dataset.noised_lengths(noise, seed=self._seed, epoch=epoch)
        )

    def _order_of(self, epoch: int, src_lengths: Ids) -> list[Indices]:
        return epoch_batches(
            src_lengths,
            self._dataset.tgt_lengths,
            max_tokens=self._max_tokens,
            seed=self._seed,
            epoch=epoch,
        )
