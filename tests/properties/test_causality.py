"""No position sees a later one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_models import small_config

from transformer_mt.model.build import build_model


@pytest.mark.parametrize(
    "wanted",
    [
        {"positions": "sinusoidal"},
        {"positions": "sinusoidal", "attention_window": 3},
        {"positions": "rotary"},
        {"positions": "rotary", "attention_window": 3},
        {"architecture": "lstm"},
        {"architecture": "lstm", "attention": "additive", "input_feeding": True},
    ],
    ids=lambda wanted: "-".join(map(str, wanted.values())),
)
def test_later_target_tokens_change_nothing_earlier(wanted: dict[str, Any]) -> None:
    """Pins a decoder that sees the token it has to predict, which makes loss fall and translations fail."""
    torch.manual_seed(0)
    model = build_model(small_config(**wanted), 31, 31).eval()
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
