"""Given translations -> their log-probabilities, token by token, by one model or an ensemble.

The numbers are those of the search that would have found the translation, in one pass over all positions.
Files and formats are not known here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.candidates import mean_log_probs
from transformer_mt.decoding.models import load_runs, with_products
from transformer_mt.decoding.teacher_forcing import ForcedBatch, Pair, teacher_forced
from transformer_mt.errors import CheckpointError, DataError
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.recipe import parse_section
from transformer_mt.runtime.device import autocast_dtype, pick_device, pick_precision
from transformer_mt.text.lines import is_blank
from transformer_mt.text.tokenizer import EOS_ID, Tokenizers

# Logits that are held at once.
_MOST_LOGITS = 1 << 25


@dataclass(frozen=True)
class Scored:
    """What a model thinks of a translation.

    ids are those of the translation and of the eos behind it; token_scores are their log-probabilities, and
    log_prob the sum; score is log_prob / length^alpha, the length counting eos. Where source and translation
    are both blank there are no tokens, and both are 0.
    """

    ids: list[int]
    token_scores: list[float]
    log_prob: float
    score: float


class Scorer:
    """Scores pairs of texts."""

    def __init__(
        self,
        models: Sequence[TrainableModel],
        tokenizers: Tokenizers,
        decoding: DecodingConfig,
        device: torch.device | str = "cpu",
    ) -> None:
        """Take models that are in memory.

        Args:
            models: fp32, on `device`; in another precision twins of them multiply, with the weights of now.
            tokenizers: of all models.
            decoding: whose length_penalty, batch_size and precision matter here.
            device: where to compute.
        """
        self.tokenizers = tokenizers
        self.decoding = decoding
        self._device = torch.device(device)
        dtype = autocast_dtype(pick_precision(decoding.precision, self._device))
        self._models = [with_products(model, dtype) for model in models]

    @classmethod
    def load(
        cls,
        run: str | Path,
        *others: str | Path,
        checkpoint: str | int = "best",
        device: str | None = None,
        **overrides: Any,
    ) -> Scorer:
        """Build a scorer from a run directory, or an ensemble from several.

        Args:
            run: the run whose recipe has the `decoding` section.
            others: further runs with the same tokenizers.
            checkpoint: best, latest, averaged or a step.
            device: cpu, cuda, …; by default a GPU where there is one.
            overrides: keys of the recipe's `decoding` section, such as length_penalty=0.

        Raises:
            CheckpointError: no such checkpoint, a damaged one, or tokenizers that differ.
            ConfigError: an override that cannot be used.
        """
        target = pick_device(device)
        loaded = load_runs(run, *others, checkpoint=checkpoint, device=target)
        decoding = parse_section(overrides, loaded[0].recipe.decoding)
        return cls([one.model for one in loaded], loaded[0].tokenizers, decoding, target)

    def score(self, pairs: Sequence[tuple[str, str]], first_line: int = 1) -> list[Scored]:
        """What the models think of every translation, in order.

        Both texts are cut into tokens as the tokenizer cuts them. A search may spell the same text in other
        tokens; `token_scores` takes its ids. A blank text counts as empty: an empty translation is eos alone,
        and an empty source is shown as such. Where both are blank nothing is.

        Args:
            pairs: source and translation.
            first_line: number of the first line, for messages.

        Raises:
            DataError: a pair that is too long for learned positions or for the memory.
            CheckpointError: a model without finite probabilities.
        """
        full = [place for place, pair in enumerate(pairs) if not all(map(is_blank, pair))]
        sides = (self.tokenizers.src, self.tokenizers.tgt)
        encoded = [
            side.encode_batch(
                ["" if is_blank(pairs[place][number]) else pairs[place][number] for place in full]
            )
            for number, side in enumerate(sides)
        ]
        asked = [
            Pair([*src_ids, EOS_ID], tgt_ids, first_line + place)
            for place, src_ids, tgt_ids in zip(full, *encoded, strict=True)
        ]
        found = token_scores(self._models, asked, device=self._device, batch_size=self.decoding.batch_size)
        results = [Scored([], [], 0.0, 0.0)] * len(pairs)
        for place, pair, scores in zip(full, asked, found, strict=True):
            if scores is None:
                raise DataError(
                    f"line {pair.number}: its {len(pair.src_ids)} source and {len(pair.tgt_ids)} target "
                    "tokens do not fit into the memory of the device; split the line"
                )
            results[place] = self._scored([*pair.tgt_ids, EOS_ID], scores)
        return results

    def _scored(self, ids: list[int], scores: list[float]) -> Scored:
        log_prob = math.fsum(scores)
        if not math.isfinite(log_prob):
            raise CheckpointError(
                f"the model gives no finite probabilities in {self.decoding.precision}; use another "
                "checkpoint, or precision fp32"
            )
        return Scored(ids, scores, log_prob, log_prob / len(ids) ** self.decoding.length_penalty)


def token_scores(
    models: Sequence[TrainableModel], pairs: Sequence[Pair], *, device: torch.device, batch_size: int
) -> list[list[float] | None]:
    """Log-probability of every target token, and of the eos behind them, given all that came before.

    Several models are one ensemble: their probabilities are averaged, as in the search. In fp32 the numbers
    of a pair depend on nothing but the pair. None stands for a pair that does not fit into the memory.

    Args:
        models: on `device`.
        pairs: in any order.
        device: where to compute.
        batch_size: most pairs in a batch.

    Raises:
        DataError: a pair that is too long for learned positions.
    """

    def scores(batch: ForcedBatch) -> list[list[float]]:
        chosen = _log_probs(models, batch).tolist()
        return [row[: len(pair.tgt_ids) + 1] for row, pair in zip(chosen, batch.pairs, strict=False)]

    return teacher_forced(models, pairs, scores, device=device, batch_size=batch_size)


def _log_probs(models: Sequence[TrainableModel], batch: ForcedBatch) -> Tensor:
    """(R, T) fp32 log-probabilities of the labels."""
    states = [
        model.hidden(batch.src_ids, batch.src_mask, batch.decoder_input_ids).flatten(0, 1) for model in models
    ]  # (R * T, D)
    labels = batch.labels.flatten()
    # Parts of about one size, so that none has so few rows that it rounds differently.
    num_parts = -(-len(labels) * models[0].output_weight.size(0) // _MOST_LOGITS)
    parts = zip(labels.tensor_split(num_parts), *(one.tensor_split(num_parts) for one in states), strict=True)
    chosen = []
    for wanted, *hidden in parts:
        log_probs = mean_log_probs([model.project(one) for model, one in zip(models, hidden, strict=True)])
        chosen.append(log_probs.gather(-1, wanted.unsqueeze(-1)).squeeze(-1))
    return torch.cat(chosen).view_as(batch.labels)
