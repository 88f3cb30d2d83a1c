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
) -> list[Hypothesis]:
    """One hypothesis per sentence; arguments and score as in `beam_search`."""
    tokens: list[list[int]] = [[] for _ in limits]
    scores = [0.0 for _ in limits]
    # Row r works on sentence sentences[r]; rows from len(sentences) on only fill the batch.
    sentences = list(range(len(limits)))
    states = stepper.start(src_ids, src_mask, 1)
    rows = num_rows(len(sentences), 1)
    last = torch.full((rows, 1), stepper.bos_id, device=src_ids.device)
    visible = torch.zeros(rows, 1, dtype=torch.long, device=src_ids.device)
    room = torch.tensor(list(limits) + [limits[-1]] * (rows - len(limits)), device=src_ids.device)
    start = torch.zeros(rows, 1, device=src_ids.device)
    for _ in range(max(limits) + 1):  # no more: a probability that is not a number may never choose eos
        best, states = stepper.step(
            last, states, scores=start[: len(last)], count=1, visible=visible, room=room
        )
        growing = []
        chosen, gains = best.token_ids[:, 0].tolist(), best.totals[:, 0].tolist()
        for row, sentence in enumerate(sentences):
            scores[sentence] += gains[row]
            if chosen[row] != stepper.eos_id:
                tokens[sentence].append(chosen[row])
                growing.append(row)
        sentences = [sentences[row] for row in growing]
        if not growing:
            break
        growing += growing[-1:] * (num_rows(len(growing), 1) - len(growing))
        kept = torch.tensor(growing, device=last.device)
        moved = growing != list(range(len(last)))
        last = best.token_ids[kept]
        visible = visible[kept] + stepper.shows(last)
        room = room[kept] - 1
        if moved:
            states = [state.keep(kept) for state in states]
    return [
        Hypothesis(ids, score / (len(ids) + 1) ** length_penalty, len(ids) >= limit)
        for ids, score, limit in zip(tokens, scores, limits, strict=True)
    ]
