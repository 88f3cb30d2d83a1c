"""Linear layers that multiply in half precision inside a model that is fp32 otherwise.

What rounding costs a translation comes mostly from sums, norms and attention weights kept in half precision,
and what half precision saves comes mostly from the large products. Knows nothing of which model it changes.
"""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Model = TypeVar("Model", bound=nn.Module)


class HalfLinear(nn.Module):
    """fp32 -> fp32; weights and the product between are half precision."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        """Args: linear, whose weights are copied; dtype, what to multiply in."""
        super().__init__()
        self.weight = nn.Parameter(linear.weight.detach().to(dtype), requires_grad=False)
        self.bias = nn.Parameter(linear.bias.detach().to(dtype), requires_grad=False)

    def forward(self, states: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        return F.linear(states.to(self.weight.dtype), self.weight, self.bias).to(states.dtype)


def with_half_products(model: Model, dtype: torch.dtype) -> Model:
    """An fp32 model's twin whose linear layers multiply in `dtype`.

    All other parameters are the model's own, and the order of parameters is the same.
    """
    twin = copy.deepcopy(model, memo={id(parameter): parameter for parameter in model.parameters()})
    for module in list(twin.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, HalfLinear(child, dtype))
    return twin
