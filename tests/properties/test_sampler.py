"""Batches of an epoch: each example once, within the budget, a pure function of (seed, epoch)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.data.sampler import epoch_batches

LENGTHS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=80)


@given(lengths=LENGTHS, max_tokens=st.integers(1, 200), seed=st.integers(0, 2**32), epoch=st.integers(0, 9))
def test_every_example_once_and_within_budget(
    lengths: list[tuple[int, int]], max_tokens: int, seed: int, epoch: int
) -> None:
    """B150, B152: no example lost or repeated, no empty batch; one over the budget is a batch by itself."""
    src, tgt = np.array(lengths, dtype=np.int32).T
    batches = epoch_batches(src, tgt, max_tokens=max_tokens, seed=seed, epoch=epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) * max(src[batch].max(), tgt[batch].max()) <= max_tokens or len(batch) == 1
    again = epoch_batches(src, tgt, max_tokens=max_tokens, seed=seed, epoch=epoch)
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches]
