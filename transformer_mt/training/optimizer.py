"""The optimizer: which weights are decayed, and the fused update where torch has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

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


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """`optimizer.<slot>.<parameter name>` -> tensor."""
    return {
        f"optimizer.{slot}.{name}": tensor
        for name, parameter in model.named_parameters()
        for slot, tensor in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, state: dict[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave; other tensors of a checkpoint are passed over."""
    for name, parameter in model.named_parameters():
        slots = {
            key.split(".", 2)[1]: tensor
            for key, tensor in state.items()
            if key.startswith("optimizer.") and key.split(".", 2)[2] == name
        }
        if slots:
            # Copies: what is read from a checkpoint is a view of its file. The step count of fused AdamW
            # lives beside the weights, as its moments do.
            optimizer.state[parameter] = {slot: t.clone().to(parameter.device) for slot, t in slots.items()}
