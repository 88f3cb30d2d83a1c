"""Log-probabilities of given translations, token by token, by one model or an ensemble."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_mt.decoding.candidates import mean_log_probs
from transformer_mt.decoding.teacher_forcing import ForcedBatch, Pair, teacher_forced
from transformer_mt.model.protocol import TrainableModel

# Logits that are held at once.
_MOST_LOGITS = 1 << 25


def token_scores(
    models: Sequence[TrainableModel], pairs: Sequence[Pair], *, device: torch.device, batch_size: int
) -> list[list[float]]:
    """Log-probability of every target token, and of the eos behind them, given all that came before.

    Several models are one ensemble: their probabilities are averaged, as in the search. In fp32 the numbers
    of a pair depend on nothing but the pair.

    Args:
        models: on `device`.
        pairs: in any order.
        device: where to compute.
        batch_size: most pairs in a batch.

    Raises:
        DataError: a pair that is too long for learned positions or for the memory.
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
    vocab_size = models[0].output_weight.size(0)
    parts = -(-len(labels) * vocab_size // _MOST_LOGITS)
    chosen = []
    for rows in torch.arange(len(labels), device=labels.device).tensor_split(parts):
        part = slice(int(rows[0]), int(rows[-1]) + 1)
        log_probs = mean_log_probs(
            [model.project(one[part]) for model, one in zip(models, states, strict=True)]
        )
        chosen.append(log_probs.gather(-1, labels[part, None]).squeeze(-1))
    return torch.cat(chosen).view_as(batch.labels)
