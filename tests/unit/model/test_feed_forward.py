"""Feed-forward blocks against their formulas."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from transformer_mt.model.feed_forward import FeedForward


def test_relu_and_gelu() -> None:
    """Pins the wrong bend."""
    torch.manual_seed(0)
    states = torch.randn(2, 3, 6)
    for name, bend in (("relu", F.relu), ("gelu", F.gelu)):
        block = FeedForward(6, 10, activation=name)
        torch.testing.assert_close(block(states), block.outer(bend(block.inner(states))))


def test_swiglu_gates_the_second_half() -> None:
    """Pins gate and value exchanged: silu(x W_gate) * (x W_value), gate rows first."""
    torch.manual_seed(1)
    block = FeedForward(6, 10, activation="swiglu")
    states = torch.randn(2, 3, 6)
    gate = F.linear(states, block.inner.weight[:10], block.inner.bias[:10])
    value = F.linear(states, block.inner.weight[10:], block.inner.bias[10:])
    torch.testing.assert_close(block(states), block.outer(gate * torch.sigmoid(gate) * value))


def test_activation_dropout_is_off_in_evaluation() -> None:
    """Pins a rate that is read nowhere, or dropout left on."""
    torch.manual_seed(2)
    block = FeedForward(6, 10, activation="relu", dropout=0.5)
    states = torch.randn(2, 3, 6)
    assert not torch.equal(block(states), block(states))
    block.eval()
    assert torch.equal(block(states), block(states))
