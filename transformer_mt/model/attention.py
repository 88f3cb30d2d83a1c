"""Multi-head attention: the visible product, the fused kernel beside it, grouped keys, window and cache.

Shapes: B batch, T queries, S keys, D d_model, H heads, G = H / H_kv query heads per key head, E head_dim,
K beam. Masks are bool, True = may attend. This module knows nothing of layers, norms or residuals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_mt.model.cache import KeyValueCache
from transformer_mt.model.dropout import dropout
from transformer_mt.model.masks import combine, position_mask
from transformer_mt.model.packed_attention import Packing, has_kernel, kernel_attention, packed_mask
from transformer_mt.model.positional_encoding import RotaryPositions

FUSED_FROM = {
    ("fp32", "forward"): 64 * 64,
    ("fp32", "backward"): 128 * 128,
    ("half", "forward"): 2048 * 2048,
    ("half", "backward"): 1024 * 1024,
}
"""Queries times keys from which the fused CPU kernel is used, by dtype and direction of the pass.

Measured by `tools/attention_table`. In half precision the plain product is the faster one at every length;
from these on the memory of its weights counts more.
"""
BLOCKS_FROM = 4
"""Lengths of at least this many windows are attended block by block, in memory linear in the length."""


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, scale: bool = True) -> Tensor:
    """softmax(Q K^T / sqrt(E)) ("Attention Is All You Need", equation 1).

    Args:
        query: (B, H, T, E).
        key: (B, H_kv, S, E); query head h looks at key head h // G.
        mask: broadcastable to (B, H, T, S), or None. A row without any key gets equal weights, not NaN.
        scale: False leaves the division out (studies only).

    Returns:
        (B, H, T, S).
    """
    batch, heads, length, head_dim = query.shape
    # The heads of a group are more rows for the same keys: (B, H_kv, G * T, E), no key is copied.
    query = query.reshape(batch, key.size(1), -1, head_dim)
    if scale:
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    else:
        scores = torch.matmul(query, key.transpose(-2, -1))
    scores = scores.view(batch, heads, length, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1)


def plain_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    dropout_rate: float = 0.0,
    scale: bool = True,
) -> Tensor:
    """Attention as in the paper; shapes as in `attention_weights`, value like key. Returns (B, H, T, E)."""
    weights = dropout(attention_weights(query, key, mask, scale), dropout_rate, training=True)
    batch, heads, length, keys = weights.shape
    grouped = weights.view(batch, value.size(1), -1, keys)  # (B, H_kv, G * T, S)
    return torch.matmul(grouped, value).view(batch, heads, length, -1)


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    dropout_rate: float = 0.0,
    scale: bool = True,
) -> Tensor:
    """The same in one kernel that never stores the (T, S) weights."""
    return F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        dropout_p=dropout_rate,
        scale=None if scale else 1.0,
        enable_gqa=query.size(1) != key.size(1),
    )


def prefers_fused(query: Tensor, key: Tensor, dropout_rate: float) -> bool:
    """Whether the fused kernel is the better one: always on a GPU, on a CPU for long inputs only.

    At sentence lengths the fused CPU kernel is up to six times slower backwards in bfloat16, and with
    dropout it falls back to plain products and slow masks. The batch never decides: neighbours must not
    change a line.
    """
    if query.device.type != "cpu":
        return True
    dtype = "fp32" if query.dtype == torch.float32 else "half"
    direction = "backward" if torch.is_grad_enabled() and query.requires_grad else "forward"
    return dropout_rate == 0.0 and query.size(-2) * key.size(-2) >= FUSED_FROM[dtype, direction]


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    dropout_rate: float = 0.0,
    scale: bool = True,
) -> Tensor:
    """Attention by whichever implementation is faster here."""
    attention = fused_attention if prefers_fused(query, key, dropout_rate) else plain_attention
    return attention(query, key, value, mask, dropout_rate=dropout_rate, scale=scale)


def attend_positions(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_mask: Tensor | None,
    *,
    causal: bool = False,
    window: int | None = None,
    attention: Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor] = attend,
) -> Tensor:
    """Self-attention of all positions: to all, or block by block where the window is small.

    Args:
        query: (B, H, T, E). key, value: (B, H_kv, T, E).
        key_mask: (B, 1, 1, T), or None.
        causal: as in `position_mask`, and so is `window`.
        attention: what attends; its arguments and result are those of `attend`.

    Returns:
        (B, H, T, E).
    """
    length = query.size(2)
    positions = torch.arange(length, device=query.device)
    if window is None or length < BLOCKS_FROM * window:
        mask = position_mask(positions, positions, causal=causal, window=window)
        return attention(query, key, value, combine(key_mask, mask))
    results = []
    for start in range(0, length, window):
        stop = min(start + window, length)
        # The keys that these queries can reach.
        reach = slice(max(0, start - window + 1), stop if causal else min(length, stop + window - 1))
        mask = position_mask(positions[start:stop], positions[reach], causal=causal, window=window)
        if key_mask is not None:
            mask = combine(key_mask[..., reach], mask)
        results.append(attention(query[:, :, start:stop], key[:, :, reach], value[:, :, reach], mask))
    return torch.cat(results, dim=2)


class MultiHeadAttention(nn.Module):
    """Attention with its projections: self-attention, or with `cross` attention to a memory."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        *,
        cross: bool = False,
        causal: bool = False,
        window: int | None = None,
        rotary: RotaryPositions | None = None,
        dropout: float = 0.0,
        scale: bool = True,
        output_projection: bool = True,
    ) -> None:
        """Build the projections.

        Args:
            d_model: width D, a multiple of num_heads.
            num_heads: query heads H.
            num_kv_heads: key/value heads H_kv, a divisor of H (None: H).
            cross: keys and values come from a memory, not from the queries' own states.
            causal: self-attention that sees no later position.
            window: self-attention that sees positions less than this far away.
            rotary: turns queries and keys of self-attention by their positions.
            dropout: rate on the attention weights.
            scale: divide scores by sqrt(E); False in studies only.
            output_projection: mix the heads afterwards; False in studies only.
        """
        super().__init__()
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads or num_heads
        self.head_dim = d_model // num_heads
        self.cross = cross
        self.causal = causal
        self.window = window
        self.rotary = rotary
        self.dropout = dropout
        self.scale = scale
        self.watch: Callable[[Tensor, Tensor, Tensor | None], None] | None = None
        """Shown queries, keys and mask before they are attended, on every way but the packed kernel's."""
        kv_width = 2 * self.num_kv_heads * self.head_dim
        if cross:
            self.query = nn.Linear(d_model, d_model)
            self.key_value = nn.Linear(d_model, kv_width)
        else:
            self.query_key_value = nn.Linear(d_model, d_model + kv_width)  # one product is faster than three
        self.output = nn.Linear(d_model, d_model) if output_projection else nn.Identity()

    def has_packed_kernel(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Whether packed sentences would be attended by one kernel here, and so faster than padded ones."""
        return has_kernel(
            device,
            dtype,
            head_dim=self.head_dim,
            grouped=self.num_kv_heads != self.num_heads,
            dropout_rate=self.dropout if self.training else 0.0,
        )

    def forward(self, states: Tensor, key_mask: Tensor | Packing | None = None) -> Tensor:
        """Self-attention over whole sequences.

        Args:
            states: (B, T, D), or one row (1, N, D) of packed sentences.
            key_mask: (B, 1, 1, T), keys that are real, or None; of packed sentences their places.

        Returns:
            The shape of `states`.
        """
        query, key, value = self._self_projections(states)
        if isinstance(key_mask, Packing):
            if self.rotary is not None:
                query = self.rotary.at(query, key_mask.positions, key_mask.longest)
                key = self.rotary.at(key, key_mask.positions, key_mask.longest)
            return self._merge(self._attend_packed(query, key, value, key_mask, key_mask))
        if self.rotary is not None:
            query, key = self.rotary(query), self.rotary(key)
        attended = attend_positions(
            query,
            key,
            value,
            key_mask,
            causal=self.causal,
            window=self.window,
            attention=self._attend,
        )
        return self._merge(attended)

    def step(
        self, states: Tensor, cache: KeyValueCache, starts: Sequence[int], mask: Tensor | None
    ) -> tuple[Tensor, KeyValueCache]:
        """Self-attention of one new position over its cached past.

        Args:
            states: (B, K, D), one row per beam.
            cache: the past of this layer.
            starts: first slots of all positions, the new one last.
            mask: (B, 1, K, slots), each beam's own history, or None where all slots are every beam's.

        Returns:
            (B, K, D), and the cache with the new position.
        """
        query, key, value = self._self_projections(states)  # (B, H, K, E), (B, H_kv, K, E) twice
        position = len(starts) - 1
        if self.rotary is not None:
            query, key = self.rotary(query, position, step=True), self.rotary(key, position, step=True)
        cache = cache.append(key, value, starts[-1])
        first = 0 if self.window is None else starts[max(0, position + 1 - self.window)]
        seen = slice(first, starts[-1] + states.size(1))
        if mask is not None:
            mask = mask[..., seen]
        return self._merge(self._attend(query, cache.keys[:, :, seen], cache.values[:, :, seen], mask)), cache

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a memory (B, S, D), each (B, H_kv, S, E)."""
        heads = self._heads(self.key_value(memory), 2 * self.num_kv_heads)
        key, value = torch.split(heads, self.num_kv_heads, dim=1)
        return key, value

    def attend_memory(
        self,
        states: Tensor,
        memory: tuple[Tensor, Tensor],
        mask: Tensor | Packing | None,
        packing: Packing | None = None,
    ) -> Tensor:
        """Attention of states to projected memory.

        Args:
            states: (B, T, D), or one row (1, N, D) of packed sentences.
            memory: from `project_memory`.
            mask: (B, 1, 1, S), or where the packed sentences of the memory stand.
            packing: where the packed sentences of the states stand.

        Returns:
            The shape of `states`.
        """
        query = self._heads(self.query(states), self.num_heads)
        if isinstance(mask, Packing):
            assert packing is not None
            return self._merge(self._attend_packed(query, *memory, packing, mask))
        return self._merge(self._attend(query, *memory, mask))

    def memory_weights(self, states: Tensor, memory: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """Attention weights (B, H, T, S) of `attend_memory`, by the plain path."""
        query = self._heads(self.query(states), self.num_heads)
        return attention_weights(query, memory[0], mask, self.scale)

    def _heads(self, projected: Tensor, num_heads: int) -> Tensor:
        batch, length, _ = projected.shape
        return projected.view(batch, length, num_heads, self.head_dim).transpose(1, 2)  # (B, heads, T, E)

    def _self_projections(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        heads = self._heads(self.query_key_value(states), self.num_heads + 2 * self.num_kv_heads)
        query, key, value = torch.split(heads, [self.num_heads, self.num_kv_heads, self.num_kv_heads], dim=1)
        return query, key, value

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        if self.watch is not None:
            self.watch(query, key, mask)
        rate = self.dropout if self.training else 0.0
        return attend(query, key, value, mask, dropout_rate=rate, scale=self.scale)

    def _attend_packed(
        self, query: Tensor, key: Tensor, value: Tensor, queries: Packing, keys: Packing
    ) -> Tensor:
        """(1, H, N, E) to (1, H_kv, M, E), within every sentence."""
        if self.has_packed_kernel(query.device, query.dtype):
            return kernel_attention(
                query, key, value, queries, keys, causal=self.causal, window=self.window, scale=self.scale
            )
        mask = packed_mask(queries, keys, causal=self.causal, window=self.window)
        return self._attend(query, key, value, mask)

    def _merge(self, context: Tensor) -> Tensor:
        batch, _, length, _ = context.shape
        merged = context.transpose(1, 2).reshape(batch, length, -1)  # (B, T, H, E) -> (B, T, D)
        result: Tensor = self.output(merged)
        return result
