"""One step of decoding for a batch of beams: models in, the best continuations of every beam out.

Several models are one ensemble: their probabilities are averaged. The stepper knows no search: which beams
live, what is finished and when to stop are not its business, and neither is text.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer_mt.decoding.candidates import Candidates, mean_log_probs, rescored, top_candidates
from transformer_mt.model.protocol import DecoderState, EncoderOutput, Seq2SeqModel

# Matrix products over fewer rows than this take other kernels, which round differently; with at least this
# many, a row's result does not depend on how many rows there are (measured: 12 suffice, at 1 and 2 threads).
MIN_ROWS = 16
# Candidates beyond those asked for that the rough output matrix proposes: their order may still change.
_MARGIN = 6
_NEVER = float("-inf")


class Stepper:
    """Steps one model, or an ensemble of models with equal vocabularies."""

    def __init__(
        self,
        models: Sequence[Seq2SeqModel],
        *,
        bos_id: int,
        eos_id: int,
        banned: Sequence[int],
        invisible: Sequence[int] = (),
        min_length: int = 0,
        rough_output: nn.Module | None = None,
    ) -> None:
        """Name the ids that matter here.

        Args:
            models: in evaluation mode, all on one device.
            bos_id: the first decoder input.
            eos_id: what ends a hypothesis.
            banned: ids that are never generated; they keep their share of the probability.
            invisible: ids that leave no trace in text, such as a lone space.
            min_length: fewest visible tokens of a hypothesis, as long as its length limit has room for them.
            rough_output: (..., D) -> (..., V), the output projection of the one model in narrower numbers. It
                proposes candidates, whose logits are then computed exactly.
        """
        self.models = list(models)
        self.bos_id = bos_id
        self.eos_id = eos_id
        self.banned = list(banned)
        self.invisible = list(invisible)
        self.min_length = min_length
        self.rough_output = rough_output

    def start(self, src_ids: Tensor, src_mask: Tensor, beam_size: int) -> list[DecoderState]:
        """Encode; every sentence begins with one beam, since all would be alike.

        Args:
            src_ids: (B, S) ending in eos. src_mask: (B, 1, 1, S). beam_size: the most beams to come.

        Returns:
            One state per model over `num_rows(B, 1)` sentences; those from B on repeat the last one.
        """
        num_sentences, src_length = src_ids.shape
        encoded = _fill(num_sentences, src_length, src_ids.device)
        decoded = _fill(num_sentences, 1, src_ids.device)
        states = []
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
        return states

    def step(
        self,
        token_ids: Tensor,
        states: Sequence[DecoderState],
        *,
        scores: Tensor,
        count: int,
        visible: Tensor,
        room: Tensor,
    ) -> tuple[Candidates, list[DecoderState]]:
        """One decoder step and the `count` best continuations of every sentence.

        Args:
            token_ids: (B, K) the last token of every beam.
            states: one per model.
            scores: (B, K) log-probability of every beam so far.
            count: W, cut to K * V.
            visible: as in `restrict`.
            room: as in `restrict`.

        Returns:
            What may come next, and the states that follow.
        """
        hidden, following = [], []
        for model, state in zip(self.models, states, strict=True):
            hidden_after, state_after = model.decode_step(token_ids, state)
            hidden.append(hidden_after)  # (B, K, D)
            following.append(state_after)
        if self.rough_output is not None:
            rough = self.rough_output(hidden[0])
            log_probs = mean_log_probs([rough])
            self.restrict(log_probs, visible, room)
            proposed = top_candidates(log_probs, scores, count + _MARGIN)
            changes = self._exact_logits(hidden[0], proposed) - _picked(rough, proposed)
            return rescored(proposed, log_probs, scores, changes, count), following
        outputs = [model.project(states) for model, states in zip(self.models, hidden, strict=True)]
        log_probs = mean_log_probs(outputs)
        self.restrict(log_probs, visible, room)
        return top_candidates(log_probs, scores, count), following

    def _exact_logits(self, hidden: Tensor, candidates: Candidates) -> Tensor:
        """(B, K, D) -> (B, W) logits of the candidates alone."""
        beams = candidates.beams.unsqueeze(-1).expand(-1, -1, hidden.size(-1))
        return self.models[0].project(hidden.gather(1, beams), candidates.token_ids.unsqueeze(-1)).squeeze(-1)

    def restrict(self, log_probs: Tensor, visible: Tensor, room: Tensor) -> None:
        """Rule out, in place, what may not come next.

        Args:
            log_probs: (B, K, V).
            visible: (B, K) visible tokens of every beam so far.
            room: (B,) tokens that may still come before eos; with 0 eos alone may come, whatever is missing.
        """
        full = room <= 0
        eos = log_probs[full, :, self.eos_id]
        for token in self.banned:
            log_probs[..., token] = _NEVER
        missing = self.min_length - visible
        log_probs[..., self.eos_id].masked_fill_(missing > 0, _NEVER)
        pressed = (missing > 0) & (missing >= room.unsqueeze(-1))  # (B, K): only visible tokens from here on
        if self.invisible and pressed.any():
            sentences, beams = pressed.nonzero(as_tuple=True)
            hidden = torch.tensor(self.invisible, device=log_probs.device)
            log_probs[sentences[:, None], beams[:, None], hidden] = _NEVER
        if eos.numel():
            log_probs[full] = _NEVER
            log_probs[full, :, self.eos_id] = eos

    def shows(self, token_ids: Tensor) -> Tensor:
        """Which of the ids leave a trace in text, bool of the same shape."""
        return ~torch.isin(token_ids, torch.tensor(self.invisible, dtype=torch.long, device=token_ids.device))


def num_rows(num_sentences: int, row_width: int) -> int:
    """Sentences to compute so that, at `row_width` rows each, there are at least MIN_ROWS rows."""
    return max(num_sentences, -(-MIN_ROWS // row_width))


def _fill(num_sentences: int, row_width: int, device: torch.device) -> Tensor:
    rows = torch.arange(num_rows(num_sentences, row_width), device=device)
    return rows.clamp(max=num_sentences - 1)


def _picked(logits: Tensor, candidates: Candidates) -> Tensor:
    """(B, K, V) -> (B, W), those of the candidates."""
    return logits.flatten(1).gather(1, candidates.beams * logits.size(-1) + candidates.token_ids)
