"""What a card needs of an update, checked without one: the host waits for it once, and packs where it can."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_mt.config import ModelConfig, TrainingConfig
from transformer_mt.data.batch import Batch, PackedBatch, make_batch
from transformer_mt.model import attention
from transformer_mt.model.build import build_model
from transformer_mt.model.transformer import Transformer
from transformer_mt.training.optimizer import build_optimizer
from transformer_mt.training.precision import loss_scaler
from transformer_mt.training.step import LossModule, Updater

V = 23
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 24, "num_encoder_layers": 2, "num_decoder_layers": 1}
CPU = torch.device("cpu")


def batch() -> Batch:
    """Three pairs of uneven length."""
    return make_batch([([5, 6, 7, 3], [8, 3]), ([9, 3], [4, 5, 6, 7, 3]), ([10, 11, 3], [3])])


def model(**values: Any) -> Transformer:
    torch.manual_seed(0)
    return build_model(ModelConfig.model_validate({**SIZES, **values}), V, V, dropout=0.1)


def updater() -> Updater:
    config, built = TrainingConfig(warmup_steps=0), model()
    return Updater(
        LossModule(built, 0.1),
        build_optimizer(built, config),
        loss_scaler("fp32", CPU),
        None,
        config,
        "fp32",
        CPU,
    )


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_a_packed_pass_looks_at_no_value(positions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The meta device has no values: what would make the host wait for a card fails on it.

    Padded batches do wait: the loss looks for the labels that are tokens.
    """
    monkeypatch.setattr(attention, "has_kernel", lambda *_, **__: True)
    # The meta device knows no mixed precision; the kernel's stand-in there takes any dtype.
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    loss_module = LossModule(model(positions=positions).to("meta"), 0.1)
    loss, _, num_tokens = loss_module(batch().packed().to("meta"))
    loss.backward()
    assert num_tokens == 8
    assert all(weight.grad is not None for weight in loss_module.parameters())
    with pytest.raises(NotImplementedError, match="nonzero"):
        loss_module(batch().to("meta"))


def test_an_update_reads_the_card_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a sum or a check of each micro-batch that is read by itself."""
    built = updater()
    monkeypatch.setattr(built.loss_module.model, "has_packed_kernel", lambda *_: True)
    batches, packed = [batch(), batch(), batch()], batch().packed()
    monkeypatch.setattr(Batch, "packed", lambda _: packed)  # packing is the host's own work
    read: list[str] = []
    for name in ("item", "tolist", "__float__", "__int__", "__bool__", "nonzero", "cpu", "numpy"):
        original = getattr(Tensor, name)

        def spy(self: Tensor, *args: Any, name: str = name, original: Any = original) -> Any:
            read.append(name)
            return original(self, *args)

        monkeypatch.setattr(Tensor, name, spy)
    built.run(1, batches)
    assert read == ["tolist"]


def test_packed_batches_are_used_where_there_is_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a choice that is made nowhere, and counts of padding that is not there."""
    kinds: list[type] = []
    updates = []
    for packs in (False, True):
        built = updater()
        monkeypatch.setattr(built.loss_module.model, "has_packed_kernel", lambda *_, packs=packs: packs)
        built.loss_module.register_forward_pre_hook(lambda _, inputs: kinds.append(type(inputs[0])))
        updates.append(built.run(1, [batch()]))
    assert kinds == [Batch, PackedBatch]
    padded, packed = updates
    assert (padded.padded_tokens, packed.padded_tokens) == (12 + 15, 9 + 8)
    assert (padded.num_tokens, packed.num_tokens) == (8, 8)
