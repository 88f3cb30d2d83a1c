"""Linear layers that multiply in narrow numbers inside a model that is fp32 otherwise.

What rounding costs a translation comes mostly from sums, norms and attention weights kept in narrow numbers,
and what these save comes mostly from the large products. Knows nothing of which model it changes.
"""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

from transformer_mt.model.fixed_product import fixed_product

Model = TypeVar("Model", bound=nn.Module)
# Keeps the scale of a row of zeros from being zero.
_SMALLEST = 1e-30


class HalfLinear(nn.Module):
    """fp32 -> fp32; weights and the product between are half precision."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        """Args: weight (out, in) and bias (out,), which are copied; dtype, what to multiply in."""
        super().__init__()
        self.weight = weight.detach().to(dtype)
        self.bias = None if bias is None else bias.detach().to(dtype)
        self.product = fixed_product(self.weight, self.bias)

    def forward(self, states: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        return self.product(states.to(self.weight.dtype)).to(states.dtype)

    def take_up(self, weight: Tensor, bias: Tensor | None) -> None:
        """Copy what the weights have become."""
        self.weight.copy_(weight)
        if self.bias is not None and bias is not None:
            self.bias.copy_(bias)
        self.product = fixed_product(self.weight, self.bias)

    def cut(self, outputs: Tensor) -> HalfLinear:
        """The layer of these (N,) outputs alone."""
        return HalfLinear(
            self.weight[outputs], None if self.bias is None else self.bias[outputs], self.weight.dtype
        )


class Int8Linear(nn.Module):
    """fp32 -> fp32; every row of states and of weights is multiplied as integers of -127 … 127 and a scale.

    The scale of a row of states is taken from the row alone and sums of integers are exact, so that a row's
    result never depends on the others (symmetric dynamic quantisation, per token and per channel).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        """Args: weight (out, in), bias (out,)."""
        super().__init__()
        self.take_up(weight, bias)

    def forward(self, states: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        integers, scales = _quantised(states.flatten(0, -2))  # (N, in), (N, 1)
        product = torch._int_mm(integers, self.integers).float().mul_(scales)  # (N, out)
        if self.bias is None:
            product.mul_(self.scales)
        else:
            product = torch.addcmul(self.bias, product, self.scales)
        return product.view(*states.shape[:-1], -1)

    def take_up(self, weight: Tensor, bias: Tensor | None) -> None:
        """Round what the weights have become."""
        integers, scales = _quantised(weight.detach())
        self.integers = integers.t()  # (in, out)
        self.scales = scales.flatten()  # (out,)
        self.bias = None if bias is None else bias.detach()

    def cut(self, outputs: Tensor) -> Int8Linear:
        """The layer of these (N,) outputs alone."""
        part = copy.copy(self)
        part.integers = self.integers.t()[outputs].t()
        part.scales = self.scales[outputs]
        part.bias = None if self.bias is None else self.bias[outputs]
        return part


def narrow_linear(weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> HalfLinear | Int8Linear:
    """The layer that multiplies in half precision, or in torch.int8."""
    return Int8Linear(weight, bias) if dtype == torch.int8 else HalfLinear(weight, bias, dtype)


def with_narrow_products(model: Model, dtype: torch.dtype, output: Tensor) -> Model:
    """An fp32 model's twin whose linear layers multiply in `dtype`; all other parameters are the model's.

    Args:
        model: stays as it is.
        dtype: half precision or torch.int8.
        output: the matrix behind the logits; a layer that holds it stays too.
    """
    twin = copy.deepcopy(model, memo={id(parameter): parameter for parameter in model.parameters()})
    for module in list(twin.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and child.weight is not output:
                setattr(module, name, narrow_linear(child.weight, child.bias, dtype))
    return twin


def take_up_weights(twin: nn.Module, model: nn.Module) -> None:
    """Bring a twin up to date with what the weights of its model have become."""
    with torch.no_grad():
        for ours, theirs in zip(twin.modules(), model.modules(), strict=True):
            if isinstance(ours, HalfLinear | Int8Linear) and isinstance(theirs, nn.Linear):
                ours.take_up(theirs.weight, theirs.bias)


def _quantised(rows: Tensor) -> tuple[Tensor, Tensor]:
    """(N, D) -> int8 (N, D) and the scales (N, 1) that they are to be multiplied with."""
    scales = rows.abs().amax(-1, keepdim=True).clamp_(min=_SMALLEST).mul_(1 / 127)
    return (rows / scales).round_().to(torch.int8), scales
