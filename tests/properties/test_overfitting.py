"""A model that can learn at all learns a few sentences by heart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_models import small_config

from transformer_mt.model.build import build_model
from transformer_mt.model.masks import padding_mask
from transformer_mt.training.loss import fused_loss

V, EOS, BOS, IGNORE = 23, 3, 2, -100


@pytest.mark.parametrize(
    "options",
    [
        {"architecture": "transformer"},
        {"architecture": "lstm"},
        {"architecture": "lstm", "attention": "additive", "input_feeding": True},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_a_reversed_copy_is_learned(options: dict[str, Any]) -> None:
    """To under 0.02 nats a token: pins a part without gradient, a wrong shift, a source that is not seen."""
    torch.manual_seed(0)
    model = build_model(small_config(**options, d_model=32, num_encoder_layers=1), V, V)
    draw = torch.Generator().manual_seed(1)
    lengths = torch.randint(2, 7, (12,), generator=draw).tolist()
    sentences = [torch.randint(4, V, (length,), generator=draw).tolist() for length in lengths]

    def rows(lists: list[list[int]], fill: int) -> torch.Tensor:
        return torch.tensor([ids + [fill] * (7 - len(ids)) for ids in lists])

    src = rows([[*ids, EOS] for ids in sentences], 0)
    decoder_input = rows([[BOS, *ids[::-1]] for ids in sentences], 0)
    labels = rows([[*ids[::-1], EOS] for ids in sentences], IGNORE).flatten()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.98))
    for _ in range(100):
        hidden = model.hidden(src, padding_mask(src, 0), decoder_input).flatten(0, 1)
        loss, nll = fused_loss(hidden, model.output_weight, labels, 0.0, 0)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert float(nll) / int((labels != IGNORE).sum()) < 0.02
