"""One step of decoding for a batch of beams: models in, the best continuations of every beam out.

Several models are one ensemble: their probabilities are averaged. The stepper knows no search: which beams
live, what is finished and when to stop are not its business, and neither is text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_mt.model.protocol import DecoderState, EncoderOutput, Seq2SeqModel

# Matrix products over fewer rows than this take other kernels, which round differently; with at least this
# many, a row's result does not depend on how many rows there are (measured: 12 suffice, at 1 and 2 threads).
MIN_ROWS = 16
# Width of the blocks whose maxima narrow the vocabulary down before the exact choice.
_BLOCK = 64
_NEVER = float("-inf")


@dataclass(frozen=True)
class Candidates:
    """The C best continuations of every beam, best first, ties by lowest token id.

    log_probs: (B, K, C) fp32, -inf where nothing is left; token_ids: (B, K, C); eos: (B, K) the
    log-probability of ending here, whether that is allowed or not.
    """

    log_probs: Tensor
    token_ids: Tensor
    eos: Tensor


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
    ) -> None:
        """Name the ids that matter here.

        Args:
            models: in evaluation mode, all on one device.
            bos_id: the first decoder input.
            eos_id: what ends a hypothesis.
            banned: ids that are never generated; they keep their share of the probability.
            invisible: ids that leave no trace in text, such as a lone space.
            min_length: fewest visible tokens of a hypothesis, as long as its length limit has room for them.
        """
        self.models = list(models)
        self.bos_id = bos_id
        self.eos_id = eos_id
        self.banned = list(banned)
        self.invisible = list(invisible)
        self.min_length = min_length

    def start(self, src_ids: Tensor, src_mask: Tensor, beam_size: int) -> list[DecoderState]:
        """Encode and lay out the beams.

        Args:
            src_ids: (B, S) ending in eos. src_mask: (B, 1, 1, S). beam_size: K.

        Returns:
            One state per model over `num_rows(B, K)` sentences; those from B on repeat the last one.
        """
        num_sentences, src_length = src_ids.shape
        encoded = _fill(num_sentences, src_length, src_ids.device)
        decoded = _fill(num_sentences, beam_size, src_ids.device)
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

    def logits(
        self, token_ids: Tensor, states: Sequence[DecoderState]
    ) -> tuple[Tensor, Tensor, list[DecoderState]]:
        """(B, K) ids -> (B, K, V) fp32 logits, their (B, K) log-normaliser, and the states that follow."""
        outputs, following = [], []
        for model, state in zip(self.models, states, strict=True):
            hidden, state_after = model.decode_step(token_ids, state)
            outputs.append(model.project(hidden).float())
            following.append(state_after)
        if len(outputs) > 1:
            # Mean of probabilities, kept in logarithms.
            stacked = torch.stack([output.log_softmax(-1) for output in outputs])  # (models, B, K, V)
            logits = stacked.logsumexp(0) - torch.tensor(float(len(outputs))).log()
        else:
            logits = outputs[0]
        return logits, logits.logsumexp(-1), following

    def restrict(self, logits: Tensor, visible: Tensor, room: Tensor) -> None:
        """Rule out, in place, what may not come next.

        Args:
            logits: (B, K, V).
            visible: (B, K) visible tokens of every beam so far.
            room: (B,) tokens that may still come before eos.
        """
        for token in self.banned:
            logits[..., token] = _NEVER
        missing = self.min_length - visible
        logits[..., self.eos_id].masked_fill_(missing > 0, _NEVER)
        pressed = (missing > 0) & (missing >= room.unsqueeze(-1))  # (B, K): only visible tokens from here on
        if self.invisible and pressed.any():
            hidden = torch.zeros(logits.size(-1), dtype=torch.bool, device=logits.device)
            hidden[self.invisible] = True
            logits.masked_fill_(pressed.unsqueeze(-1) & hidden, _NEVER)

    def shows(self, token_ids: Tensor) -> Tensor:
        """Which of the ids leave a trace in text, bool of the same shape."""
        return ~torch.isin(token_ids, torch.tensor(self.invisible, dtype=torch.long, device=token_ids.device))

    def step(
        self, token_ids: Tensor, states: Sequence[DecoderState], *, count: int, visible: Tensor, room: Tensor
    ) -> tuple[Candidates, list[DecoderState]]:
        """One decoder step and the `count` best continuations of every beam.

        Only these are normalised: subtracting the log-normaliser does not change their order.

        Args:
            token_ids: (B, K) the last token of every beam.
            states: one per model.
            count: C, cut to the vocabulary.
            visible: as in `restrict`.
            room: as in `restrict`.
        """
        logits, normaliser, following = self.logits(token_ids, states)
        vocab_size = logits.size(-1)
        eos = logits[..., self.eos_id] - normaliser
        self.restrict(logits, visible, room)
        values, ids = top_candidates(logits.view(-1, vocab_size), min(count, vocab_size))  # (B * K, C)
        shape = (*token_ids.shape, -1)
        log_probs = values.view(shape) - normaliser.unsqueeze(-1)
        return Candidates(log_probs, ids.view(shape), eos), following


def num_rows(num_sentences: int, row_width: int) -> int:
    """Sentences to compute so that, at `row_width` rows each, there are at least MIN_ROWS rows."""
    return max(num_sentences, -(-MIN_ROWS // row_width))


def _fill(num_sentences: int, row_width: int, device: torch.device) -> Tensor:
    rows = torch.arange(num_rows(num_sentences, row_width), device=device)
    return rows.clamp(max=num_sentences - 1)


def top_candidates(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of every row, best first, equal ones in the order of their index.

    `torch.topk` leaves the order of ties open. Each of the `count` best values lies in one of the `count`
    blocks with the best maxima, so only those are searched exactly.

    Args:
        values: (N, V) fp32.

    Returns:
        (N, count) values and their (N, count) indices.
    """
    num_blocks = values.size(1) // _BLOCK
    if num_blocks <= 2 * count:
        order = _first_largest(values, count)
        return values.gather(1, order), order
    whole = num_blocks * _BLOCK
    blocks = values[:, :whole].view(-1, num_blocks, _BLOCK)
    # In ascending order, so that candidates stand in the order of their index.
    chosen = _first_largest(blocks.amax(-1), count).sort(-1).values
    inside = blocks.gather(1, chosen.unsqueeze(-1).expand(-1, -1, _BLOCK)).flatten(1)  # (N, count * _BLOCK)
    offsets = torch.arange(_BLOCK, device=values.device)
    inside_ids = (chosen.unsqueeze(-1) * _BLOCK + offsets).flatten(1)
    rest_ids = torch.arange(whole, values.size(1), device=values.device).expand(len(values), -1)
    candidates = torch.cat([inside, values[:, whole:]], 1)
    candidate_ids = torch.cat([inside_ids, rest_ids], 1)
    order = _first_largest(candidates, count)
    return candidates.gather(1, order), candidate_ids.gather(1, order)


def _first_largest(values: Tensor, count: int) -> Tensor:
    """(N, M) fp32 -> (N, count) positions of the largest, best first, equal ones by position.

    Value and position make one integer key without ties: the bits of a float order like integers once those
    of negative numbers are flipped.
    """
    bits = (values + 0.0).view(torch.int32)  # + 0.0: minus zero equals zero
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    backwards = torch.arange(values.size(1) - 1, -1, -1, device=values.device)
    return ((ordered.long() << 32) | backwards).topk(count, dim=1).indices
