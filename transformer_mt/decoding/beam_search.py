"""Beam search over a stepper: live and finished hypotheses apart, batched over sentences.

Score of a hypothesis = log-probability / length^alpha, the length counting eos; with a repetition penalty the
log-probability is the penalised one, by which the search chooses. The search speaks ids and knows neither
models nor text. Every operation acts on each sentence alone, so that a sentence's result does not depend on
its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_mt.decoding.candidates import Candidates
from transformer_mt.decoding.stepper import Stepper, num_rows
from transformer_mt.model.protocol import DecoderState

_NEVER = float("-inf")


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation: ids without bos and eos, its score, whether the length limit closed it."""

    token_ids: list[int]
    score: float
    at_limit: bool


NO_ROOM = Hypothesis([], 0.0, True)
"""Stands for the translation of a sentence that does not fit into the memory by itself."""


@dataclass
class _Search:
    """The state between two steps; B counts the rows still computed, of which `done` ones await removal.

    There is one beam before the first step, and as many as the search keeps after it.

    N finished hypotheses are kept per sentence, best first; empty places have the score -inf.
    """

    sentences: Tensor  # (B,) place in the result, -1 for rows that only fill the batch
    done: Tensor  # (B,) bool
    limits: Tensor  # (B,) most tokens before eos
    prefixes: Tensor  # (B, P) what each must begin with, -1 behind it
    last: Tensor  # (B, K) newest token of each live beam
    live_tokens: Tensor  # (B, K, T)
    live_scores: Tensor  # (B, K) log-probabilities
    visible: Tensor  # (B, K) tokens so far that leave a trace in text
    finished_tokens: Tensor  # (B, N, T)
    finished_scores: Tensor  # (B, N) length-normalised
    finished_lengths: Tensor  # (B, N) without eos
    states: list[DecoderState]


def beam_search(
    stepper: Stepper,
    src_ids: Tensor,
    src_mask: Tensor,
    *,
    beam_size: int,
    num_finished: int,
    length_penalty: float,
    limits: Sequence[int],
    prefixes: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """The best translations of every sentence.

    A sentence ends when no live beam can still beat its worst kept hypothesis: log-probabilities only fall,
    so a beam's best possible score is its log-probability now over the longest length allowed. With beam
    size 1 the search is greedy: nothing refills the beam once eos is the best continuation.

    Args:
        src_ids: (B, S) ending in eos. src_mask: (B, 1, 1, S).
        num_finished: N, hypotheses kept per sentence.
        length_penalty: alpha >= 0.
        limits: for each sentence the most tokens before eos; a beam that long is closed with eos.
        prefixes: (B, P) ids that all hypotheses of a sentence begin with, -1 behind them; None: nothing is
            forced. No prefix may be longer than its limit.

    Returns:
        For each sentence up to N distinct hypotheses, best first.
    """
    states = stepper.start(src_ids, src_mask, beam_size, prefixes)
    if prefixes is None:
        prefixes = src_ids.new_empty(len(src_ids), 0)
    lengths = torch.tensor(limits, device=src_ids.device)
    search = _begin(states, lengths, prefixes, num_finished, stepper.bos_id)
    results: list[list[Hypothesis]] = [[] for _ in limits]
    norms = torch.arange(1, max(limits) + 2, device=src_ids.device).double().pow(length_penalty).float()
    width = 2 * beam_size if beam_size > 1 else 1
    for length in range(max(limits) + 1):
        candidates, search.states = stepper.step(
            search.last,
            search.states,
            scores=search.live_scores,
            count=width,
            visible=search.visible,
            room=search.limits - length,
            history=search.live_tokens[..., :length],
            forced=search.prefixes[:, length] if length < search.prefixes.size(1) else None,
        )
        is_eos = candidates.token_ids == stepper.eos_id
        if is_eos.any():
            endings = candidates.totals.masked_fill(~is_eos, _NEVER) / norms[length]
            _finish(search, endings, candidates.beams, length)
        going_on = candidates.totals.masked_fill(is_eos, _NEVER)
        shown = stepper.shows(candidates.token_ids)
        _grow(search, going_on, candidates, shown=shown, length=length, beam_size=beam_size)
        best_possible = search.live_scores[:, 0] / norms[search.limits]
        search.done |= search.finished_scores[:, -1] >= best_possible
        if not _let_go(search, results):
            break
    return results


def _begin(
    states: list[DecoderState], limits: Tensor, prefixes: Tensor, num_finished: int, bos_id: int
) -> _Search:
    device, num_sentences = limits.device, len(limits)
    rows = torch.arange(num_rows(num_sentences, 1), device=device)
    fills = rows >= num_sentences
    longest = int(limits.max().clamp(min=1))
    return _Search(
        sentences=rows.masked_fill(fills, -1),
        done=fills,
        limits=limits[rows.clamp(max=num_sentences - 1)],
        prefixes=prefixes[rows.clamp(max=num_sentences - 1)],
        last=torch.full((len(rows), 1), bos_id, device=device),
        live_tokens=torch.zeros(len(rows), 1, longest, dtype=torch.long, device=device),
        live_scores=torch.zeros(len(rows), 1, device=device),
        visible=torch.zeros(len(rows), 1, dtype=torch.long, device=device),
        finished_tokens=torch.zeros(len(rows), num_finished, longest, dtype=torch.long, device=device),
        finished_scores=torch.full((len(rows), num_finished), _NEVER, device=device),
        finished_lengths=torch.zeros(len(rows), num_finished, dtype=torch.long, device=device),
        states=states,
    )


def _finish(search: _Search, scores: Tensor, beams: Tensor, length: int) -> None:
    """Let (B, W) scored endings compete with the finished hypotheses; earlier ones win ties."""
    longest = search.live_tokens.size(-1)
    endings = search.live_tokens.gather(1, beams.unsqueeze(-1).expand(-1, -1, longest))
    scores = torch.cat([search.finished_scores, scores], 1)  # (B, N + W)
    tokens = torch.cat([search.finished_tokens, endings], 1)
    lengths = torch.cat([search.finished_lengths, torch.full_like(beams, length)], 1)
    kept = search.finished_scores.size(1)
    scores, order = scores.sort(dim=-1, descending=True, stable=True)
    order = order[:, :kept]
    search.finished_scores = scores[:, :kept]
    search.finished_tokens = tokens.gather(1, order.unsqueeze(-1).expand(-1, -1, longest))
    search.finished_lengths = lengths.gather(1, order)


def _grow(
    search: _Search, totals: Tensor, candidates: Candidates, *, shown: Tensor, length: int, beam_size: int
) -> None:
    """Continue with the K best of the candidates by (B, W) `totals`, which are -inf for those that end."""
    totals, order = totals.sort(dim=-1, descending=True, stable=True)
    order = order[:, :beam_size]
    beams, tokens = candidates.beams.gather(1, order), candidates.token_ids.gather(1, order)
    longest = search.live_tokens.size(-1)
    search.live_scores = totals[:, :beam_size]
    search.last = tokens
    search.live_tokens = search.live_tokens.gather(1, beams.unsqueeze(-1).expand(-1, -1, longest))
    if length < longest:
        search.live_tokens[..., length] = tokens
    search.visible = search.visible.gather(1, beams) + shown.gather(1, order)
    if beam_size > 1:
        search.states = [state.reorder(beams) for state in search.states]


def _let_go(search: _Search, results: list[list[Hypothesis]]) -> bool:
    """Write out the sentences that are done and, when enough are, drop their rows. False: none is left."""
    active = (~search.done).nonzero().flatten()
    rows = len(search.sentences)
    wanted = num_rows(len(active), search.last.size(1))
    if len(active) and (len(active) * 4 > rows * 3 or wanted >= rows):
        return True
    leaving = (search.done & (search.sentences >= 0)).nonzero().flatten()
    _write_out(search, leaving, results)
    if not len(active):
        return False
    kept = torch.cat([active, active[-1:].expand(wanted - len(active))])
    search.sentences = search.sentences[kept]
    search.sentences[len(active) :] = -1
    search.done = search.sentences < 0
    for name in ("limits", "prefixes", "last", "live_tokens", "live_scores", "visible"):
        setattr(search, name, getattr(search, name)[kept])
    for name in ("finished_tokens", "finished_scores", "finished_lengths"):
        setattr(search, name, getattr(search, name)[kept])
    search.states = [state.keep(kept) for state in search.states]
    return True


def _write_out(search: _Search, rows: Tensor, results: list[list[Hypothesis]]) -> None:
    sentences = search.sentences[rows].tolist()
    limits = search.limits[rows].tolist()
    scores = search.finished_scores[rows].tolist()
    lengths = search.finished_lengths[rows].tolist()
    tokens = search.finished_tokens[rows].tolist()
    for row, sentence in enumerate(sentences):
        results[sentence] = [
            Hypothesis(ids[:length], score, length >= limits[row])
            for ids, score, length in zip(tokens[row], scores[row], lengths[row], strict=True)
            if score > _NEVER
        ]
