"""Sentences of random tokens: cost depends on their length alone."""

from __future__ import annotations

import numpy as np

from transformer_mt.config import Recipe
from transformer_mt.data.batch import Batch, make_batch
from transformer_mt.text.tokenizer import EOS_ID
from transformer_mt.text.vocabulary import NUM_SPECIAL


def vocab_sizes(recipe: Recipe) -> tuple[int, int]:
    """Pieces of the source and of the target, as the recipe asks for them."""
    return recipe.tokenizer.vocab_size, recipe.tokenizer.vocab_size


def random_sentences(rows: int, length: int, vocab_size: int, seed: int = 0) -> list[list[int]]:
    """`rows` sentences of `length` ids, eos counted, which each ends in."""
    ids = np.random.default_rng(seed).integers(NUM_SPECIAL, vocab_size, size=(rows, length))
    ids[:, -1] = EOS_ID
    rows_of_ids: list[list[int]] = ids.tolist()
    return rows_of_ids


def random_batch(rows: int, length: int, recipe: Recipe) -> Batch:
    """Sentences and translations of this length."""
    src, tgt = (
        random_sentences(rows, length, size, seed) for seed, size in enumerate(vocab_sizes(recipe))
    )
    return make_batch(list(zip(src, tgt, strict=True)))
