"""Gradient checkpointing saves memory and changes no bit."""

from __future__ import annotations

import pytest
import torch
from small_models import small_config
from torch import Tensor

from transformer_mt.model.build import build_model
from transformer_mt.model.masks import padding_mask


def gradients_and_bytes(architecture: str, gradient_checkpointing: bool) -> tuple[list[Tensor], int]:
    """Gradients of one step with every kind of dropout, and the bytes kept for the backward pass."""
    torch.manual_seed(0)
    model = build_model(
        small_config(architecture, num_encoder_layers=3),
        31,
        31,
        dropout=0.3,
        attention_dropout=0.2,
        activation_dropout=0.1,
        gradient_checkpointing=gradient_checkpointing,
    )
    src = torch.randint(4, 31, (2, 13))
    kept = 0

    def count(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        loss = model.hidden(src, padding_mask(src, 0), torch.randint(4, 31, (2, 11))).square().sum()
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    return [gradient for gradient in gradients if gradient is not None], kept


@pytest.mark.parametrize(("architecture", "saved"), [("transformer", 4), ("lstm", 2.5)])
def test_same_bits_and_fewer_bytes(architecture: str, saved: float) -> None:
    """Pins recomputation with another dropout mask, lost gradients, and checkpointing that saves nothing."""
    (plain, plain_bytes), (recomputed, recomputed_bytes) = (
        gradients_and_bytes(architecture, False),
        gradients_and_bytes(architecture, True),
    )
    assert len(plain) == len(recomputed) > 0
    assert all(torch.equal(a, b) for a, b in zip(plain, recomputed, strict=True))
    assert recomputed_bytes < plain_bytes / saved
