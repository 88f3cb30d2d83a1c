"""Packed sentences give what padded ones give: loss, nll and every gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_mt.config import ModelConfig
from transformer_mt.data.batch import Batch, PackedBatch, make_batch
from transformer_mt.model.build import build_model
from transformer_mt.training.step import LossModule

V = 31
SIZES = {"d_model": 24, "num_heads": 4, "d_ff": 40, "num_encoder_layers": 2, "num_decoder_layers": 3}
LENGTHS = {"uneven": [(3, 8), (1, 5), (11, 1), (6, 13)], "one": [(7, 4)], "even": [(5, 6)] * 3}


def pairs(lengths: list[tuple[int, int]]) -> list[tuple[list[int], list[int]]]:
    """Random sentences of these tokens, eos counted."""
    generator = torch.Generator().manual_seed(3)

    def ids(length: int) -> list[int]:
        return [*torch.randint(4, V, (length - 1,), generator=generator).tolist(), 3]

    return [(ids(src), ids(tgt)) for src, tgt in lengths]


def results(batch: Batch | PackedBatch, dropout: float = 0.0, **model: Any) -> list[Tensor]:
    """Loss, nll and the gradient of every weight."""
    torch.manual_seed(0)
    checkpointing = model.pop("gradient_checkpointing", False)
    built = build_model(
        ModelConfig.model_validate({**SIZES, **model}),
        V,
        V,
        dropout=dropout,
        gradient_checkpointing=checkpointing,
    )
    loss, nll, num_tokens = LossModule(built, 0.1)(batch)
    loss.backward()
    assert num_tokens == batch.num_tokens
    gradients = [weight.grad for weight in built.parameters()]
    return [loss.detach(), nll, *(gradient for gradient in gradients if gradient is not None)]


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize(
    "model",
    [
        {"positions": "sinusoidal"},
        {"positions": "learned", "num_kv_heads": 2},
        {"positions": "rotary", "norm_first": False},
        {"positions": "rotary", "attention_window": 3, "num_kv_heads": 1},
        {"ablation": {"scale": False}, "gradient_checkpointing": True},
    ],
    ids=str,
)
def test_packed_equals_padded(lengths: list[tuple[int, int]], model: dict[str, Any]) -> None:
    """Pins attention across sentences, positions counted through the row, and labels of another token."""
    batch = make_batch(pairs(lengths))
    padded, packed = results(batch, **model), results(batch.packed(), **model)
    assert len(padded) == len(packed) > 20
    for one, other in zip(padded, packed, strict=True):
        torch.testing.assert_close(other, one, rtol=2e-5, atol=2e-5)


def test_checkpointing_changes_no_bit_of_packed_training() -> None:
    """Recomputed layers draw the same dropout and get the same places."""
    batch = make_batch(pairs(LENGTHS["uneven"])).packed()
    plain, recomputed = (results(batch, dropout=0.3, gradient_checkpointing=on) for on in (False, True))
    assert all(torch.equal(a, b) for a, b in zip(plain, recomputed, strict=True))


def test_a_sentence_does_not_see_its_neighbours() -> None:
    """The loss of a packed batch is the sum over its sentences alone."""
    sentences = pairs(LENGTHS["uneven"])
    together = results(make_batch(sentences).packed())[1]
    alone = sum(results(make_batch([pair]).packed())[1] for pair in sentences)
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)
