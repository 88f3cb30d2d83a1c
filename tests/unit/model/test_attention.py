"""Attention by hand, and the fused kernel against the plain product."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from transformer_mt.model import attention as attention_module
from transformer_mt.model.attention import (
    MultiHeadAttention,
    attend,
    attention_weights,
    fused_attention,
    plain_attention,
    prefers_fused,
)
from transformer_mt.model.masks import padding_mask

B, H, T, S, E = 2, 4, 5, 7, 6


def heads(num_kv_heads: int = H, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(seed)
    return torch.randn(B, H, T, E), torch.randn(B, num_kv_heads, S, E), torch.randn(B, num_kv_heads, S, E)


def key_mask() -> Tensor:
    return padding_mask(torch.tensor([[4, 5, 6, 7, 8, 9, 3], [4, 5, 6, 3, 0, 0, 0]]), pad_id=0)


def test_weights_are_softmax_of_the_product_over_sqrt_head_dim() -> None:
    """Pins a missing or wrong divisor: queries of E fours against one key of ones score 4E / sqrt(E)."""
    query = torch.full((1, 1, 1, 9), 4.0 / 9)
    key = torch.stack((torch.ones(9), torch.zeros(9)))[None, None]
    expected = math.exp(4 / 3) / (math.exp(4 / 3) + 1)
    assert attention_weights(query, key, None)[0, 0, 0, 0].item() == pytest.approx(expected, rel=1e-6)
    unscaled = math.exp(4) / (math.exp(4) + 1)
    assert attention_weights(query, key, None, scale=False)[0, 0, 0, 0].item() == pytest.approx(unscaled)


@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_fused_equals_plain(num_kv_heads: int, masked: bool, scale: bool) -> None:
    """Pins a fused kernel that groups heads, masks or scales in another way; forward and backward."""
    results = []
    for function in (plain_attention, fused_attention):
        inputs = [x.requires_grad_() for x in heads(num_kv_heads)]
        result = function(*inputs, key_mask() if masked else None, scale=scale)
        result.square().sum().backward()
        results.append((result.detach(), *(x.grad for x in inputs)))
    for plain, fused in zip(*results, strict=True):
        torch.testing.assert_close(plain, fused, rtol=1e-5, atol=1e-5)


def test_grouped_heads_equal_repeated_keys() -> None:
    """Pins query heads that look at the key head of another group."""
    query, key, value = heads(num_kv_heads=2)
    grouped = plain_attention(query, key, value, None)
    repeated = plain_attention(query, key.repeat_interleave(2, 1), value.repeat_interleave(2, 1), None)
    torch.testing.assert_close(grouped, repeated, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_masked_keys_get_weight_zero_and_empty_rows_stay_finite(dtype: torch.dtype) -> None:
    """Pins a mask constant that overflows in half precision (B082), and NaN from a row that may attend
    nowhere (B079)."""
    query, key, _ = heads()
    mask = key_mask().repeat(1, 1, T, 1)
    mask[0, :, 2] = False
    weights = attention_weights(query.to(dtype), key.to(dtype), mask)
    assert torch.isfinite(weights).all()
    assert (weights[1, :, :, 4:] == 0).all()
    torch.testing.assert_close(weights.float().sum(-1), torch.ones(B, H, T), rtol=0, atol=1e-2)


@pytest.mark.parametrize("length", [7, 200])
@pytest.mark.parametrize("window", [None, 3])
def test_dropout_acts_on_the_weights(length: int, window: int | None) -> None:
    """B129: attention dropout that is read nowhere, or left on in evaluation; plain, fused, blocks."""
    torch.manual_seed(1)
    module = MultiHeadAttention(12, 3, dropout=0.5, window=window)
    memory_of = MultiHeadAttention(12, 3, dropout=0.5, cross=True)
    states = torch.randn(2, length, 12)

    def twice() -> list[bool]:
        memory = memory_of.project_memory(states)
        pairs = [(module(states), module(states))]
        pairs.append(tuple(memory_of.attend_memory(states, memory, None) for _ in range(2)))
        return [torch.equal(one, other) for one, other in pairs]

    assert twice() == [False, False]
    for part in (module, memory_of):
        part.eval()
    assert twice() == [True, True]


def test_the_choice_never_follows_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a choice that depends on the batch, which would let neighbours change a line."""
    short, long = torch.empty(64, 8, 40, 4), torch.empty(1, 1, 64, 4)
    assert not prefers_fused(short, short, 0.0)
    assert prefers_fused(long, long, 0.0)
    assert not prefers_fused(long, long, 0.1)
    assert not prefers_fused(long.bfloat16(), long.bfloat16(), 0.0)
    # Backwards the kernel pays off later.
    assert not prefers_fused(long.requires_grad_(), long, 0.0)
    monkeypatch.setitem(attention_module.FUSED_FROM, ("fp32", "forward"), T * S)
    query, key, value = heads()
    expected = plain_attention(query, key, value, key_mask())
    torch.testing.assert_close(attend(query, key, value, key_mask()), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("length", [12, 13, 17])
def test_blocks_equal_the_full_window(causal: bool, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a block that misses keys at its edges or at the end of the sequence."""
    torch.manual_seed(2)
    module = MultiHeadAttention(12, 3, causal=causal, window=3)
    states = torch.randn(2, length, 12)
    mask = torch.arange(length).expand(2, 1, 1, length) < torch.tensor([length, length - 1]).view(2, 1, 1, 1)
    in_blocks = module(states, mask)
    monkeypatch.setattr(attention_module, "BLOCKS_FROM", length)
    torch.testing.assert_close(in_blocks, module(states, mask), rtol=1e-5, atol=1e-6)


def test_a_window_needs_memory_linear_in_the_length() -> None:
    """Pins windowed attention that stores a weight for every pair of positions."""
    module = MultiHeadAttention(8, 2, causal=True, window=16)
    states = torch.randn(1, 5000, 8)
    largest = 0

    def note(tensor: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        module(states).sum().backward()
    assert largest <= 5000 * 8 * 3


def test_output_projection_can_be_taken_away() -> None:
    """Pins an ablation switch that is read nowhere."""
    torch.manual_seed(3)
    module = MultiHeadAttention(12, 3)
    without = MultiHeadAttention(12, 3, output_projection=False)
    without.load_state_dict({k: v for k, v in module.state_dict().items() if not k.startswith("output.")})
    states = torch.randn(2, 5, 12)
    torch.testing.assert_close(module(states), module.output(without(states)))
