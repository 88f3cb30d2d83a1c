"""Teacher-forced validation: unsmoothed nll, perplexity, and nats per target character.

Sums and denominators are carried to the end, so the numbers do not depend on how sentences are batched. Nats
per character can be compared between vocabularies, perplexity per token cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from transformer_mt.data.batch import Batch
from transformer_mt.training.precision import autocast
from transformer_mt.training.step import LossModule


@dataclass(frozen=True)
class ValidationLoss:
    """nll in nats per target token (eos counted), its exponential, and nats per character of the raw text."""

    nll: float
    ppl: float
    nats_per_char: float


def perplexity(nll: float) -> float:
    """exp(nll), infinite where that overflows."""
    return math.exp(nll) if nll < 700.0 else math.inf


@torch.no_grad()
def validation_loss(
    loss_module: LossModule,
    batches: Iterable[Batch],
    num_target_chars: int,
    precision: str,
    device: torch.device,
) -> ValidationLoss:
    """Loss of reference translations; the model comes back in the mode it was in.

    Args:
        batches: the whole validation set, each example once.
        num_target_chars: characters of the raw references, one more per line for its end.
    """
    was_training = loss_module.training
    loss_module.eval()
    nll_sum, num_tokens = 0.0, 0
    for batch in batches:
        with autocast(precision, device):
            _, nll, tokens = loss_module(batch.to(device))
        nll_sum += float(nll)
        num_tokens += tokens
    loss_module.train(was_training)
    nll_mean = nll_sum / max(num_tokens, 1)
    return ValidationLoss(nll_mean, perplexity(nll_mean), nll_sum / max(num_target_chars, 1))
