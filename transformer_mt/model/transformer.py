"""Encoder, decoder and the whole Transformer with its two ways: all positions at once, or step by step.

Also gradient checkpointing and the one place where weights get their first values. This module knows no
text, no loss and no search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from transformer_mt.model.attention import MultiHeadAttention
from transformer_mt.model.cache import KeyValueCache, TransformerState
from transformer_mt.model.dropout import dropout
from transformer_mt.model.embedding import TokenEmbedding, output_logits
from transformer_mt.model.feed_forward import FeedForward
from transformer_mt.model.layers import DecoderLayer, EncoderLayer
from transformer_mt.model.masks import beam_mask
from transformer_mt.model.packed_attention import Packing
from transformer_mt.model.positional_encoding import LearnedPositions, SinusoidalPositions
from transformer_mt.model.protocol import AttentionLayer, DecoderState, EncoderOutput

AddedPositions = SinusoidalPositions | LearnedPositions


class Encoder(nn.Module):
    """Positions, layers and, for pre-norm, a last norm."""

    def __init__(
        self,
        layers: Sequence[EncoderLayer],
        positions: AddedPositions | None,
        final_norm: nn.Module | None,
        *,
        dropout: float,
        gradient_checkpointing: bool,
    ) -> None:
        """Args: the built parts (positions None: none are added); dropout, rate on the embedded input."""
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.positions = positions
        self.final_norm = final_norm
        self.dropout = dropout
        self.gradient_checkpointing = gradient_checkpointing

    def forward(self, embedded: Tensor, src_mask: Tensor | Packing | None) -> Tensor:
        """(B, S, D), (B, 1, 1, S) -> memory (B, S, D); of packed sentences (1, N, D) and their places.

        Without a mask all positions are real.
        """
        packing = src_mask if isinstance(src_mask, Packing) else None
        states = to_stream(add_positions(embedded, self.positions, packing=packing))
        states = dropout(states, self.dropout, self.training)
        for layer in self.layers:
            states = run_layer(layer, states, src_mask, recompute=self.gradient_checkpointing)
        return states if self.final_norm is None else self.final_norm(states)


class Decoder(nn.Module):
    """Positions, layers and, for pre-norm, a last norm."""

    def __init__(
        self,
        layers: Sequence[DecoderLayer],
        positions: AddedPositions | None,
        final_norm: nn.Module | None,
        *,
        dropout: float,
        gradient_checkpointing: bool,
    ) -> None:
        """Args: the built parts (positions None: none are added); dropout, rate on the embedded input."""
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.positions = positions
        self.final_norm = final_norm
        self.dropout = dropout
        self.gradient_checkpointing = gradient_checkpointing

    def forward(
        self, embedded: Tensor, memory: Tensor, src_mask: Tensor | Packing, packing: Packing | None = None
    ) -> Tensor:
        """(B, T, D), (B, S, D), (B, 1, 1, S) -> (B, T, D); packed sentences as in `DecoderLayer`."""
        states = self._prepare(embedded, packing)
        for layer in self.layers:
            states = run_layer(
                layer, states, memory, src_mask, packing, recompute=self.gradient_checkpointing
            )
        return states if self.final_norm is None else self.final_norm(states)

    def cross_weights(self, embedded: Tensor, memory: Tensor, src_mask: Tensor) -> Iterator[Tensor]:
        """Attention weights (B, H, T, S) of one layer after the other, each computed when it is asked for."""
        states = self._prepare(embedded)
        for layer in self._layers():
            yield layer.cross_weights(states, memory, src_mask)
            states = layer(states, memory, src_mask)

    def start(self, memory: Tensor, src_mask: Tensor, beam_size: int) -> TransformerState:
        """State before the first token; every layer's source keys and values are computed here."""
        batch = memory.size(0)
        projected, caches = [], []
        for layer in self._layers():
            attention = layer.self_attention
            keys, values = layer.cross_attention.project_memory(memory)
            projected.append((keys.contiguous(), values.contiguous()))
            caches.append(
                KeyValueCache.empty(batch, attention.num_kv_heads, beam_size, attention.head_dim, like=keys)
            )
        ancestors = torch.empty(batch, beam_size, 0, dtype=torch.int64, device=memory.device)
        return TransformerState(tuple(projected), src_mask, tuple(caches), ancestors)

    def step(self, embedded: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """One position: (B, K, D) -> (B, K, D) and the state that follows."""
        beams, length = embedded.size(1), state.length
        ancestors = state.next_ancestors(beams)
        slots = state.starts[-1] + beams
        mask = beam_mask(ancestors, slots) if slots > length + 1 else None
        states = add_positions(embedded, self.positions, step=length)
        caches = []
        for layer, cache, memory in zip(self._layers(), state.caches, state.memory, strict=True):
            states, follower = layer.step(
                states, cache, state.starts, mask, memory=memory, src_mask=state.src_mask
            )
            caches.append(follower)
        if self.final_norm is not None:
            states = self.final_norm(states)
        starts = (*state.starts, slots)
        return states, replace(state, caches=tuple(caches), ancestors=ancestors, starts=starts)

    def _layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]

    def _prepare(self, embedded: Tensor, packing: Packing | None = None) -> Tensor:
        states = to_stream(add_positions(embedded, self.positions, packing=packing))
        return dropout(states, self.dropout, self.training)


class Transformer(nn.Module):
    """An encoder-decoder Transformer; implements `Seq2SeqModel`.

    A tied matrix has one name: `src_embedding` is None when the source uses the target embedding, and
    `output` is None when the target embedding is the output projection.
    """

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder,
        tgt_embedding: TokenEmbedding,
        src_embedding: TokenEmbedding | None = None,
        output: nn.Linear | None = None,
    ) -> None:
        """Args: the built parts; src_embedding None and output None tie them to tgt_embedding."""
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.tgt_embedding = tgt_embedding
        self.src_embedding = src_embedding
        self.output = output

    @property
    def output_weight(self) -> Tensor:
        """(V, D) matrix of the output projection."""
        return self.tgt_embedding.weight if self.output is None else self.output.weight

    @property
    def max_length(self) -> int | None:
        """Longest sentence in tokens that the positions hold; None is no limit."""
        positions = self.encoder.positions
        return positions.weight.size(0) if isinstance(positions, LearnedPositions) else None

    @property
    def num_decoder_layers(self) -> int:
        """Decoder layers, each with attention to the source."""
        return len(self.decoder.layers)

    def hidden(self, src_ids: Tensor, src_mask: Tensor, decoder_input_ids: Tensor) -> Tensor:
        """(B, S), (B, 1, 1, S), (B, T) -> (B, T, D), the states before the output projection."""
        memory = self._memory(src_ids, src_mask)
        result: Tensor = self.decoder(self.tgt_embedding(decoder_input_ids), memory, src_mask)
        return result

    def hidden_packed(self, src_ids: Tensor, src: Packing, decoder_input_ids: Tensor, tgt: Packing) -> Tensor:
        """The same of packed sentences: (M,) and (N,) ids and their places -> (N, D)."""
        memory = self._memory(src_ids[None], src)
        result: Tensor = self.decoder(self.tgt_embedding(decoder_input_ids[None]), memory, src, tgt)
        return result[0]

    def has_packed_kernel(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Whether every attention has a kernel for packed sentences on this device, in this dtype."""
        attentions = [module for module in self.modules() if isinstance(module, MultiHeadAttention)]
        return all(attention.has_packed_kernel(device, dtype) for attention in attentions)

    def compile_layers(self, backend: str = "inductor") -> None:
        """Let `torch.compile` fuse the operations of every layer, in place; names of weights stay.

        Layers of one kind share one compiled function, which takes any shape: compiling the whole model takes
        as many times longer as it has layers, and the loop of the fused loss would compile anew per shape.
        """
        for layer in (*self.encoder.layers, *self.decoder.layers):
            layer.compile(dynamic=True, backend=backend)

    def project(self, hidden: Tensor, vocabulary: Tensor | None = None) -> Tensor:
        """(..., D) -> logits (..., V), or (..., N) of a vocabulary (N,) for all or (..., N) for each."""
        return output_logits(hidden, self.output_weight, vocabulary)

    def encode(self, src_ids: Tensor, src_mask: Tensor) -> EncoderOutput:
        """(B, S), (B, 1, 1, S) -> EncoderOutput."""
        return EncoderOutput(self._memory(src_ids, src_mask), src_mask)

    def start(self, encoder_output: EncoderOutput, beam_size: int) -> DecoderState:
        """State before the first target token; cross-attention keys and values are computed here, once."""
        return self.decoder.start(encoder_output.memory, encoder_output.src_mask, beam_size)

    def decode_step(self, token_ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """token_ids (B, K) -> hidden (B, K, D) of the next position, and the state that follows."""
        assert isinstance(state, TransformerState)
        return self.decoder.step(self.tgt_embedding(token_ids), state)

    def cross_attention(
        self, src_ids: Tensor, src_mask: Tensor, decoder_input_ids: Tensor, layer: AttentionLayer = None
    ) -> Tensor:
        """(B, T, S) attention weights averaged over heads."""
        memory = self._memory(src_ids, src_mask)
        embedded = self.tgt_embedding(decoder_input_ids)
        weights = self.decoder.cross_weights(embedded, memory, src_mask)
        return pick_layer((heads.mean(dim=1) for heads in weights), self.num_decoder_layers, layer)

    def _memory(self, src_ids: Tensor, src_mask: Tensor | Packing) -> Tensor:
        embedding = self.tgt_embedding if self.src_embedding is None else self.src_embedding
        memory: Tensor = self.encoder(embedding(src_ids), src_mask)
        return memory


def pick_layer(weights: Iterator[Tensor], num_layers: int, layer: AttentionLayer) -> Tensor:
    """Attention weights of the chosen layer, or the mean of all; `weights` gives them layer by layer."""
    if layer == "mean":
        return torch.stack(list(weights)).mean(dim=0)
    number = range(num_layers)[-1 if layer is None else layer]
    return next(islice(weights, number, None))


def add_positions(
    embedded: Tensor,
    positions: AddedPositions | None,
    step: int | None = None,
    packing: Packing | None = None,
) -> Tensor:
    """Add position vectors to embeddings (B, T, D).

    With `step`, all rows stand at that one position; with `packing`, (1, N, D) at the places it names.
    """
    if positions is None:
        return embedded
    vectors: Tensor
    if packing is not None:
        vectors = positions.at(packing.positions, packing.longest)
    elif step is not None:
        vectors = positions(1, step)
    else:
        vectors = positions(embedded.size(1))
    return embedded + vectors.to(embedded.dtype)


def to_stream(states: Tensor) -> Tensor:
    """States in the dtype of the residual stream: bfloat16 under autocast on a CPU, else as they are.

    Norms and additions then read and write half the bytes, and no product needs its input converted. On cards
    autocast norms give fp32 whatever they are given; fp16 cannot hold the sums of a deep stream.
    """
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else states.dtype
    return states.to(dtype) if states.device.type == "cpu" and dtype == torch.bfloat16 else states


def run_layer(layer: nn.Module, *inputs: Any, recompute: bool) -> Tensor:
    """Run one layer; with `recompute`, keep only its inputs and run it again, same dropout, backwards."""
    if recompute and torch.is_grad_enabled():
        result: Tensor = checkpoint(layer, *inputs, use_reentrant=False, preserve_rng_state=True)
    else:
        result = layer(*inputs)
    return result


def initialise(model: nn.Module) -> None:
    """Give all weights their first values, drawn from torch's default generator.

    | weight | value |
    |---|---|
    | token embeddings, learned positions | normal, mean 0, standard deviation D^-0.5 |
    | untied output projection | normal, mean 0, standard deviation D^-0.5 |
    | query, key, value, output of attention | Xavier uniform, each as its own matrix |
    | feed-forward (gate and value each by itself) | Xavier uniform |
    | biases | 0 |
    | norms | weight 1, bias 0 |
    """
    for module in model.modules():
        if isinstance(module, TokenEmbedding | LearnedPositions):
            nn.init.normal_(module.weight, std=module.weight.size(1) ** -0.5)
        elif isinstance(module, MultiHeadAttention):
            _initialise_attention(module)
        elif isinstance(module, FeedForward):
            halves = 2 if module.activation == "swiglu" else 1
            for matrix in module.inner.weight.chunk(halves):
                nn.init.xavier_uniform_(matrix)
            nn.init.xavier_uniform_(module.outer.weight)
            nn.init.zeros_(module.inner.bias)
            nn.init.zeros_(module.outer.bias)
        elif isinstance(module, nn.LayerNorm | nn.RMSNorm):
            module.reset_parameters()
        elif isinstance(module, Transformer) and module.output is not None:
            nn.init.normal_(module.output.weight, std=module.output.weight.size(1) ** -0.5)


def _initialise_attention(attention: MultiHeadAttention) -> None:
    width, kv_width = attention.num_heads * attention.head_dim, attention.num_kv_heads * attention.head_dim
    if attention.cross:
        projections = [(attention.query, [width]), (attention.key_value, [kv_width, kv_width])]
    else:
        projections = [(attention.query_key_value, [width, kv_width, kv_width])]
    if isinstance(attention.output, nn.Linear):
        projections.append((attention.output, [width]))
    for linear, rows in projections:
        for matrix in torch.split(linear.weight, rows):
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(linear.bias)
