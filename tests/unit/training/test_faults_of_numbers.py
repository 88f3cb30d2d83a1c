"""Faults of numbers that users of other toolkits met: rows without a token, half precision, loss scaling."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from small_models import small_config
from torch import Tensor

from transformer_mt.config import TrainingConfig
from transformer_mt.data.batch import IGNORED_LABEL, Batch, make_batch
from transformer_mt.model import attention
from transformer_mt.model.build import build_model
from transformer_mt.model.masks import combine, padding_mask, position_mask
from transformer_mt.text.tokenizer import PAD_ID
from transformer_mt.training.loss import fused_loss, plain_loss
from transformer_mt.training.optimizer import build_optimizer
from transformer_mt.training.precision import autocast, loss_scaler
from transformer_mt.training.step import LossModule, Update, Updater

CPU = torch.device("cpu")
V = 29
PAIRS = [
    ([5, 6, 7, 8, 9, 10, 3], [11, 12, 3]),
    ([9, 3], [7, 8, 9, 10, 11, 3]),
    ([4, 4, 12, 3], [6, 3]),
]
MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "fused": {},
    "windowed": {"attention_window": 2},
    "learned": {"positions": "learned"},
    "lstm": {"architecture": "lstm"},
    "fed lstm": {"architecture": "lstm", "attention": "additive", "input_feeding": True},
}


def _loss_module(kind: str, monkeypatch: pytest.MonkeyPatch | None = None) -> LossModule:
    if kind == "fused":
        assert monkeypatch is not None
        monkeypatch.setattr(attention, "prefers_fused", lambda *arguments: True)
    torch.manual_seed(3)
    return LossModule(build_model(small_config(**{"tied_embeddings": "none", **MODELS[kind]}), V, V), 0.1)


def _without_row(batch: Batch, row: int, *, source: bool) -> Batch:
    """A batch of which one row is padding alone, on the target side or on both."""
    labels, inputs = batch.labels.clone(), batch.decoder_input_ids.clone()
    labels[row], inputs[row] = IGNORED_LABEL, PAD_ID
    src_ids = batch.src_ids.clone()
    if source:
        src_ids[row] = PAD_ID
    return replace(
        batch,
        src_ids=src_ids,
        src_mask=padding_mask(src_ids, PAD_ID),
        decoder_input_ids=inputs,
        labels=labels,
        num_tokens=int((labels != IGNORED_LABEL).sum()),
    )


def _gradients(module: LossModule, batch: Batch) -> tuple[float, dict[str, Tensor]]:
    module.zero_grad(set_to_none=True)
    loss, _, _ = module(batch)
    loss.backward()
    named = module.named_parameters()
    return float(loss.detach()), {name: p.grad.clone() for name, p in named if p.grad is not None}


@pytest.mark.parametrize("kind", MODELS)
def test_a_row_of_padding_alone_changes_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """B079: a source without any token to attend to, in every kind of attention: loss and gradients are
    finite and those of the batch without that row."""
    module = _loss_module(kind, monkeypatch)
    whole = make_batch(PAIRS)
    loss, gradients = _gradients(module, _without_row(whole, 2, source=True))
    expected, expected_gradients = _gradients(module, make_batch(PAIRS[:2]))
    assert loss == pytest.approx(expected, rel=1e-5)
    for name, gradient in expected_gradients.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["plain", "fused"])
def test_masks_together_hold_in_half_precision(
    dtype: torch.dtype, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B082: padding and causal mask at once, under autocast and with weights in 16 bits: no NaN, and what is
    masked has a weight of exactly 0."""
    module = _loss_module(kind, monkeypatch)
    batch = make_batch(PAIRS)
    with torch.autocast("cpu", dtype), torch.no_grad():
        hidden = module.model.hidden(batch.src_ids, batch.src_mask, batch.decoder_input_ids)
    assert torch.isfinite(hidden).all()
    narrow = module.model.to(dtype)
    with torch.no_grad():
        hidden = narrow.hidden(batch.src_ids, batch.src_mask, batch.decoder_input_ids)
    assert torch.isfinite(hidden).all()
    positions = torch.arange(7)
    mask = combine(batch.src_mask, position_mask(positions, positions, causal=True, window=None))
    assert mask is not None
    query, key = (torch.randn(3, 4, 7, 6).to(dtype) * 30 for _ in range(2))
    weights = attention.attention_weights(query, key, mask)
    assert (weights.masked_select(~mask.expand_as(weights)) == 0).all()
    assert torch.isfinite(weights).all()


@pytest.mark.parametrize("loss_function", [fused_loss, plain_loss])
@pytest.mark.parametrize("under_autocast", [True, False])
def test_smoothing_over_a_large_vocabulary_in_half_precision(
    loss_function: Any, under_autocast: bool
) -> None:
    """B083: 32,000 equal log-probabilities, whose sum exceeds what fp16 holds: within 0.5% of fp32."""
    hidden, weight = torch.zeros(6, 4), torch.randn(32_000, 4)
    labels = torch.tensor([5, 7, 31_999, 4, 9, 11])
    exact, _ = loss_function(hidden, weight, labels, 0.1, PAD_ID)
    assert float(exact) == pytest.approx(6 * math.log(32_000), rel=1e-4)
    if under_autocast:
        with torch.autocast("cpu", torch.float16):
            found, _ = loss_function(hidden, weight, labels, 0.1, PAD_ID)
    else:
        found, _ = loss_function(hidden.half(), weight.half(), labels, 0.1, PAD_ID)
    assert float(found) == pytest.approx(float(exact), rel=5e-3)


def _updater(precision: str = "fp32", **training: Any) -> Updater:
    config = TrainingConfig.model_validate({"warmup_steps": 0, "learning_rate": 0.01, "eps": 1.0, **training})
    module = _loss_module("plain")
    return Updater(
        module,
        build_optimizer(module.model, config),
        loss_scaler(precision, CPU),
        None,
        config,
        precision,
        CPU,
    )


def _weights(updater: Updater) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in updater.loss_module.parameters()])


def test_a_slice_without_target_tokens_counts_nothing() -> None:
    """B084: one micro-batch of the window has no label: loss, gradient and weights are those without it; and
    a window of nothing else changes no weight by its gradient."""
    full = make_batch(PAIRS)
    empty = _without_row(_without_row(make_batch(PAIRS[:2]), 0, source=False), 1, source=False)
    assert empty.num_tokens == 0
    with_it, without = _updater(), _updater()
    first, second = with_it.run(1, [full, empty]), without.run(1, [full])
    assert (first.loss_sum, first.num_tokens) == (second.loss_sum, second.num_tokens)
    assert first.grad_norm == second.grad_norm
    assert torch.equal(_weights(with_it), _weights(without))
    alone = _updater(weight_decay=0.0)
    before = _weights(alone).clone()
    update = alone.run(1, [empty])
    assert (update.loss_sum, update.num_tokens, update.grad_norm) == (0.0, 0, 0.0)
    assert torch.equal(_weights(alone), before)


def test_clipping_acts_on_the_true_gradient_under_loss_scaling() -> None:
    """B086: with a scale of 65,536 and fp32 products the reported norm and the clipped update are those
    without a scale."""

    def update(scaled: bool) -> tuple[Update, Tensor]:
        updater = _updater(clip_norm=0.1)
        if scaled:
            updater.scaler = torch.amp.GradScaler("cpu", init_scale=65_536.0)
        return updater.run(1, [make_batch(PAIRS)]), _weights(updater)

    (plain, weights), (scaled, scaled_weights) = update(False), update(True)
    assert plain.grad_norm > 0.1
    assert scaled.applied
    assert scaled.grad_norm == pytest.approx(plain.grad_norm, rel=1e-2)
    torch.testing.assert_close(scaled_weights, weights, rtol=1e-4, atol=1e-6)
    assert not torch.equal(weights, _weights(_updater()))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_autocast_and_scaler_follow_the_precision(precision: str) -> None:
    """B086: only fp16 scales; the test above stands on it."""
    assert loss_scaler(precision, CPU).is_enabled() == (precision == "fp16")
    with autocast(precision, CPU):
        assert torch.is_autocast_enabled("cpu") == (precision == "fp16")
