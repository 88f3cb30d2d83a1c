"""A model whose next-token probabilities come from a rule over (source, history).

A search's results can be checked by hand or by enumeration, and a state that does not follow its beams shows
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_mt.model.protocol import AttentionLayer, EncoderOutput

PAD, UNK, BOS, EOS = 0, 1, 2, 3
BANNED = (PAD, UNK, BOS)

Rule = Callable[[int, tuple[int, ...]], Tensor]
"""(first source id, tokens so far) -> (V,) logits."""


@dataclass(frozen=True)
class TableState:
    """sources: (B,) first source ids; history: (B, K, t), bos first, with any K while t is 0."""

    sources: Tensor
    history: Tensor

    def reorder(self, beams: Tensor) -> TableState:
        index = beams[:, :, None].expand(-1, -1, self.history.size(2))
        return TableState(self.sources, self.history.gather(1, index))

    def keep(self, sentences: Tensor) -> TableState:
        return TableState(self.sources[sentences], self.history[sentences])


class TableModel:
    """Seq2SeqModel whose hidden states are the logits themselves."""

    max_length: int | None = None
    num_decoder_layers = 1

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.rows_per_step: list[int] = []

    def encode(self, src_ids: Tensor, src_mask: Tensor) -> EncoderOutput:
        return EncoderOutput(src_ids[:, :, None].float(), src_mask)

    def start(self, encoder_output: EncoderOutput, beam_size: int) -> TableState:
        sources = encoder_output.memory[:, 0, 0].long()
        return TableState(sources, torch.zeros(len(sources), beam_size, 0, dtype=torch.long))

    def decode_step(self, token_ids: Tensor, state: TableState) -> tuple[Tensor, TableState]:
        self.rows_per_step.append(token_ids.numel())
        history = token_ids[:, :, None]
        if state.history.size(2):
            history = torch.cat([state.history, history], 2)
        rows = [
            torch.stack([self.rule(source, tuple(beam[1:])) for beam in beams])
            for source, beams in zip(state.sources.tolist(), history.tolist(), strict=True)
        ]
        return torch.stack(rows), TableState(state.sources, history)

    def project(self, hidden: Tensor, vocabulary: Tensor | None = None) -> Tensor:
        return hidden.clone() if vocabulary is None else hidden[..., vocabulary]

    def hidden(self, src_ids: Tensor, src_mask: Tensor, decoder_input_ids: Tensor) -> Tensor:
        raise AssertionError("the searches decode step by step")

    def cross_attention(
        self, src_ids: Tensor, src_mask: Tensor, decoder_input_ids: Tensor, layer: AttentionLayer = None
    ) -> Tensor:
        raise AssertionError("the searches need no attention weights")


def random_rule(seed: int, vocab_size: int, spread: float = 2.0) -> Rule:
    """Fixed random logits for every (source, history)."""
    table: dict[tuple[int, tuple[int, ...]], Tensor] = {}

    def rule(source: int, history: tuple[int, ...]) -> Tensor:
        key = (source, history)
        if key not in table:
            value = seed
            for item in (source, *history):
                value = (value * 1_000_003 + item + 1) % 2**61
            generator = torch.Generator().manual_seed(value)
            table[key] = torch.randn(vocab_size, generator=generator) * spread
        return table[key]

    return rule


Script = dict[tuple[int, ...], dict[int, float]]


def scripted_rule(vocab_size: int, script: Script, rest: float = -20.0) -> Rule:
    """Log-probabilities written down for some histories; what is not named gets `rest`."""

    def rule(source: int, history: tuple[int, ...]) -> Tensor:
        log_probs = torch.full((vocab_size,), rest)
        for token, value in script.get(history, {}).items():
            log_probs[token] = value
        # What is left of the probability goes to a banned id, so that the values stay what they are.
        mass = log_probs.exp().sum() - log_probs[PAD].exp()
        assert mass <= 1.0
        log_probs[PAD] = torch.log1p(-mass) if mass < 1.0 else float("-inf")
        return log_probs

    return rule


def sources(first_ids: Sequence[int], length: int = 3) -> tuple[Tensor, Tensor]:
    """(B, S) source ids beginning with the given ids and ending in eos, and their (B, 1, 1, S) mask."""
    src_ids = torch.tensor([[first] + [4] * (length - 2) + [EOS] for first in first_ids])
    return src_ids, torch.ones(len(first_ids), 1, 1, length, dtype=torch.bool)
