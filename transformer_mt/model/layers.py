"""Encoder and decoder layers, pre- or post-norm. Knows nothing of embeddings, positions or stacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from torch import Tensor, nn

from transformer_mt.model.attention import MultiHeadAttention
from transformer_mt.model.cache import KeyValueCache
from transformer_mt.model.dropout import dropout
from transformer_mt.model.feed_forward import FeedForward
from transformer_mt.model.packed_attention import Packing

NormKind = Literal["layer_norm", "rms_norm"]


def make_norm(kind: NormKind, d_model: int) -> nn.Module:
    """The normalisation of one vector of width d_model."""
    return nn.LayerNorm(d_model, eps=1e-5) if kind == "layer_norm" else nn.RMSNorm(d_model, eps=1e-5)


class Residual(nn.Module):
    """A block with its norm, dropout and bypass: x + f(norm(x)) (pre-norm) or norm(x + f(x)) (post-norm)."""

    def __init__(self, norm: nn.Module, *, norm_first: bool, dropout: float) -> None:
        """Args: norm, over the last dimension; norm_first, pre-norm; dropout, rate on the block's output."""
        super().__init__()
        self.norm = norm
        self.norm_first = norm_first
        self.dropout = dropout

    def forward(self, states: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        changed = block(self.norm(states)) if self.norm_first else block(states)
        states = states + dropout(changed, self.dropout, self.training)
        if not self.norm_first:
            states = self.norm(states)
        return states


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        *,
        d_model: int,
        norm: NormKind,
        norm_first: bool,
        dropout: float,
    ) -> None:
        """Args: the built blocks; d_model, width; norm, norm_first, kind and place; dropout, rate."""
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.around_self = Residual(make_norm(norm, d_model), norm_first=norm_first, dropout=dropout)
        self.around_feed_forward = Residual(make_norm(norm, d_model), norm_first=norm_first, dropout=dropout)

    def forward(self, states: Tensor, src_mask: Tensor | Packing | None) -> Tensor:
        """(B, S, D) under (B, 1, 1, S) -> (B, S, D); of packed sentences (1, N, D) and their places."""
        states = self.around_self(states, lambda x: self.self_attention(x, src_mask))
        result: Tensor = self.around_feed_forward(states, self.feed_forward)
        return result


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        *,
        d_model: int,
        norm: NormKind,
        norm_first: bool,
        dropout: float,
    ) -> None:
        """Args: the built blocks; d_model, width; norm, norm_first, kind and place; dropout, rate."""
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.around_self = Residual(make_norm(norm, d_model), norm_first=norm_first, dropout=dropout)
        self.around_cross = Residual(make_norm(norm, d_model), norm_first=norm_first, dropout=dropout)
        self.around_feed_forward = Residual(make_norm(norm, d_model), norm_first=norm_first, dropout=dropout)

    def forward(
        self,
        states: Tensor,
        memory: Tensor,
        src_mask: Tensor | Packing | None,
        packing: Packing | None = None,
    ) -> Tensor:
        """(B, T, D), (B, S, D), (B, 1, 1, S) -> (B, T, D).

        Of packed sentences (1, N, D), (1, M, D), the places of M source tokens and of N target tokens.
        """
        states = self.around_self(states, lambda x: self.self_attention(x, packing))
        return self._after_self(states, self.cross_attention.project_memory(memory), src_mask, packing)

    def step(
        self,
        states: Tensor,
        cache: KeyValueCache,
        starts: Sequence[int],
        mask: Tensor | None,
        *,
        memory: tuple[Tensor, Tensor],
        src_mask: Tensor | None,
    ) -> tuple[Tensor, KeyValueCache]:
        """One position of all beams: (B, K, D) -> (B, K, D) and the cache that follows."""
        followers = []

        def attend_past(x: Tensor) -> Tensor:
            result, follower = self.self_attention.step(x, cache, starts, mask)
            followers.append(follower)
            return result

        states = self.around_self(states, attend_past)
        return self._after_self(states, memory, src_mask), followers[0]

    def cross_weights(self, states: Tensor, memory: Tensor, src_mask: Tensor | None) -> Tensor:
        """Attention weights (B, H, T, S) that `forward` gives the source, by the plain path."""
        states = self.around_self(states, self.self_attention)
        query = self.around_cross.norm(states) if self.around_cross.norm_first else states
        return self.cross_attention.memory_weights(
            query, self.cross_attention.project_memory(memory), src_mask
        )

    def _after_self(
        self,
        states: Tensor,
        memory: tuple[Tensor, Tensor],
        src_mask: Tensor | Packing | None,
        packing: Packing | None = None,
    ) -> Tensor:
        states = self.around_cross(
            states, lambda x: self.cross_attention.attend_memory(x, memory, src_mask, packing)
        )
        result: Tensor = self.around_feed_forward(states, self.feed_forward)
        return result
