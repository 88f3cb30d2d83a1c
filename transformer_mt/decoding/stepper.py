"""One step of decoding for a batch of beams: models in, the best continuations of every beam out.

Several models are one ensemble: their probabilities are averaged. The stepper knows no search: which beams
live, what is finished and when to stop are not its business, and neither is text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_mt.decoding.candidates import Candidates, mean_log_probs, rescored, top_candidates
from transformer_mt.decoding.repeats import ban_repeated_ngrams, penalise_repeats, repeat_factors
from transformer_mt.decoding.shortlist import BatchVocabulary, Shortlist
from transformer_mt.model.narrow_linear import HalfLinear, Int8Linear
from transformer_mt.model.protocol import DecoderState, EncoderOutput, TrainableModel

# Matrix products over fewer rows than this take other kernels, which round differently; with at least this
# many, a row's result does not depend on how many rows there are (measured: 12 suffice, at 1 and 2 threads).
MIN_ROWS = 16
# Candidates beyond those asked for that the rough output matrix proposes: their order may still change.
_MARGIN = 6
_NEVER = float("-inf")

Pick = Callable[[Tensor, Tensor, int], Candidates]
"""Chooses as `top_candidates` does: log-probabilities, scores of the beams and a count -> candidates."""


class Stepper:
    """Steps one model, or an ensemble of models with equal vocabularies."""

    def __init__(
        self,
        models: Sequence[TrainableModel],
        *,
        bos_id: int,
        eos_id: int,
        banned: Sequence[int],
        invisible: Sequence[int] = (),
        min_length: int = 0,
        no_repeat_ngram: int = 0,
        repetition_penalty: float = 1.0,
        rough_output: HalfLinear | Int8Linear | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        """Name the ids that matter here.

        Args:
            models: in evaluation mode, all on one device.
            bos_id: the first decoder input.
            eos_id: what ends a hypothesis.
            banned: ids that are never generated; they keep their share of the probability.
            invisible: ids that leave no trace in text, such as a lone space.
            min_length: fewest visible tokens of a hypothesis, as long as its length limit has room for them.
            no_repeat_ngram: n, of which no n-gram may come twice in a hypothesis; 0 is off.
            repetition_penalty: factor of the log-probability of a token that a hypothesis has; 1 is off.
            rough_output: (..., D) -> (..., V), the output projection of the one model in narrower numbers. It
                proposes candidates, whose logits are then computed exactly.
            shortlist: which tokens may come, and have all of the probability; None is all.
        """
        self.models = list(models)
        self.bos_id = bos_id
        self.eos_id = eos_id
        self.banned = list(banned)
        self.invisible = list(invisible)
        self.min_length = min_length
        self.no_repeat_ngram = no_repeat_ngram
        self.repetition_penalty = repetition_penalty
        self.rough_output = rough_output
        self.shortlist = shortlist

    @property
    def needs_history(self) -> bool:
        """Whether what may come next depends on more than a beam's last token."""
        return self.no_repeat_ngram > 0 or self.repetition_penalty != 1.0

    def start(
        self, src_ids: Tensor, src_mask: Tensor, beam_size: int, prefixes: Tensor | None = None
    ) -> list[DecoderState]:
        """Encode; every sentence begins with one beam, since all would be alike.

        Args:
            src_ids: (B, S) ending in eos. src_mask: (B, 1, 1, S). beam_size: the most beams to come.
            prefixes: (B, P) ids that must be in the shortlists; -1 is none.

        Returns:
            One state per model over `num_rows(B, 1)` sentences; those from B on repeat the last one. A
            shortlist of the batch is one state more.
        """
        num_sentences, src_length = src_ids.shape
        encoded = _fill(num_sentences, src_length, src_ids.device)
        decoded = _fill(num_sentences, 1, src_ids.device)
        states: list[DecoderState] = []
        for model in self.models:
            output = model.encode(src_ids[encoded], src_mask[encoded])
            final = output.final_state
            states.append(
                model.start(
                    EncoderOutput(
                        output.memory[decoded],
                        output.src_mask[decoded],
                        None if final is None else final[decoded],
                    ),
                    beam_size,
                )
            )
        vocabulary = None if self.shortlist is None else self.shortlist.choose(src_ids, prefixes)
        if vocabulary is not None:
            states.append(_Outputs(vocabulary.keep(decoded), self._cut_outputs(vocabulary.union)))
        return states

    def _cut_outputs(self, union: Tensor) -> list[Callable[[Tensor], Tensor]]:
        """The output projections of these ids alone, gathered once for all steps of a batch."""
        if self.rough_output is not None:
            return [self.rough_output.cut(union)]
        return [_linear(model.output_weight[union]) for model in self.models]

    def step(
        self,
        token_ids: Tensor,
        states: Sequence[DecoderState],
        *,
        scores: Tensor,
        count: int,
        visible: Tensor,
        room: Tensor,
        history: Tensor | None = None,
        forced: Tensor | None = None,
        pick: Pick = top_candidates,
    ) -> tuple[Candidates, list[DecoderState]]:
        """One decoder step and the `count` best continuations of every sentence.

        Args:
            token_ids: (B, K) the last token of every beam.
            states: one per model.
            scores: (B, K) log-probability of every beam so far.
            count: W, cut to K * V.
            visible: as in `restrict`.
            room: as in `restrict`.
            history: as in `restrict`; must be given if the stepper needs it.
            forced: as in `restrict`.
            pick: chooses the continuations; only without a rough output matrix may it be another.

        Returns:
            What may come next, and the states that follow.
        """
        outputs = states[-1] if isinstance(states[-1], _Outputs) else None
        vocabulary = None if outputs is None else outputs.vocabulary
        hidden, following = [], list(states)
        for number, model in enumerate(self.models):
            hidden_after, following[number] = model.decode_step(token_ids, states[number])
            hidden.append(hidden_after)  # (B, K, D)
        logits = self._logits(hidden, outputs)
        log_probs = mean_log_probs(logits)
        assert history is not None or not self.needs_history
        past = _columns(history, vocabulary) if self.needs_history else None
        self.restrict(log_probs, visible, room, vocabulary, history=past, forced=_columns(forced, vocabulary))
        if self.rough_output is None:
            return _named(pick(log_probs, scores, count), vocabulary), following
        assert pick is top_candidates
        proposed = top_candidates(log_probs, scores, count + _MARGIN)
        changes = self._exact_logits(hidden[0], _named(proposed, vocabulary)) - _picked(logits[0], proposed)
        penalty = self.repetition_penalty
        factors = None if past is None or penalty == 1.0 else repeat_factors(proposed, past, penalty)
        chosen = rescored(proposed, log_probs, scores, changes, count, factors=factors)
        return _named(chosen, vocabulary), following

    def _logits(self, hidden: Sequence[Tensor], outputs: _Outputs | None) -> list[Tensor]:
        """(B, K, D) of every model -> (B, K, V), or (B, K, W) of the shortlists."""
        if outputs is not None:
            return [
                outputs.vocabulary.pick(project(one))
                for project, one in zip(outputs.cut, hidden, strict=True)
            ]
        if self.rough_output is not None:
            return [self.rough_output(hidden[0])]
        return [model.project(one) for model, one in zip(self.models, hidden, strict=True)]

    def _exact_logits(self, hidden: Tensor, candidates: Candidates) -> Tensor:
        """(B, K, D) -> (B, W) logits of the candidates alone."""
        beams = candidates.beams.unsqueeze(-1).expand(-1, -1, hidden.size(-1))
        return self.models[0].project(hidden.gather(1, beams), candidates.token_ids.unsqueeze(-1)).squeeze(-1)

    def restrict(
        self,
        log_probs: Tensor,
        visible: Tensor,
        room: Tensor,
        vocabulary: BatchVocabulary | None = None,
        *,
        history: Tensor | None = None,
        forced: Tensor | None = None,
    ) -> None:
        """Rule out, in place, what may not come next; where nothing else is left, eos may.

        Args:
            log_probs: (B, K, V), or (B, K, W) of a vocabulary, which has eos first and nothing banned.
            visible: (B, K) visible tokens of every beam so far.
            room: (B,) tokens that may still come before eos; with 0 eos alone may come, whatever is missing.
            vocabulary: the shortlists, if any.
            history: (B, K, T) tokens of every beam so far, as columns of `log_probs`.
            forced: (B,) what alone may come, whatever forbids it, as columns; -1 where nothing is forced.
        """
        eos_column = self.eos_id if vocabulary is None else 0
        if history is not None and self.repetition_penalty != 1.0:
            penalise_repeats(log_probs, history, self.repetition_penalty)
        if forced is not None:
            held = (forced >= 0).nonzero().flatten()
            columns = forced[held]
            kept = log_probs[held, :, columns]  # (N, K)
        if history is not None and self.no_repeat_ngram:
            endings = log_probs[..., eos_column].clone()
            ban_repeated_ngrams(log_probs, history, self.no_repeat_ngram, eos_column)
            self._restrict_length(log_probs, visible, room, vocabulary)
            stuck = log_probs.amax(-1) == _NEVER  # (B, K)
            log_probs[..., eos_column] = torch.where(stuck, endings, log_probs[..., eos_column])
        else:
            self._restrict_length(log_probs, visible, room, vocabulary)
        if forced is not None:
            log_probs[held] = _NEVER
            log_probs[held, :, columns] = kept

    def _restrict_length(
        self, log_probs: Tensor, visible: Tensor, room: Tensor, vocabulary: BatchVocabulary | None
    ) -> None:
        """Rule out what is banned, what is too short, and what is too long."""
        eos_column = self.eos_id if vocabulary is None else 0
        full = room <= 0
        eos = log_probs[full, :, eos_column]
        for token in self.banned if vocabulary is None else ():
            log_probs[..., token] = _NEVER
        missing = self.min_length - visible
        log_probs[..., eos_column].masked_fill_(missing > 0, _NEVER)
        pressed = (missing > 0) & (missing >= room.unsqueeze(-1))  # (B, K): only visible tokens from here on
        if self.invisible and pressed.any():
            sentences, beams = pressed.nonzero(as_tuple=True)
            if vocabulary is None:
                hidden = torch.tensor(self.invisible, device=log_probs.device)
                log_probs[sentences[:, None], beams[:, None], hidden] = _NEVER
            else:
                log_probs[sentences, beams] = log_probs[sentences, beams].masked_fill(
                    ~self.shows(vocabulary.ids[sentences]), _NEVER
                )
        if eos.numel():
            log_probs[full] = _NEVER
            log_probs[full, :, eos_column] = eos

    def shows(self, token_ids: Tensor) -> Tensor:
        """Which of the ids leave a trace in text, bool of the same shape."""
        return ~torch.isin(token_ids, torch.tensor(self.invisible, dtype=torch.long, device=token_ids.device))


@dataclass(frozen=True)
class _Outputs:
    """A batch's shortlists, and every model's output projection cut to their union."""

    vocabulary: BatchVocabulary
    cut: list[Callable[[Tensor], Tensor]]

    def reorder(self, beams: Tensor) -> _Outputs:
        return self

    def keep(self, sentences: Tensor) -> _Outputs:
        return replace(self, vocabulary=self.vocabulary.keep(sentences))


def _linear(weight: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda states: F.linear(states, weight)


def _columns(ids: Tensor | None, vocabulary: BatchVocabulary | None) -> Tensor | None:
    """(B, ...) token ids -> where they stand among the log-probabilities."""
    return ids if ids is None or vocabulary is None else vocabulary.columns_of(ids)


def _named(candidates: Candidates, vocabulary: BatchVocabulary | None) -> Candidates:
    """Candidates whose columns in a shortlist are token ids again."""
    if vocabulary is None:
        return candidates
    return replace(candidates, token_ids=vocabulary.token_ids(candidates.token_ids))


def num_rows(num_sentences: int, row_width: int) -> int:
    """Sentences to compute so that, at `row_width` rows each, there are at least MIN_ROWS rows."""
    return max(num_sentences, -(-MIN_ROWS // row_width))


def _fill(num_sentences: int, row_width: int, device: torch.device) -> Tensor:
    rows = torch.arange(num_rows(num_sentences, row_width), device=device)
    return rows.clamp(max=num_sentences - 1)


def _picked(logits: Tensor, candidates: Candidates) -> Tensor:
    """(B, K, V) -> (B, W), those of the candidates."""
    return logits.flatten(1).gather(1, candidates.beams * logits.size(-1) + candidates.token_ids)
