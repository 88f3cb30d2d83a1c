"""Sentences of random tokens: what they cost depends on their length alone."""

from __future__ import annotations

import numpy as np

from transformer_mt.data.batch import Batch, make_batch
from transformer_mt.text.tokenizer import EOS_ID
from transformer_mt.text.vocabulary import NUM_SPECIAL


def random_sentences(rows: int, length: int, vocab_size: int, seed: int = 0) -> list[list[int]]:
    """`rows` sentences of `length` ids, eos counted, which each ends in."""
    ids = np.random.default_rng(seed).integers(NUM_SPECIAL, vocab_size, size=(rows, length))
    ids[:, -1] = EOS_ID
    sentences: list[list[int]] = ids.tolist()
    return sentences


def random_batch(rows: int, length: int, vocab_size: int) -> Batch:
    """Sentences and translations of this length."""
    sides = (random_sentences(rows, length, vocab_size, seed) for seed in (0, 1))
    return make_batch(list(zip(*sides, strict=True)))
