"""Recipe and sizes of vocabularies -> a model with initial weights, and all that an update of it needs."""

from __future__ import annotations

import sys

import torch

from transformer_mt.config import Recipe
from transformer_mt.model.build import Model, build_model
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import compiler_fault
from transformer_mt.runtime.distributed import ALONE, Ranks
from transformer_mt.runtime.seeds import seed_weights
from transformer_mt.training.ema import Ema
from transformer_mt.training.optimizer import build_optimizer
from transformer_mt.training.precision import loss_scaler
from transformer_mt.training.step import LossModule, Updater


def new_updater(
    recipe: Recipe, vocab_sizes: tuple[int, int], device: torch.device, ranks: Ranks = ALONE
) -> tuple[Model, Updater]:
    """The model, and the updater that holds it.

    Args:
        recipe: its precision must be resolved.
        vocab_sizes: pieces of the source and of the target.
        device: where it is trained.
        ranks: the processes that train it together.
    """
    config = recipe.training
    seed_weights(config.seed)
    model = build_model(
        recipe.model,
        *vocab_sizes,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation_dropout=config.activation_dropout,
        gradient_checkpointing=config.gradient_checkpointing,
    ).to(device)
    fault = compiler_fault(device) if config.compile else None
    if fault:
        print(f"transformer-mt: warning: training.compile: goes on without it: {fault}", file=sys.stderr)
    elif config.compile:
        assert isinstance(model, Transformer)  # the recipe's checks see to it
        model.compile_layers()
    updater = Updater(
        LossModule(model, config.label_smoothing),
        build_optimizer(model, config),
        loss_scaler(config.precision, device),
        Ema(model, config.ema) if config.ema else None,
        config,
        config.precision,
        device,
        ranks,
    )
    return model, updater
