"""The fused loss is the definition, its gradient is the definition's gradient, and pad gets no mass."""

import math

import pytest
import torch

from transformer_mt.training import loss as loss_module
from transformer_mt.training.loss import IGNORE, fused_loss, plain_loss

N, D, V, PAD = 37, 12, 29, 0


@pytest.fixture
def example() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    hidden = torch.randn(N, D, requires_grad=True)
    weight = torch.randn(V, D, requires_grad=True)
    labels = torch.randint(1, V, (N,))
    labels[::5] = IGNORE
    return hidden, weight, labels


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("chunk", [V * 3, 1 << 20])
def test_fused_equals_plain_in_value_and_gradient(example, smoothing, chunk, monkeypatch):
    """Pins a wrong chunk border, a lost last chunk, a wrong gradient of the smoothing term."""
    monkeypatch.setattr(loss_module, "_CHUNK_ELEMENTS", chunk)
    hidden, weight, labels = example
    expected = plain_loss(hidden, weight, labels, smoothing, PAD)
    (expected[0] * 0.25).backward()
    gradients = hidden.grad.clone(), weight.grad.clone()
    hidden.grad = weight.grad = None
    found = fused_loss(hidden, weight, labels, smoothing, PAD)
    (found[0] * 0.25).backward()
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-5)
    torch.testing.assert_close((hidden.grad, weight.grad), gradients, rtol=1e-5, atol=1e-5)


def test_gradient_check_in_double(example):
    """The gradient is that of the loss itself, not only that of another implementation."""
    hidden, weight, labels = (t.detach().double() if t.is_floating_point() else t for t in example)
    hidden.requires_grad_()
    weight.requires_grad_()
    step = 1e-4
    loss, _ = fused_loss(hidden, weight, labels, 0.1, PAD)
    loss.backward()
    for tensor in (hidden, weight):
        with torch.no_grad():
            tensor[2, 3] += step
            above = float(plain_double(hidden, weight, labels))
            tensor[2, 3] -= 2 * step
            below = float(plain_double(hidden, weight, labels))
            tensor[2, 3] += step
        assert float(tensor.grad[2, 3]) == pytest.approx((above - below) / (2 * step), rel=1e-4)


def plain_double(hidden, weight, labels):
    """The smoothed loss written from the formula, in fp64."""
    keep = labels != IGNORE
    log_probs = torch.log_softmax(hidden[keep] @ weight.T, -1)
    target = torch.full_like(log_probs, 0.1 / (V - 2))
    target[:, PAD] = 0.0
    target.scatter_(1, labels[keep][:, None], 0.9)
    return -(target * log_probs).sum()


def test_hand_computed_value_without_mass_on_pad():
    """Pins smoothing toward pad (as F.cross_entropy does) and perplexity of the smoothed loss.

    Four classes with probabilities 1/8, 1/2, 1/4, 1/8; label 1; smoothing 0.2 leaves 0.8 on the label and
    0.1 on each of classes 2 and 3.
    """
    weight = torch.tensor([[1 / 8], [1 / 2], [1 / 4], [1 / 8]]).log()
    loss, nll = fused_loss(torch.ones(1, 1), weight, torch.tensor([1]), 0.2, 0)
    expected = 0.8 * math.log(2) + 0.1 * math.log(4) + 0.1 * math.log(8)
    assert float(loss) == pytest.approx(expected, rel=1e-6)
    assert float(nll) == pytest.approx(math.log(2), rel=1e-6)


def test_no_labelled_token_gives_zero_and_zero_gradient(example):
    """Pins 0/0 = NaN in a slice without target tokens (B084)."""
    hidden, weight, labels = example
    loss, nll = fused_loss(hidden, weight, torch.full_like(labels, IGNORE), 0.1, PAD)
    loss.backward()
    assert float(loss.detach()) == float(nll) == 0.0
    assert not weight.grad.any()
    assert not hidden.grad.any()


def test_no_gradient_is_made_in_validation(example):
    """Validation must not pay for gradients."""
    hidden, weight, labels = example
    with torch.no_grad():
        loss, nll = fused_loss(hidden, weight, labels, 0.1, PAD)
    assert not loss.requires_grad
    torch.testing.assert_close((loss, nll), plain_loss(hidden, weight, labels, 0.1, PAD))


def test_under_autocast_products_are_bf16_and_sums_fp32(example):
    """Pins sums of thousands of log-probabilities in 16 bits (B083)."""
    hidden, weight, labels = example
    exact, _ = fused_loss(hidden, weight, labels, 0.1, PAD)
    with torch.autocast("cpu", torch.bfloat16):
        loss, nll = fused_loss(hidden, weight, labels, 0.1, PAD)
    loss.backward()
    assert loss.dtype == nll.dtype == torch.float32
    assert weight.grad.dtype == torch.float32
    assert float(loss.detach()) == pytest.approx(float(exact.detach()), rel=2e-2)
