"""Small models of both architectures, for promises that every model has to keep."""

from __future__ import annotations

from typing import Any

from transformer_mt.config import ModelConfig

SIZES: dict[str, dict[str, Any]] = {
    "transformer": {
        "d_model": 24,
        "num_heads": 4,
        "d_ff": 40,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
    },
    "lstm": {"architecture": "lstm", "d_model": 24, "num_encoder_layers": 2, "num_decoder_layers": 2},
}
ARCHITECTURES = tuple(SIZES)


def small_config(architecture: str = "transformer", **values: Any) -> ModelConfig:
    """Two layers a side, 24 wide, unless `values` say otherwise."""
    return ModelConfig.model_validate({**SIZES[architecture], **values})
