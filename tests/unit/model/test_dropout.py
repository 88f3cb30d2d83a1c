"""Dropout from byte masks, against what the plain kernel promises."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from transformer_mt.model.dropout import dropout, random_bytes


@pytest.mark.parametrize("rate", [0.1, 0.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_keeps_mean_and_variance_of_the_plain_kernel(rate: float, dtype: torch.dtype) -> None:
    """Pins a wrong rate, or a factor that is not of the rate drawn; false alarm under 1e-6 (5 sigma)."""
    torch.manual_seed(1)
    count = 400_003
    drawn = round(rate * 256) / 256
    result = dropout(torch.ones(count, dtype=dtype), rate, training=True)
    kept = (result != 0).double().mean().item()
    assert abs(kept - (1 - drawn)) < 5 * math.sqrt(drawn * (1 - drawn) / count)
    plain = F.dropout(torch.ones(count, dtype=torch.float64), drawn)
    assert abs(result.double().var().item() - plain.var().item()) < 0.01


def test_kept_elements_are_rescaled_exactly() -> None:
    """Pins rescaling by the rate asked for, 0.1, where 26/256 was drawn."""
    torch.manual_seed(2)
    result = dropout(torch.ones(1000), 0.1, training=True)
    assert set(result.tolist()) == {0.0, torch.tensor(256 / 230).item()}


def test_every_byte_of_a_draw_is_uniform() -> None:
    """Pins the 63-bit draw, whose last byte never reaches 128; false alarm under 1e-6 (5 sigma)."""
    torch.manual_seed(3)
    lanes = random_bytes(80_000).view(-1, 8).double()
    sigma = math.sqrt((256**2 - 1) / 12 / 10_000)
    assert (lanes.mean(dim=0) - 127.5).abs().max().item() < 5 * sigma
    assert ((lanes >= 128).double().mean(dim=0) - 0.5).abs().max().item() < 5 * 0.005


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 4, 5)])
def test_any_shape_and_the_same_mask_from_the_same_seed(shape: tuple[int, ...]) -> None:
    """Pins a mask drawn from a generator that `manual_seed` does not reach."""
    states = torch.randn(shape)
    torch.manual_seed(4)
    first = dropout(states, 0.5, training=True)
    torch.manual_seed(4)
    assert torch.equal(first, dropout(states, 0.5, training=True))
    assert first.shape == shape


def test_gradient_passes_where_the_value_did() -> None:
    """Pins a backward pass with another mask or factor than the forward pass."""
    torch.manual_seed(5)
    states = torch.full((6, 7), 3.0, requires_grad=True)
    result = dropout(states, 0.4, training=True)
    result.sum().backward()
    assert states.grad is not None
    torch.testing.assert_close(states.grad * 3.0, result.detach())


def test_off_in_evaluation_and_at_rate_zero() -> None:
    """Pins dropout left on in evaluation."""
    states = torch.randn(3, 4)
    assert dropout(states, 0.5, training=False) is states
    assert dropout(states, 0.0, training=True) is states
