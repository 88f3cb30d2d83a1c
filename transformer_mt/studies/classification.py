"""A classifier of sentence pairs is trained, and examined on pairs that it has not seen.

The experiment that is cheap enough to repeat for every question about attention: is this pair a translation?
The measure trains the encoder of the recipe itself, on its training text; it is examined on the validation
text. Knows nothing of translating.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from pydantic import BaseModel

from transformer_mt.config import Count, Recipe
from transformer_mt.data.dataset import ParallelDataset
from transformer_mt.data.negatives import KINDS, Indices
from transformer_mt.data.pair_batches import every_row
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import DivergenceError
from transformer_mt.model.classifier import PairClassifier
from transformer_mt.studies.meter import peak_of, timed
from transformer_mt.studies.values import Measured
from transformer_mt.training.pair_classifier import accuracies, log_odds, train_classifier


class Classification(BaseModel):
    """How long a classifier learns, and by which lengths its answers are told apart."""

    model_config = Recipe.model_config

    updates: Count
    """Updates of its training."""
    lengths: list[Count] = []
    """Upper ends of buckets, rising: tokens of the longer side of a pair, eos included."""


def measure(recipe: Recipe, settings: Classification, device: torch.device) -> Iterator[Measured]:
    """`accuracy` by kind of counter-example, `accuracy_by_length` by length too, `seconds` and `peak_mib`.

    Accuracies are those of `pair_classifier.accuracies`, None where training diverged. seconds: of training
    alone. peak_mib: the most that was held meanwhile, beyond what was held before.

    Raises:
        ConfigError: an architecture without self-attention.
        DataError: text that cannot be used.
    """
    prepared = prepare(recipe)

    def train() -> PairClassifier | None:
        with contextlib.suppress(DivergenceError):
            return train_classifier(
                recipe,
                prepared.train,
                np.arange(len(prepared.train)),
                prepared.tokenizers,
                compares_sides=False,  # attention is what is studied
                updates=settings.updates,
                device=device,
            )
        return None

    (model, seconds), peak = peak_of(lambda: timed(train, device), device)
    yield Measured("seconds", seconds)
    yield Measured("peak_mib", peak)
    valid = prepared.valid
    for length, indices in [(None, np.arange(len(valid))), *_buckets(valid, settings.lengths)]:
        told: dict[str, float | None] = dict.fromkeys(KINDS)
        if model is not None and len(indices):
            rows = every_row(valid, indices, prepared.tokenizers, seed=recipe.training.seed)
            told |= accuracies(rows, log_odds(model, rows, device))
        for kind, share in told.items():
            if length is None:
                yield Measured("accuracy", share, {"negatives": kind})
            else:
                yield Measured("accuracy_by_length", share, {"negatives": kind, "length": length})


def _buckets(data: ParallelDataset, ends: list[int]) -> Iterator[tuple[int, Indices]]:
    """The upper end of each bucket, and the examples in it."""
    longer = np.maximum(data.src_lengths, data.tgt_lengths)
    for low, high in zip([0, *ends], ends, strict=False):
        yield high, np.flatnonzero((low < longer) & (longer <= high))
