"""No position sees a later one."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from small_models import ARCHITECTURES, small_config
from torch import Tensor

from transformer_mt.data.batch import make_batch
from transformer_mt.model import attention
from transformer_mt.model.build import build_model
from transformer_mt.training.step import LossModule


@pytest.mark.parametrize(
    "wanted",
    [
        {"positions": "sinusoidal"},
        {"positions": "sinusoidal", "attention_window": 3},
        {"positions": "rotary"},
        {"positions": "rotary", "attention_window": 3},
        {"positions": "learned", "num_kv_heads": 2},
        {"norm_first": False, "activation": "swiglu"},
        {"architecture": "lstm"},
        {"architecture": "lstm", "attention": "additive", "input_feeding": True},
    ],
    ids=lambda wanted: "-".join(map(str, wanted.values())),
)
@pytest.mark.parametrize("fused", [False, True])
def test_later_target_tokens_change_nothing_earlier(
    wanted: dict[str, Any], fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B131: a decoder that sees the token it has to predict, which makes loss fall and translations fail."""
    monkeypatch.setattr(attention, "prefers_fused", lambda *arguments: fused)
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


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_cannot_be_known_is_not_learned(architecture: str) -> None:
    """B131: random targets, learned for 60 updates on ever new ones, still cost ln(symbols) a token."""
    torch.manual_seed(0)
    symbols, length = 7, 9
    module = LossModule(build_model(small_config(architecture), 31, 31), 0.0)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)

    def nll() -> Tensor:
        targets = torch.randint(4, 4 + symbols, (16, length)).tolist()
        loss, _, tokens = module(make_batch([([5, 3], [*target, 3]) for target in targets]))
        return loss / tokens * (length + 1) / length  # eos, always at the same place, costs nothing

    for _ in range(60):
        optimizer.zero_grad()
        nll().backward()
        optimizer.step()
    with torch.no_grad():
        found = sum(float(nll()) for _ in range(4)) / 4
    assert math.log(symbols) - 0.1 <= found <= math.log(symbols) + 0.5
