"""Is the LSTM right on the card? Training by torch's kernel and translation, against fp32 on the CPU."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from tools.gpu.parts_fast import make_stepper, translate
from tools.gpu.parts_right import TOLERANCE, attempt, loss_and_gradient, relative
from tools.gpu.setting import Setting, made_up_batches
from transformer_mt.model.build import Model, build_model
from transformer_mt.runtime.seeds import seed_weights

VARIANTS: dict[str, dict[str, Any]] = {
    "general": {"attention": "general", "input_feeding": False},
    "additive, fed": {"attention": "additive", "input_feeding": True},
}


def lstm_config(size: str, **changed: Any) -> Any:
    """The `model` section of a recipe with this preset of the LSTM."""
    d_model, layers = {"toy": (32, 2), "small": (320, 3)}[size]
    return SimpleNamespace(
        **{
            "architecture": "lstm",
            "d_model": d_model,
            "num_encoder_layers": layers,
            "num_decoder_layers": layers,
            "tied_embeddings": "three_way",
            "attention": "general",
            "input_feeding": False,
            **changed,
        }
    )


def lstm(setting: Setting) -> None:
    """Loss and gradient, the share of lines that both translate alike in fp32, and what torch warns of."""
    size, vocab_size = ("toy", 97) if setting.quick else ("small", 8000)
    (batch,) = made_up_batches(1, 128 if setting.quick else 2048, vocab_size)
    sources = [row[row != 0].numpy() for row in batch.src_ids[:8]]

    def model(variant: str) -> Model:
        seed_weights(1)
        # Untied: tied, random weights say the same word again and again.
        config = lstm_config(size, tied_embeddings="none", **VARIANTS[variant])
        return build_model(config, vocab_size, vocab_size)

    def lane(variant: str, precision: str) -> dict[str, Any]:
        expected = loss_and_gradient(model(variant), batch, "fp32")
        found = loss_and_gradient(model(variant).to(setting.device), batch.to(setting.device), precision)
        errors = [relative(one, other) for one, other in zip(found, expected, strict=True)]
        right = all(error <= limit for error, limit in zip(errors, TOLERANCE[precision], strict=True))
        return {"loss": errors[0], "gradient": errors[1], "right": right}

    def same_translations(variant: str) -> float:
        texts = []
        for device in (torch.device("cpu"), setting.device):
            stepper = make_stepper(model(variant).to(device).eval(), "fp32")
            texts.append(translate(replace(setting, device=device), stepper, sources, 4, forced=8))
        return sum(one == other for one, other in zip(*texts, strict=True)) / len(sources)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for variant, precision in (*(("general", each) for each in TOLERANCE), ("additive, fed", "bf16")):
            setting.report(**{f"{variant}, {precision}": attempt(partial(lane, variant, precision))})
    setting.report(warnings=sorted({str(warning.message).splitlines()[0] for warning in caught}))
    for variant in VARIANTS:
        setting.report(**{f"{variant}, translated alike": attempt(partial(same_translations, variant))})
