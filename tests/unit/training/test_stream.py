"""The stream of micro-batches is a pure function of seed and position."""

from contextlib import closing
from itertools import chain

import numpy as np
import pytest
import torch

from transformer_mt.data.dataset import SourceNoise
from transformer_mt.text.noise import NoiseRates
from transformer_mt.training.stream import MicroBatches


class Numbers:
    """Forty examples; the source of example i is i + 4 repeated, so that a batch tells what it holds."""

    src_lengths = np.array([1 + i % 7 for i in range(40)], dtype=np.int32)
    tgt_lengths = np.array([1 + i % 5 for i in range(40)], dtype=np.int32)

    def ids(self, index):
        return [index + 4] * self.src_lengths[index], [3] * self.tgt_lengths[index]

    def noised_lengths(self, noise, *, seed, epoch):
        return np.where(np.arange(40) % (epoch + 2) == 0, 3 * self.src_lengths, self.src_lengths)

    def drawn_ids(self, index, *, rate, seed, epoch, max_length, noise):
        self.asked = max_length
        lengths = self.src_lengths if noise is None else self.noised_lengths(noise, seed=seed, epoch=epoch)
        return [epoch + 4] * lengths[index], [3] * self.tgt_lengths[index]


NOISE = SourceNoise(NoiseRates(upper=0.3), max_length=50)


def stream(epoch=1, position=0, sampling=0.0, seed=3, noise=None, **more):
    return MicroBatches(
        Numbers(),
        max_tokens=24,
        seed=seed,
        sampling=sampling,
        noise=noise,
        epoch=epoch,
        position=position,
        **more,
    )


def seen(batches):
    return [batch.indices.tolist() for batch in batches]


def test_every_example_once_per_epoch_and_another_order_in_the_next():
    batches = stream()
    count = len(batches.order())
    first, second = seen(batches.take(count)), seen(batches.take(count))
    assert sorted(chain.from_iterable(first)) == list(range(40))
    assert sorted(chain.from_iterable(second)) == list(range(40))
    assert first != second
    assert (batches.epoch, batches.position) == (2, count)


@pytest.mark.parametrize("noise", [None, NOISE])
@pytest.mark.parametrize("used", [0, 1, 5, 13])
def test_a_new_stream_at_the_position_goes_on(used, noise):
    """Pins lost or repeated examples after a resume (B100), across the end of an epoch too; with noise the
    batches of each epoch are others."""
    whole = stream(noise=noise)
    expected = whole.take(30)
    first = stream(noise=noise)
    first.take(used)
    again = stream(first.epoch, first.position, noise=noise).take(30 - used)
    assert seen(again) == seen(expected[used:])
    assert all(torch.equal(a.src_ids, b.src_ids) for a, b in zip(again, expected[used:], strict=True))


def test_noised_batches_stay_within_the_budget():
    """Pins batches made for the plain lengths: in upper case a source is longer."""
    for epoch in (1, 2):
        batches = stream(epoch, noise=NOISE)
        taken = batches.take(len(batches.order()))
        assert max(batch.src_ids.numel() for batch in taken) <= 24
        assert sum(int(batch.src_mask.sum()) for batch in taken) == batches.src_lengths().sum()
        assert sorted(chain.from_iterable(seen(taken))) == list(range(40))


def test_seed_changes_the_order():
    assert seen(stream(seed=3).take(5)) != seen(stream(seed=4).take(5))


def test_sampling_stays_within_the_budget_of_the_batch():
    batches = stream(sampling=0.1)
    (batch,) = batches.take(1)
    assert batches._dataset.asked == 24 // len(batch.indices)
    assert set(batch.src_ids.flatten().tolist()) <= {0, 5}


@pytest.mark.parametrize("noise", [None, NOISE])
@pytest.mark.parametrize("workers", [1, 2])
def test_batches_built_ahead_are_the_same(workers, noise):
    """Pins an order that workers change (B147), and a position that counts what is built but not yet used."""
    plain = stream(sampling=0.1, noise=noise)
    with closing(stream(sampling=0.1, noise=noise)) as ahead:
        ahead._workers = workers
        count = len(plain.order()) + 3  # into the next epoch, whose draws are others
        for expected, found in zip(plain.take(count), ahead.take(count), strict=True):
            assert found.indices.tolist() == expected.indices.tolist()
            assert torch.equal(found.src_ids, expected.src_ids)
            assert torch.equal(found.labels, expected.labels)
        assert (ahead.epoch, ahead.position) == (plain.epoch, plain.position) == (2, 3)
        ahead.close()
        assert seen(ahead.take(4)) == seen(plain.take(4))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_update_goes_on_into_the_next_epoch(workers):
    """B089: no micro-batch at the end of an epoch is dropped or alone in its update: with 4 of them in each,
    as many updates as there are micro-batches are 4 epochs, each example seen 4 times."""
    batches = stream()
    batches._workers = workers
    count = len(batches.order())
    assert count % 4
    taken = [batches.take(4) for _ in range(count)]
    batches.close()
    assert {len(update) for update in taken} == {4}
    counts = np.bincount([index for update in taken for batch in update for index in batch.indices])
    assert counts.tolist() == [4] * 40
    assert (batches.epoch, batches.position) == (4, count)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("count", [1, 3])
def test_processes_share_what_one_would_take(count, workers):
    """B135: each has as many micro-batches, across the end of epochs whose number of them is odd, and all of
    them together are those of one process, in its order."""
    alone = stream()
    assert len(alone.order()) % 2 == 1
    shares = [stream(rank=rank, world=2, workers=workers) for rank in range(2)]
    with closing(shares[0]), closing(shares[1]):
        for _ in range(2 * len(alone.order())):
            taken = [seen(share.take(count)) for share in shares]
            assert [len(share) for share in taken] == [count, count]
            assert list(chain.from_iterable(zip(*taken, strict=True))) == seen(alone.take(2 * count))
            places = [(one.epoch, one.position) for one in (alone, *shares)]
            assert len(set(places)) == 1
    later = stream(rank=1, world=2, workers=workers, epoch=1, position=4)
    with closing(later):
        assert seen(later.take(1)) == seen(stream(position=5).take(1))
