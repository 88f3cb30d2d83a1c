"""A classifier of sentence pairs is trained, and examined on pairs that it has not seen.

The experiment that is cheap enough to repeat for every question about attention: is this pair a translation?
The measure trains the encoder of the recipe itself, on its training text; it is examined on the validation
text. Knows nothing of translating.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BaseModel

from transformer_mt.config import Count, Recipe
from transformer_mt.data.negatives import KINDS
from transformer_mt.data.pair_batches import TRANSLATION, every_row
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
    """Upper ends of buckets: tokens of the longer side of a pair, eos included."""


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
    valid, asked = prepared.valid, dict.fromkeys(KINDS)
    rows = every_row(valid, np.arange(len(valid)), prepared.tokenizers, seed=recipe.training.seed)
    kinds, longer = np.array(rows.kinds), np.maximum(valid.src_lengths, valid.tgt_lengths)[rows.indices]
    answers = None if model is None else log_odds(model, rows, device)

    def told(chosen: npt.NDArray[np.bool_]) -> dict[str, float | None]:
        if answers is None or TRANSLATION not in kinds[chosen]:
            return {**asked}
        return {**asked, **accuracies(kinds[chosen].tolist(), answers[chosen])}

    for kind, share in told(np.ones(len(rows), dtype=np.bool_)).items():
        yield Measured("accuracy", share, {"negatives": kind})
    for low, high in pairwise([0, *sorted(settings.lengths)]):
        for kind, share in told((low < longer) & (longer <= high)).items():
            yield Measured("accuracy_by_length", share, {"negatives": kind, "length": high})
