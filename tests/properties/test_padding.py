"""Padding changes nothing: not what it holds, not how much of it there is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_models import small_config
from torch.nn import functional as F

from transformer_mt.model.build import Model, build_model
from transformer_mt.model.masks import padding_mask

LSTMS = (
    {"architecture": "lstm"},
    {"architecture": "lstm", "attention": "additive", "input_feeding": True},
)


def model(**values: Any) -> Model:
    torch.manual_seed(0)
    return build_model(small_config(**values), 31, 31).eval()


@pytest.mark.parametrize(
    "values",
    [
        *(
            {"positions": positions, "attention_window": window}
            for positions in ("sinusoidal", "learned", "rotary")
            for window in (None, 3)
        ),
        *LSTMS,
    ],
    ids=lambda values: "-".join(map(str, values.values())),
)
def test_length_of_the_padding(values: dict[str, Any]) -> None:
    """Pins attention to padding in encoder or decoder, and an LSTM that reads it (B075, B077): as much as a
    neighbour of 60 tokens brings leaves all real states within 1e-5."""
    network = model(**values)
    src, target = torch.randint(4, 31, (2, 6)), torch.randint(4, 31, (2, 5))
    tight = network.hidden(src, padding_mask(src, 0), target)
    padded = F.pad(src, (0, 54))
    wide = network.hidden(padded, padding_mask(padded, 0), F.pad(target, (0, 4)))[:, :5]
    torch.testing.assert_close(wide, tight, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("values", [{}, *LSTMS], ids=lambda values: "-".join(map(str, values.values())))
def test_content_of_the_padding(values: dict[str, Any]) -> None:
    """Pins real states that depend on the pad embedding (B075): it may hold anything, and learns nothing."""
    network = model(tied_embeddings="none", **values)
    src = torch.tensor([[5, 6, 7, 3, 0, 0], [8, 9, 10, 11, 12, 3]])
    target = torch.tensor([[2, 7, 8, 9, 10], [2, 5, 0, 0, 0]])
    real = torch.tensor([[True] * 5, [True, True, False, False, False]])
    before = network.hidden(src, padding_mask(src, 0), target)[real]
    before.sum().backward()
    assert network.src_embedding is not None
    for embedding in (network.src_embedding, network.tgt_embedding):
        assert embedding.weight.grad is not None
        assert (embedding.weight.grad[0] == 0).all()
        embedding.weight.data[0] = 1e3
    assert torch.equal(network.hidden(src, padding_mask(src, 0), target)[real], before)
