"""Teacher-forced validation: unsmoothed nll, perplexity, and nats per target character.

Sums and denominators are carried to the end, so the numbers do not depend on how sentences are batched. Nats
per character can be compared between vocabularies, perplexity per token cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transformer_mt.data.batch import Batch, make_batch
from transformer_mt.data.sampler import epoch_batches
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.text.tokenizer import EOS_ID, Tokenizers
from transformer_mt.training.precision import autocast
from transformer_mt.training.step import LossModule


@dataclass(frozen=True)
class ValidationLoss:
    """nll in nats per target token (eos counted), its exponential, and nats per character of the raw text."""

    nll: float
    ppl: float
    nats_per_char: float

    @classmethod
    def of(cls, nll_sum: float, num_tokens: float, num_target_chars: int) -> ValidationLoss:
        """From nats, target tokens and characters of all examples."""
        nll_mean = nll_sum / max(num_tokens, 1)
        return cls(nll_mean, perplexity(nll_mean), nll_sum / max(num_target_chars, 1))


def perplexity(nll: float) -> float:
    """exp(nll), infinite where that overflows."""
    return math.exp(nll) if nll < 700.0 else math.inf


# Places of a batch of `reference_loss`; memory for logits grows with it.
_MAX_TOKENS = 4096


def reference_loss(
    model: TrainableModel, tokenizers: Tokenizers, pairs: Sequence[tuple[str, str]], device: torch.device
) -> ValidationLoss | None:
    """fp32 loss of the references of any set of raw pairs, for models that are on the device.

    Returns:
        None where a side is longer than the positions that the model has learned.
    """
    sides = zip(
        tokenizers.src.encode_batch([source for source, _ in pairs]),
        tokenizers.tgt.encode_batch([target for _, target in pairs]),
        strict=True,
    )
    encoded = [([*src_ids, EOS_ID], [*tgt_ids, EOS_ID]) for src_ids, tgt_ids in sides]
    lengths = [np.array([len(pair[side]) for pair in encoded]) for side in (0, 1)]
    if model.max_length is not None and max(map(np.max, lengths)) > model.max_length:
        return None
    order = epoch_batches(lengths[0], lengths[1], max_tokens=_MAX_TOKENS, seed=0, epoch=0)
    batches = (make_batch([encoded[int(index)] for index in indices]) for indices in order)
    num_chars = sum(len(target) + 1 for _, target in pairs)
    return validation_loss(LossModule(model, 0.0), batches, num_chars, "fp32", device)


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
    return ValidationLoss.of(*loss_sums(loss_module, batches, precision, device), num_target_chars)


@torch.no_grad()
def loss_sums(
    loss_module: LossModule, batches: Iterable[Batch], precision: str, device: torch.device
) -> tuple[float, float]:
    """Nats and target tokens of these batches: what several processes add up; as `validation_loss`."""
    was_training = loss_module.training
    loss_module.eval()
    nll_sum, num_tokens = 0.0, 0.0
    for batch in batches:
        with autocast(precision, device):
            _, nll, tokens = loss_module(batch.to(device))
        nll_sum += float(nll)
        num_tokens += tokens
    loss_module.train(was_training)
    return nll_sum, num_tokens
