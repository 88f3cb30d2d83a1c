"""Mixed precision on a CPU: half the bytes, nearly the same gradients, bit-identical recomputation."""

from __future__ import annotations

import pytest
import torch
from small_models import ARCHITECTURES, small_config
from torch import Tensor

from transformer_mt.model import lstm, transformer
from transformer_mt.model.build import build_model
from transformer_mt.model.masks import padding_mask
from transformer_mt.training.loss import fused_loss, plain_loss
from transformer_mt.training.precision import autocast

V, B, S, T = 53, 3, 13, 11


def gradients(
    architecture: str,
    *,
    precision: str,
    plain: bool = False,
    dropout: float = 0.0,
    checkpointing: bool = False,
) -> dict[str, Tensor]:
    """Weight name -> gradient of one step of the same small model on the same ids."""
    torch.manual_seed(0)
    config = small_config(architecture, num_encoder_layers=3)
    model = build_model(config, V, V, dropout=dropout, gradient_checkpointing=checkpointing)
    src, tgt = torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    torch.manual_seed(1)
    with autocast(precision, torch.device("cpu")):
        hidden = model.hidden(src, padding_mask(src, 0), tgt).flatten(0, 1)
        loss = plain_loss if plain else fused_loss
        result, _ = loss(hidden, model.output_weight, tgt.flatten(), 0.1, 0)
    (result / tgt.numel()).backward()
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


def angle(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """1 - cosine between two gradients of the whole model."""
    first, second = (torch.cat([grad.double().flatten() for grad in side.values()]) for side in (one, other))
    return float(1.0 - torch.nn.functional.cosine_similarity(first, second, dim=0))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_gradients_in_bf16_point_where_those_in_fp32_do(architecture: str) -> None:
    """Pins a fast path that loses more than rounding: a missing factor, a mask in the wrong dtype."""
    fp32 = gradients(architecture, precision="fp32", plain=True)
    bf16 = gradients(architecture, precision="bf16")
    assert fp32.keys() == bf16.keys()
    assert angle(fp32, gradients(architecture, precision="fp32")) < 1e-9
    assert 1e-9 < angle(fp32, bf16) < 1e-3
    largest = max(float(grad.norm()) for grad in fp32.values())
    for name in fp32:
        if float(fp32[name].norm()) < 1e-6 * largest:
            continue  # a bias of keys moves all scores of a row alike: its gradient is rounding alone
        ratio = float(bf16[name].norm() / fp32[name].norm())
        assert 0.95 < ratio < 1.05, (name, ratio)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_residual_stream_is_bf16_and_no_worse_than_in_fp32(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins a stream that went back to fp32, and one whose rounding adds up over the layers."""
    seen = set()
    torch.manual_seed(0)
    model = build_model(small_config(architecture), V, V)
    name = {"transformer": "encoder.layers.1", "lstm": "encoder_layers.1"}[architecture]
    model.get_submodule(name).register_forward_pre_hook(lambda _, inputs: seen.add(inputs[0].dtype))
    src = torch.randint(4, V, (B, S))
    with autocast("bf16", torch.device("cpu")):
        model.hidden(src, padding_mask(src, 0), src)
    model.hidden(src, padding_mask(src, 0), src)
    assert seen == {torch.bfloat16, torch.float32}

    fp32, bf16 = (gradients(architecture, precision=precision) for precision in ("fp32", "bf16"))
    for module in (transformer, lstm):
        monkeypatch.setattr(module, "to_stream", lambda states: states)
    assert angle(fp32, bf16) < 4 * angle(fp32, gradients(architecture, precision="bf16"))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_recomputed_layers_draw_the_same_masks_in_bf16(architecture: str) -> None:
    """Pins checkpointing that sees other dropout, or another dtype, the second time."""
    kept = gradients(architecture, precision="bf16", dropout=0.3)
    recomputed = gradients(architecture, precision="bf16", dropout=0.3, checkpointing=True)
    assert all(torch.equal(kept[name], recomputed[name]) for name in kept)
