"""Attention against torch.nn.MultiheadAttention with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from transformer_mt.model.attention import MultiHeadAttention
from transformer_mt.model.masks import padding_mask

D, HEADS = 24, 3


def reference(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """torch's module with the weights of ours."""
    module = nn.MultiheadAttention(D, HEADS, batch_first=True)
    parts = [ours.query, ours.key_value] if ours.cross else [ours.query_key_value]
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        module.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        module.out_proj.weight.copy_(ours.output.weight)
        module.out_proj.bias.copy_(ours.output.bias)
    return module


@pytest.mark.parametrize("causal", [True, False])
def test_self_attention(causal: bool) -> None:
    """Pins wrong projections, heads, scale, mask polarity or merging."""
    torch.manual_seed(0)
    ours = MultiHeadAttention(D, HEADS, causal=causal)
    states = torch.randn(2, 7, D)
    ids = torch.tensor([[5] * 7, [5] * 4 + [0] * 3])
    future = torch.ones(7, 7).triu(1).bool() if causal else None
    expected, _ = reference(ours)(
        states, states, states, key_padding_mask=ids == 0, attn_mask=future, need_weights=False
    )
    torch.testing.assert_close(ours(states, padding_mask(ids, 0)), expected, rtol=1e-5, atol=1e-6)


def test_cross_attention_and_its_weights() -> None:
    """Pins keys taken from the queries, and weights that are not those of the forward pass."""
    torch.manual_seed(1)
    ours = MultiHeadAttention(D, HEADS, cross=True)
    states, memory = torch.randn(2, 5, D), torch.randn(2, 7, D)
    ids = torch.tensor([[5] * 7, [5] * 4 + [0] * 3])
    expected, weights = reference(ours)(
        states, memory, memory, key_padding_mask=ids == 0, average_attn_weights=False
    )
    projected, mask = ours.project_memory(memory), padding_mask(ids, 0)
    torch.testing.assert_close(ours.attend_memory(states, projected, mask), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours.memory_weights(states, projected, mask), weights, rtol=1e-5, atol=1e-6)
