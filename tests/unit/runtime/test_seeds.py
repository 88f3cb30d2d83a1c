"""Random streams are pure functions of seed and place."""

import torch

from transformer_mt.runtime.seeds import derive_seed, seed_micro_batch, seed_weights


def test_seeds_are_fixed_values_and_differ_by_place():
    """Pins a seed that depends on hash order or process: the value is the same everywhere, for ever."""
    assert derive_seed(1, "weights") == 2891528143651911317
    places = [(1, "a", 1, 2), (1, "a", 2, 1), (1, "a", 12), (2, "a", 1, 2), (1, "b", 1, 2)]
    assert len({derive_seed(*place) for place in places}) == len(places)
    assert all(0 <= derive_seed(*place) < 2**63 for place in places)


def test_the_same_place_draws_the_same_numbers():
    draws = []
    for step, micro_batch in ((3, 0), (3, 0), (3, 1), (4, 0)):
        seed_micro_batch(7, step, micro_batch)
        draws.append(tuple(torch.rand(3).tolist()))
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3
    seed_weights(7)
    assert tuple(torch.rand(3).tolist()) not in draws
