"""The cache of decoding: what moving, leaving and branching do to it."""

from __future__ import annotations

import torch

from transformer_mt.model.cache import FIRST_POSITIONS, KeyValueCache, TransformerState

B, H, K, E = 3, 2, 4, 5


def test_appending_past_the_capacity_keeps_the_past() -> None:
    """Pins a cache that forgets when it grows."""
    torch.manual_seed(0)
    steps = torch.randn(FIRST_POSITIONS + 3, B, H, K, E)
    cache = KeyValueCache.empty(B, H, K, E, like=steps)
    for position, new in enumerate(steps):
        cache = cache.append(new, -new, position * K)
    expected = torch.cat(tuple(steps), dim=2)
    assert torch.equal(cache.keys[:, :, : cache.used], expected)
    assert torch.equal(cache.values[:, :, : cache.used], -expected)


def test_a_state_may_be_stepped_twice() -> None:
    """Pins two followers of one state that write into the same slots."""
    start = KeyValueCache.empty(B, H, K, E, like=torch.empty(0))
    first = start.append(torch.full((B, H, K, E), 1.0), torch.zeros(B, H, K, E), 0)
    second = start.append(torch.full((B, H, K, E), 2.0), torch.zeros(B, H, K, E), 0)
    assert (first.keys[:, :, :K] == 1).all()
    assert (second.keys[:, :, :K] == 2).all()


def test_reorder_moves_histories_and_no_keys() -> None:
    """Pins beams whose past does not follow them, and copies of the cache."""
    cache = KeyValueCache.empty(1, H, 2, E, like=torch.empty(0))
    ancestors = torch.tensor([[[0, 2], [1, 3]]])
    state = TransformerState((), torch.ones(1, 1, 1, 6).bool(), (cache,), ancestors, (0, 2, 4))
    moved = state.reorder(torch.tensor([[1, 1]]))
    assert moved.ancestors.tolist() == [[[1, 3], [1, 3]]]
    assert moved.caches[0] is cache
    assert moved.next_ancestors(2).tolist() == [[[1, 3, 4], [1, 3, 5]]]


def test_beams_may_become_more() -> None:
    """Pins slots counted as positions times beams: one beam first, then three, then two."""
    state = TransformerState((), torch.ones(1, 1, 1, 6).bool(), (), torch.empty(1, 5, 0, dtype=torch.long))
    assert state.next_ancestors(1).tolist() == [[[0]]]
    ancestors = state.next_ancestors(1)
    state = TransformerState((), state.src_mask, (), ancestors, (0, 1)).reorder(torch.tensor([[0, 0, 0]]))
    ancestors = state.next_ancestors(3)
    assert ancestors.tolist() == [[[0, 1], [0, 2], [0, 3]]]
    state = TransformerState((), state.src_mask, (), ancestors, (0, 1, 4)).reorder(torch.tensor([[2, 0]]))
    assert state.next_ancestors(2).tolist() == [[[0, 3, 4], [0, 1, 5]]]


def test_keep_selects_rows_of_everything() -> None:
    """Pins a part of the state that stays behind when sentences leave."""
    torch.manual_seed(1)
    cache = KeyValueCache.empty(B, H, K, E, like=torch.empty(0))
    cache = cache.append(torch.randn(B, H, K, E), torch.randn(B, H, K, E), 0)
    memory = (torch.randn(B, H, 7, E), torch.randn(B, H, 7, E))
    src_mask, ancestors = torch.rand(B, 1, 1, 7) < 0.5, torch.randint(0, K, (B, K, 1))
    state = TransformerState((memory,), src_mask, (cache,), ancestors, (0, K))
    rows = torch.tensor([2, 0])
    kept = state.keep(rows)
    assert kept.starts == state.starts
    assert torch.equal(kept.memory[0][0], memory[0][rows])
    assert torch.equal(kept.memory[0][1], memory[1][rows])
    assert torch.equal(kept.src_mask, state.src_mask[rows])
    assert torch.equal(kept.caches[0].keys[:, :, :K], cache.keys[rows, :, :K])
    assert torch.equal(kept.caches[0].values[:, :, :K], cache.values[rows, :, :K])
    assert torch.equal(kept.ancestors, state.ancestors[rows])
    assert kept.length == 1
