"""Padding changes nothing: not what it holds, not how much of it there is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from transformer_mt.config import ModelConfig
from transformer_mt.model.build import build_model
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.transformer import Transformer


def model(**values: Any) -> Transformer:
    torch.manual_seed(0)
    config = {"d_model": 24, "num_heads": 3, "d_ff": 40, "num_encoder_layers": 2, "num_decoder_layers": 1}
    return build_model(ModelConfig.model_validate({**config, **values}), 31, 31).eval()


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("window", [None, 3])
def test_length_of_the_padding(positions: str, window: int | None) -> None:
    """Pins attention to padding in encoder or decoder: more of it leaves all real states within 1e-5."""
    transformer = model(positions=positions, attention_window=window)
    src, target = torch.randint(4, 31, (2, 6)), torch.randint(4, 31, (2, 5))
    tight = transformer.hidden(src, padding_mask(src, 0), target)
    padded = F.pad(src, (0, 7))
    wide = transformer.hidden(padded, padding_mask(padded, 0), F.pad(target, (0, 4)))[:, :5]
    torch.testing.assert_close(wide, tight, rtol=1e-5, atol=1e-5)


def test_content_of_the_padding() -> None:
    """Pins real states that depend on the pad embedding: it may hold anything, and learns nothing."""
    transformer = model(tied_embeddings="none")
    src = torch.tensor([[5, 6, 7, 3, 0, 0], [8, 9, 10, 11, 12, 3]])
    target = torch.tensor([[2, 7, 8, 9, 10], [2, 5, 0, 0, 0]])
    real = torch.tensor([[True] * 5, [True, True, False, False, False]])
    before = transformer.hidden(src, padding_mask(src, 0), target)[real]
    before.sum().backward()
    assert transformer.src_embedding is not None
    for embedding in (transformer.src_embedding, transformer.tgt_embedding):
        assert embedding.weight.grad is not None
        assert (embedding.weight.grad[0] == 0).all()
        embedding.weight.data[0] = 1e3
    assert torch.equal(transformer.hidden(src, padding_mask(src, 0), target)[real], before)
