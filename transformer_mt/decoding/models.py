"""The models of a search: in the arithmetic that was asked for, and in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from transformer_mt.model.narrow_linear import HalfLinear, Int8Linear, narrow_linear, with_narrow_products
from transformer_mt.model.protocol import TrainableModel


def with_products(model: TrainableModel, dtype: torch.dtype) -> TrainableModel:
    """The model itself, or its twin that multiplies in narrower numbers."""
    if dtype == torch.float32 or not isinstance(model, nn.Module):
        return model
    return with_narrow_products(model, dtype, model.output_weight)


def rough_output(models: Sequence[TrainableModel], dtype: torch.dtype) -> HalfLinear | Int8Linear | None:
    """The output matrix in narrower numbers; an ensemble has no logits that could be corrected by it."""
    if dtype == torch.float32 or len(models) > 1:
        return None
    return narrow_linear(models[0].output_weight, None, dtype)


@contextmanager
def evaluating(models: Sequence[TrainableModel]) -> Iterator[None]:
    """Dropout off, and afterwards as it was: the models may be in the middle of training."""
    modules = [model for model in models if isinstance(model, nn.Module)]
    modes = [module.training for module in modules]
    try:
        for module in modules:
            module.eval()
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.train(mode)
