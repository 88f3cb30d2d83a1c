"""Greedy search: the most probable token at every step. Also what beam search of size 1 is checked against.

Shares the stepper with beam search and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_mt.decoding.beam_search import Hypothesis
from transformer_mt.decoding.stepper import Stepper, num_rows


def greedy_search(
    stepper: Stepper,
    src_ids: Tensor,
    src_mask: Tensor,
    *,
    length_penalty: float,
    limits: Sequence[int],
    min_length: int,
    invisible_ids: Tensor | None = None,
) -> list[Hypothesis]:
    """One hypothesis per sentence; arguments and score as in `beam_search`."""
    invisible = set() if invisible_ids is None else set(invisible_ids.tolist())
    tokens: list[list[int]] = [[] for _ in limits]
    scores = [0.0 for _ in limits]
    # Row r works on sentence sentences[r]; rows from len(sentences) on only fill the batch.
    sentences = list(range(len(limits)))
    states = stepper.start(src_ids, src_mask, 1)
    last = torch.full((num_rows(len(sentences), 1), 1), stepper.bos_id, device=src_ids.device)
    while sentences:
        logits, normaliser, states = stepper.logits(last, states)
        log_probs = (logits - normaliser.unsqueeze(-1))[:, 0]  # (rows, V)
        eos = log_probs[:, stepper.eos_id].tolist()
        log_probs[:, stepper.banned] = float("-inf")
        for row, sentence in enumerate(sentences):
            shown = sum(token not in invisible for token in tokens[sentence])
            if shown < min_length:
                log_probs[row, stepper.eos_id] = float("-inf")
        values, choices = log_probs.max(-1)
        chosen, gains = choices.tolist(), values.tolist()
        growing = []
        for row, sentence in enumerate(sentences):
            if len(tokens[sentence]) >= limits[sentence]:
                scores[sentence] += eos[row]
            else:
                scores[sentence] += gains[row]
                if chosen[row] != stepper.eos_id:
                    tokens[sentence].append(chosen[row])
                    growing.append(row)
        sentences = [sentences[row] for row in growing]
        if growing:
            growing += [growing[-1]] * (num_rows(len(growing), 1) - len(growing))
            last = choices[growing].unsqueeze(1)
            if growing != list(range(len(values))):
                states = [state.keep(torch.tensor(growing, device=last.device)) for state in states]
    return [
        Hypothesis(ids, score / (len(ids) + 1) ** length_penalty, len(ids) >= limit)
        for ids, score, limit in zip(tokens, scores, limits, strict=True)
    ]
