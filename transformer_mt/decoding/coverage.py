"""The hypotheses of a beam in the order that counts what they have left untranslated.

A second pass over finished hypotheses, all positions at once: the search itself knows no attention. Knows no
text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import torch
from torch import Tensor

from transformer_mt.decoding.beam_search import NO_ROOM, Hypothesis
from transformer_mt.decoding.teacher_forcing import ForcedBatch, Pair, teacher_forced
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.text.tokenizer import EOS_ID, PAD_ID


def by_coverage(
    models: Sequence[TrainableModel],
    sources: Sequence[tuple[Sequence[int], int]],
    hypotheses: Sequence[Sequence[Hypothesis]],
    *,
    beta: float,
    device: torch.device,
    batch_size: int,
) -> list[list[Hypothesis]]:
    """Hypotheses of every sentence, best first by their score + beta * coverage (Wu et al. 2016, eq. 14).

    A sentence with one that does not fit into the memory by itself gets `NO_ROOM`.

    Coverage is the sum of log(min(attention, 1)) over the source tokens without eos: of the attention that a
    token gets in all steps together, eos counted; mean over heads, decoder layers and models.

    Args:
        models: one or an ensemble, on `device`.
        sources: of every sentence the source ids, ending in eos, and the number of its line.
        hypotheses: of every sentence.
        beta: above 0.
        device: where to compute.
        batch_size: most hypotheses in a batch.
    """
    pairs = [
        Pair(src_ids, one.token_ids, number)
        for (src_ids, number), beam in zip(sources, hypotheses, strict=True)
        for one in beam
    ]
    coverages = iter(
        teacher_forced(
            models, pairs, lambda batch: _coverage(models, batch), device=device, batch_size=batch_size
        )
    )
    results = []
    for beam in hypotheses:
        scored = [
            NO_ROOM if coverage is None else replace(one, score=one.score + beta * coverage)
            for one, coverage in zip(beam, islice(coverages, len(beam)), strict=True)
        ]
        results.append([NO_ROOM] if NO_ROOM in scored else sorted(scored, key=lambda one: -one.score))
    return results


def _coverage(models: Sequence[TrainableModel], batch: ForcedBatch) -> list[float]:
    weights = [
        model.cross_attention(batch.src_ids, batch.src_mask, batch.decoder_input_ids, "mean")
        for model in models
    ]
    mean = torch.stack(weights).mean(0).float()  # (R, T, S)
    said = (batch.labels != PAD_ID).unsqueeze(-1)
    attention = mean.masked_fill(~said, 0.0).sum(1)  # (R, S)
    # A token that has got none at all costs much, but not everything.
    logs = attention.clamp(min=torch.finfo(torch.float32).tiny, max=1.0).log()
    counted = ~torch.isin(batch.src_ids, torch.tensor([PAD_ID, EOS_ID], device=logs.device))
    total: Tensor = logs.masked_fill(~counted, 0.0).sum(1)
    return total[: len(batch.pairs)].tolist()
