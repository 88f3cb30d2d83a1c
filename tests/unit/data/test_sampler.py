"""Sampler: budget, order, padding and speed."""

from __future__ import annotations

import time

import numpy as np
import pytest

from transformer_mt.data import sampler
from transformer_mt.data.sampler import epoch_batches, padding_share


def _lengths(count: int, seed: int = 0) -> tuple[sampler.Lengths, sampler.Lengths]:
    generator = np.random.default_rng(seed)
    src = generator.integers(3, 80, count)
    return src.astype(np.int32), (src * generator.uniform(0.7, 1.4, count) + 1).astype(np.int32)


def test_long_sentences_are_batches_of_their_own() -> None:
    """B152: one sentence over the budget ends neither in an empty batch nor in an endless loop."""
    src, tgt = np.array([5, 100, 5, 7]), np.array([6, 3, 65, 8])
    batches = epoch_batches(src, tgt, max_tokens=64, seed=1, epoch=0)
    assert sorted(sorted(batch.tolist()) for batch in batches) == [[0, 3], [1], [2]]


def test_a_tiny_data_set_is_one_batch() -> None:
    """B150: fewer examples than fit in a batch are still trained on."""
    batches = epoch_batches(np.array([3]), np.array([4]), max_tokens=4096, seed=1, epoch=0)
    assert [batch.tolist() for batch in batches] == [[0]]


def test_order_depends_on_seed_and_epoch() -> None:
    """Other epochs and seeds see other orders; (seed, epoch) are not merely added."""
    src, tgt = _lengths(500)
    orders = {
        tuple(np.concatenate(epoch_batches(src, tgt, max_tokens=512, seed=seed, epoch=epoch)).tolist())
        for seed in range(3)
        for epoch in range(3)
    }
    assert len(orders) == 9


def test_batches_are_not_in_order_of_length() -> None:
    """A model must not see all short sentences first."""
    src, tgt = _lengths(5000)
    longest = [tgt[batch].max() for batch in epoch_batches(src, tgt, max_tokens=512, seed=1, epoch=0)]
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.3


def test_windows_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """More examples than are sorted together: every one once, all the same."""
    monkeypatch.setattr(sampler, "_WINDOW", 100)
    src, tgt = _lengths(950)
    batches = epoch_batches(src, tgt, max_tokens=512, seed=1, epoch=0)
    assert np.array_equal(np.sort(np.concatenate(batches)), np.arange(950))


def test_the_order_is_pinned() -> None:
    """A changed order would break the continuation of runs: raise the format version with it."""
    src, tgt = np.array([3, 9, 4, 8, 5, 7]), np.array([4, 8, 3, 9, 6, 7])
    batches = epoch_batches(src, tgt, max_tokens=18, seed=1, epoch=2)
    assert [batch.tolist() for batch in batches] == PINNED


PINNED = [[5, 1], [2, 0, 4], [3]]


def test_padding_share_by_hand() -> None:
    """Lengths 2, 4 and 3 in batches of two and one: 9 tokens in 11 places."""
    batches = [np.array([0, 1]), np.array([2])]
    assert padding_share(np.array([2, 4, 3]), batches) == pytest.approx(2 / 11)
    assert padding_share(np.array([2, 4, 3]), []) == 0.0


def test_speed() -> None:
    """29,000 pairs in well under 0.1 s; the limit here leaves room for a busy machine."""
    src, tgt = _lengths(29_000)
    epoch_batches(src, tgt, max_tokens=4096, seed=1, epoch=0)
    start = time.process_time()
    epoch_batches(src, tgt, max_tokens=4096, seed=1, epoch=1)
    assert time.process_time() - start < 0.3


@pytest.mark.parametrize("longest", [9, 300, 100_000])
def test_the_order_of_lengths_is_that_of_a_plain_sort(longest: int) -> None:
    """Short lengths are sorted in another way, which must not show: a run goes on with the same batches."""
    generator = np.random.default_rng(7)
    src, tgt = (generator.integers(1, longest, 2000).astype(np.int32) for _ in range(2))
    indices = generator.permutation(np.arange(2000, dtype=np.int32))
    towards = np.where(tgt[indices] % 2 == 0, src[indices], -src[indices])
    expected = indices[np.lexsort((towards, tgt[indices]))]
    assert np.array_equal(sampler._by_length(indices, src, tgt), expected)
    assert len(sampler._by_length(indices[:0], src, tgt)) == 0
