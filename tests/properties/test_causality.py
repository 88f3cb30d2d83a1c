"""No position sees a later one."""

from __future__ import annotations

import pytest
import torch

from transformer_mt.config import ModelConfig
from transformer_mt.model.build import build_model


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@pytest.mark.parametrize("window", [None, 3])
def test_later_target_tokens_change_nothing_earlier(positions: str, window: int | None) -> None:
    """Pins a decoder that sees the token it has to predict, which makes loss fall and translations fail."""
    torch.manual_seed(0)
    config = {"d_model": 24, "num_heads": 3, "d_ff": 40, "num_encoder_layers": 1, "num_decoder_layers": 2}
    wanted = ModelConfig.model_validate({**config, "positions": positions, "attention_window": window})
    model = build_model(wanted, 31, 31).eval()
    src, mask = torch.randint(4, 31, (2, 5)), torch.ones(2, 1, 1, 5).bool()
    target = torch.randint(4, 31, (2, 13))
    before = model.project(model.hidden(src, mask, target))
    for position in (1, 6, 12):
        changed = target.clone()
        changed[:, position:] = torch.randint(4, 31, (2, 13 - position))
        changed[:, position] = (target[:, position] - 3) % 27 + 4  # certainly another token
        after = model.project(model.hidden(src, mask, changed))
        assert torch.equal(before[:, :position], after[:, :position])
        assert not torch.allclose(before[:, position], after[:, position])
