"""Layers: where the norm stands."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from transformer_mt.model.layers import Residual, make_norm


def test_norm_before_or_after() -> None:
    """Pins pre- and post-norm exchanged."""
    torch.manual_seed(0)
    states, block = torch.randn(2, 3, 6), nn.Linear(6, 6)
    norm = make_norm("layer_norm", 6)
    nn.init.normal_(norm.weight)
    before = Residual(norm, norm_first=True, dropout=0.0)(states, block)
    after = Residual(norm, norm_first=False, dropout=0.0)(states, block)
    torch.testing.assert_close(before, states + block(norm(states)))
    torch.testing.assert_close(after, norm(states + block(states)))


def test_dropout_spares_the_bypass() -> None:
    """Pins dropout of the whole sum."""
    torch.manual_seed(1)
    states = torch.ones(4, 5, 6)
    changed = Residual(nn.Identity(), norm_first=True, dropout=0.5)(states, lambda x: x)
    assert set(changed.unique().tolist()) == {1.0, 3.0}


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_kinds_of_norm(kind: str) -> None:
    """Pins the two kinds exchanged: RMSNorm leaves the mean alone."""
    states = torch.tensor([[3.0, 5.0]])
    mean_square = torch.tensor([[3.0, 5.0]]) / (17.0 + 1e-5) ** 0.5
    expected = torch.tensor([[-1.0, 1.0]]) if kind == "layer_norm" else mean_square
    torch.testing.assert_close(make_norm(kind, 2)(states), expected, rtol=1e-4, atol=1e-4)
