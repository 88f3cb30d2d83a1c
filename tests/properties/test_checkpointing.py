"""Gradient checkpointing saves memory and changes no bit."""

from __future__ import annotations

import pytest
import torch
from small_models import small_config
from torch import Tensor

from transformer_mt.config import TrainingConfig
from transformer_mt.data.batch import make_batch
from transformer_mt.model.build import build_model
from transformer_mt.model.masks import padding_mask
from transformer_mt.training.optimizer import build_optimizer
from transformer_mt.training.precision import autocast, loss_scaler
from transformer_mt.training.step import LossModule, Updater

CPU = torch.device("cpu")


def gradients_and_bytes(
    architecture: str, gradient_checkpointing: bool, precision: str
) -> tuple[list[Tensor], int]:
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

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor), autocast(precision, CPU):
        loss = model.hidden(src, padding_mask(src, 0), torch.randint(4, 31, (2, 11))).square().sum()
    loss.backward()
    if gradient_checkpointing:
        model.eval()
        with torch.no_grad():
            twice = [model.hidden(src, padding_mask(src, 0), src) for _ in range(2)]
        assert torch.equal(*twice)
    gradients = [parameter.grad for parameter in model.parameters()]
    found = [gradient for gradient in gradients if gradient is not None]
    assert len(found) == len(gradients)
    return found, kept


@pytest.mark.parametrize(("architecture", "saved"), [("transformer", 4), ("lstm", 2.5)])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_same_bits_and_fewer_bytes(architecture: str, saved: float, precision: str) -> None:
    """B133: recomputation with another dropout mask, lost gradients, and checkpointing that saves nothing."""
    (plain, plain_bytes), (recomputed, recomputed_bytes) = (
        gradients_and_bytes(architecture, False, precision),
        gradients_and_bytes(architecture, True, precision),
    )
    assert len(plain) == len(recomputed) > 0
    assert all(torch.equal(a, b) for a, b in zip(plain, recomputed, strict=True))
    assert recomputed_bytes < plain_bytes / (saved if precision == "fp32" else 2)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_a_run_of_updates_is_the_same(architecture: str, precision: str) -> None:
    """B133: the losses of 20 updates with dropout, through the updater of training."""
    losses: list[list[float]] = []
    for on in (False, True):
        torch.manual_seed(0)
        rates = {"dropout": 0.1, "attention_dropout": 0.1, "gradient_checkpointing": on}
        model = build_model(small_config(architecture), 31, 31, **rates)
        config = TrainingConfig(warmup_steps=0, learning_rate=1e-2)
        optimizer, scaler = build_optimizer(model, config), loss_scaler(precision, CPU)
        updater = Updater(LossModule(model, 0.1), optimizer, scaler, None, config, precision, CPU)
        batch = make_batch([([5, 6, 7, 3], [8, 9, 3]), ([10, 3], [4, 11, 12, 13, 3])])
        losses.append([updater.run(step, [batch, batch]).loss_sum for step in range(1, 21)])
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
