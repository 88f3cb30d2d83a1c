"""What every translation model offers to training and search, and what a search state can do.

Two models meet here (Transformer, LSTM); the searches, the trainer and the scorer know nothing else.
Shape letters everywhere in the package: B batch, S source length, T target length, D d_model, H heads,
E head_dim, F d_ff, V vocabulary, K beam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from transformer_mt.model.packed_attention import Packing

AttentionLayer = int | Literal["mean"] | None
"""A decoder layer from 0, the mean of all layers, or the last one."""


@dataclass(frozen=True)
class EncoderOutput:
    """What the encoder leaves for the decoder.

    memory: (B, S, D) states of the source; src_mask: (B, 1, 1, S) bool, True = may be attended;
    final_state: (B, D) summary for models whose decoder starts from one, otherwise None.
    """

    memory: Tensor
    src_mask: Tensor
    final_state: Tensor | None = None


class DecoderState(Protocol):
    """Everything that a partly decoded batch of B sentences with K beams each has to carry along."""

    def reorder(self, beams: Tensor) -> DecoderState:
        """beams: (B, K) int64, for each beam of the next step the one of the same sentence it continues."""
        ...

    def keep(self, sentences: Tensor) -> DecoderState:
        """sentences: (B',) int64, the rows that stay, in their new order."""
        ...


class Seq2SeqModel(Protocol):
    """An encoder-decoder model over ids. All masks are bool with True = may attend."""

    @property
    def max_length(self) -> int | None:
        """Longest sentence in tokens, eos or bos counted, that the model can take; None is no limit."""
        ...

    def hidden(self, src_ids: Tensor, src_mask: Tensor, decoder_input_ids: Tensor) -> Tensor:
        """(B, S), (B, 1, 1, S), (B, T) -> (B, T, D), the states before the output projection."""
        ...

    def project(self, hidden: Tensor, vocabulary: Tensor | None = None) -> Tensor:
        """(..., D) -> logits (..., V), or (..., N) of a vocabulary (N,) for all or (..., N) for each."""
        ...

    def encode(self, src_ids: Tensor, src_mask: Tensor) -> EncoderOutput:
        """(B, S), (B, 1, 1, S) -> EncoderOutput."""
        ...

    def start(self, encoder_output: EncoderOutput, beam_size: int) -> DecoderState:
        """State before the first target token, which may be one beam or up to beam_size.

        Cross-attention keys and values are computed here, once.
        """
        ...

    def decode_step(self, token_ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """token_ids (B, K) -> hidden (B, K, D) of the next position, and the state that follows."""
        ...

    @property
    def num_decoder_layers(self) -> int:
        """Decoder layers, each with attention to the source."""
        ...

    def cross_attention(
        self, src_ids: Tensor, src_mask: Tensor, decoder_input_ids: Tensor, layer: AttentionLayer = None
    ) -> Tensor:
        """(B, T, S) attention weights averaged over heads."""
        ...


class TrainableModel(Seq2SeqModel, Protocol):
    """What training needs beyond search: the matrix behind `project`, and how to batch."""

    def has_packed_kernel(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Whether this is a `PackableModel` and packed batches are the faster ones here, in this dtype."""
        ...

    @property
    def output_weight(self) -> Tensor:
        """(V, D), the one parameter `project` multiplies with."""
        ...


class PackableModel(TrainableModel, Protocol):
    """A model that can also be trained on batches without padding."""

    def hidden_packed(self, src_ids: Tensor, src: Packing, decoder_input_ids: Tensor, tgt: Packing) -> Tensor:
        """`hidden` of packed sentences: (M,) and (N,) ids and their places -> (N, D)."""
        ...
