"""The models of a search: from their runs, in the arithmetic that was asked for, and in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from transformer_mt.checkpoint import LoadedRun, load_run
from transformer_mt.errors import CheckpointError
from transformer_mt.model.narrow_linear import HalfLinear, Int8Linear, narrow_linear, with_narrow_products
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.text.tokenizer import Tokenizers


def load_runs(
    run: str | Path, *others: str | Path, checkpoint: str | int, device: torch.device
) -> list[LoadedRun]:
    """The runs of an ensemble.

    Args:
        run: the first of them.
        others: further runs with the same tokenizers.
        checkpoint: best, latest, averaged or a step.
        device: where the models shall be.

    Raises:
        CheckpointError: no such checkpoint, a damaged one, or tokenizers that differ.
    """
    loaded = [load_run(folder, checkpoint, device) for folder in (run, *others)]
    for folder, one in zip(others, loaded[1:], strict=True):
        if _fingerprints(one.tokenizers) != _fingerprints(loaded[0].tokenizers):
            raise CheckpointError(
                f"{folder}: has another tokenizer than {run}; only runs with equal tokenizers can "
                "translate together (train with tokenizer.from)"
            )
    return loaded


def _fingerprints(tokenizers: Tokenizers) -> tuple[str, str]:
    return tokenizers.src.fingerprint, tokenizers.tgt.fingerprint


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
