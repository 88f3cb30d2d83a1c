"""One seed in, every random stream out: weights, data order, dropout and subword sampling.

Each stream is a pure function of the run's seed and of where in training it is used, so no generator state is
ever stored: a resumed run draws what the uninterrupted one would have drawn.
"""

from __future__ import annotations

import hashlib

import torch


def derive_seed(seed: int, *place: int | str) -> int:
    """A 63-bit seed for one place in the run, e.g. `derive_seed(1, "dropout", step, micro_batch)`."""
    text = repr((seed, *place)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def seed_weights(seed: int) -> None:
    """Make the default generator ready to draw initial weights."""
    torch.manual_seed(derive_seed(seed, "weights"))


def seed_micro_batch(seed: int, step: int, micro_batch: int) -> None:
    """Make the default generator ready for the dropout of one forward pass; micro_batch counts those of all
    processes, so that their number changes nothing."""
    # The 0 means nothing; without it runs that were begun earlier would not go on bit for bit.
    torch.manual_seed(derive_seed(seed, "dropout", step, micro_batch, 0))
