"""One hypothesis per row, token by token: greedy search, and the loop that sampling shares with it.

Greedy search is also what beam search of size 1 is checked against: the two share the stepper and nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer_mt.decoding.beam_search import Hypothesis
from transformer_mt.decoding.candidates import top_candidates
from transformer_mt.decoding.stepper import Pick, Stepper, num_rows

Choice = Callable[[Sequence[int], int], Pick]
"""Given the rows that are stepped and the number of the step, what picks each its one token."""


def greedy_search(
    stepper: Stepper,
    src_ids: Tensor,
    src_mask: Tensor,
    *,
    length_penalty: float,
    limits: Sequence[int],
    prefixes: Tensor | None = None,
) -> list[Hypothesis]:
    """The most probable token at every step; arguments and score as in `beam_search`."""
    return token_by_token(
        stepper,
        src_ids,
        src_mask,
        length_penalty=length_penalty,
        limits=limits,
        prefixes=prefixes,
        choice=lambda rows, step: top_candidates,
    )


def token_by_token(
    stepper: Stepper,
    src_ids: Tensor,
    src_mask: Tensor,
    *,
    length_penalty: float,
    limits: Sequence[int],
    prefixes: Tensor | None = None,
    choice: Choice,
) -> list[Hypothesis]:
    """One hypothesis per row of `src_ids`.

    Args:
        choice: what picks each row its one token.
        The others as in `beam_search`.
    """
    tokens: list[list[int]] = [[] for _ in limits]
    scores = [0.0 for _ in limits]
    # Row r works on sentence sentences[r]; rows from len(sentences) on only fill the batch.
    sentences = list(range(len(limits)))
    states = stepper.start(src_ids, src_mask, 1, prefixes)
    stepped = _filled(sentences)
    last = torch.full((len(stepped), 1), stepper.bos_id, device=src_ids.device)
    visible = torch.zeros(len(stepped), 1, dtype=torch.long, device=src_ids.device)
    room = torch.tensor([limits[sentence] for sentence in stepped], device=src_ids.device)
    start = torch.zeros(len(stepped), 1, device=src_ids.device)
    for step in range(max(limits) + 1):  # no more: a probability that is not a number may never choose eos
        is_forced = prefixes is not None and step < prefixes.size(1)
        best, states = stepper.step(
            last,
            states,
            scores=start[: len(last)],
            count=1,
            visible=visible,
            room=room,
            history=_history(tokens, stepped, last.device) if stepper.needs_history else None,
            forced=prefixes[stepped, step] if prefixes is not None and is_forced else None,
            pick=choice(stepped, step),
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
        growing, stepped = _filled(growing), _filled(sentences)
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


def _filled(rows: list[int]) -> list[int]:
    """Repeat the last row until there are enough."""
    return rows + rows[-1:] * (num_rows(len(rows), 1) - len(rows))


def _history(tokens: Sequence[Sequence[int]], stepped: Sequence[int], device: torch.device) -> Tensor:
    """(B, 1, T): what the rows have said, all equally much."""
    said = [tokens[sentence] for sentence in stepped]
    return torch.tensor(said, dtype=torch.long, device=device).view(len(said), 1, len(said[0]))
