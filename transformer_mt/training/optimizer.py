"""The optimizer: which weights are decayed, and the fused update where torch has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from transformer_mt.config import TrainingConfig


def build_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """AdamW (Loshchilov and Hutter 2019) or Adam (Kingma and Ba 2015, decay as part of the gradient).

    Matrices are decayed, biases and norm weights are not.
    """
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [w for w in weights if w.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [w for w in weights if w.dim() < 2], "weight_decay": 0.0},
    ]
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        fused=True,
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Use `rate` for the next update."""
    for group in optimizer.param_groups:
        group["lr"] = rate
