"""A classifier of pairs is trained and asked: how much speaks for a pair being a translation?

It learns from pairs and the counter-examples made of them, as many updates as it is told, and is thrown away
afterwards: nothing of it is written to disk. What is done with its answers is not known here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from transformer_mt.config import Recipe, TrainingConfig
from transformer_mt.data.dataset import ParallelDataset
from transformer_mt.data.negatives import KINDS, Indices
from transformer_mt.data.pair_batches import TRANSLATION, PairBatch, PairRows, training_rows
from transformer_mt.errors import DivergenceError
from transformer_mt.model.build import build_classifier
from transformer_mt.model.classifier import PairClassifier
from transformer_mt.runtime.device import pick_precision
from transformer_mt.runtime.seeds import seed_micro_batch, seed_weights
from transformer_mt.text.tokenizer import Tokenizers
from transformer_mt.training.optimizer import build_optimizer, set_learning_rate
from transformer_mt.training.precision import autocast, loss_scaler
from transformer_mt.training.schedule import learning_rate

# Small batches: an update teaches as much as one of twice the sequences does.
MAX_TOKENS = 1024
_PART = 8192
# Shuffled targets come first, and alone: which words belong together is learned slowly, and not at all while
# other kinds can be told by the target alone (of Multi30k's 57% instead of 75% after 1,600 updates). Not for
# half of the updates either: after that 59% of truncated targets are told, after a third 91%.
_MIXED = (*["shuffled"] * 3, "truncated", "reordered", "replaced")
_MAX_SKIPPED = 20
"""Updates in a row without a finite gradient, after which training has diverged."""


def train_classifier(
    recipe: Recipe,
    data: ParallelDataset,
    indices: Indices,
    tokenizers: Tokenizers,
    *,
    compares_sides: bool,
    updates: int,
    device: torch.device,
    after_update: Callable[[], object] = lambda: None,
) -> PairClassifier:
    """A classifier that has learned from these examples, in evaluation mode.

    Sizes, rates of dropout, peak learning rate, precision and seed are the recipe's; the learning rate rises
    for a tenth of the updates and falls to 0 along a cosine.

    Args:
        compares_sides: see `PairClassifier`.

    Raises:
        ConfigError: an architecture without self-attention.
        DivergenceError: loss or gradient was not finite for too many updates in a row.
    """
    config = _schedule(recipe.training, updates, device)
    seed_weights(config.seed)
    model = build_classifier(
        recipe.model,
        tokenizers.src.vocab_size + (0 if tokenizers.shared else tokenizers.tgt.vocab_size),
        compares_sides=compares_sides,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation_dropout=config.activation_dropout,
    ).to(device)
    update = _Update(model, config, device)
    step, alone = 0, updates // 3
    for number, part in enumerate(_parts(indices, config.seed)):
        kinds, last = (_MIXED, updates) if step >= alone else (("shuffled",), alone)
        rows = training_rows(data, part, tokenizers, kinds, seed=config.seed, epoch=number)
        batches = rows.batches(MAX_TOKENS, np.random.default_rng([config.seed, number]))
        for batch in islice(batches, last - step):
            step += 1
            update.run(step, batch)
            after_update()
        if step == updates:
            break
    return model.eval()


def log_odds(model: PairClassifier, rows: PairRows, device: torch.device) -> npt.NDArray[np.float32]:
    """(N,) of all rows, in fp32: above 0 a pair is rather a translation than none."""
    answers = np.zeros(len(rows), dtype=np.float32)
    with torch.inference_mode():
        for batch in rows.batches(MAX_TOKENS):
            moved = batch.to(device)
            answers[batch.rows] = model(moved.ids, moved.src_lengths).cpu().numpy()
    return answers


def accuracies(kinds: Sequence[str], answers: npt.NDArray[np.float32]) -> dict[str, float]:
    """Kind of counter-example -> how often it and the translations are told right, of each half the weight.

    Args:
        kinds: (N,) TRANSLATION or a kind of counter-example, of some rows; some of them are translations.
        answers: (N,) `log_odds` of the same.
    """
    names = np.array(kinds)
    right = (answers > 0.0) == (names == TRANSLATION)
    translations = right[names == TRANSLATION].mean()
    return {
        kind: float(translations + right[names == kind].mean()) / 2 for kind in KINDS if np.any(names == kind)
    }


def _parts(indices: Indices, seed: int) -> Iterator[Indices]:
    """Epoch after epoch all of the examples, so many at a time that a large text takes no more memory."""
    for epoch in itertools.count():
        order = np.random.default_rng([seed, epoch]).permutation(indices)
        yield from (order[start : start + _PART] for start in range(0, len(order), _PART))


def _schedule(config: TrainingConfig, updates: int, device: torch.device) -> TrainingConfig:
    return config.model_copy(
        update={
            "max_steps": updates,
            "warmup_steps": updates // 10,
            "schedule": "cosine",
            "min_learning_rate": 0.0,
            "precision": pick_precision(config.precision, device),
        }
    )


class _Update:
    """One optimizer update from one batch."""

    def __init__(self, model: PairClassifier, config: TrainingConfig, device: torch.device) -> None:
        self._model, self._config, self._device = model, config, device
        self._optimizer = build_optimizer(model, config)
        self._scaler = loss_scaler(config.precision, device)
        self._skipped = 0

    def run(self, step: int, batch: PairBatch) -> None:
        """Update the weights, unless the gradient is not finite."""
        config, batch = self._config, batch.to(self._device)
        set_learning_rate(self._optimizer, learning_rate(step, config))
        seed_micro_batch(config.seed, step, 0)
        with autocast(config.precision, self._device):
            logits = self._model(batch.ids, batch.src_lengths)
        loss = F.binary_cross_entropy_with_logits(logits, batch.is_translation)
        self._optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(self._scaler.scale(loss))
        self._scaler.unscale_(self._optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), config.clip_norm or math.inf)
        if math.isfinite(norm):
            self._scaler.step(self._optimizer)
            self._skipped = 0
        else:
            self._skipped += 1
        self._scaler.update()
        if self._skipped == _MAX_SKIPPED:
            raise DivergenceError(
                f"update {step}: the gradient has not been finite for {_MAX_SKIPPED} updates in a row; "
                "lower training.learning_rate"
            )
