"""The twin of a model that multiplies in half precision."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from transformer_mt.config import ModelConfig
from transformer_mt.model.build import build_model
from transformer_mt.model.half_linear import HalfLinear, with_half_products


def test_only_the_product_is_half_precision() -> None:
    """Input, weights, bias and result are rounded once each; what comes and goes is fp32."""
    torch.manual_seed(0)
    linear, states = nn.Linear(24, 7), torch.randn(3, 5, 24)
    found = HalfLinear(linear, torch.bfloat16)(states)
    rounded = [tensor.bfloat16().double() for tensor in (states, linear.weight, linear.bias)]
    expected = F.linear(*rounded)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=2**-8, atol=1e-6)
    assert not torch.equal(found, linear(states))


def test_a_twin_shares_what_is_not_a_product() -> None:
    """The model stays as it was; embeddings and norms are one tensor for both; parameters stand in order."""
    torch.manual_seed(1)
    sizes = {"d_model": 24, "num_heads": 4, "d_ff": 40, "num_encoder_layers": 2, "num_decoder_layers": 1}
    model = build_model(ModelConfig.model_validate(sizes), 31, 31)
    twin = with_half_products(model, torch.bfloat16)
    assert not any(isinstance(module, HalfLinear) for module in model.modules())
    assert not any(isinstance(module, nn.Linear) for module in twin.modules())
    pairs = list(zip(model.named_parameters(), twin.named_parameters(), strict=True))
    for (name, theirs), (same_name, ours) in pairs:
        assert name == same_name
        assert (ours is theirs) == (ours.dtype == torch.float32)
        torch.testing.assert_close(ours.float(), theirs, rtol=2**-8, atol=0.0)
    assert 0 < sum(ours is theirs for (_, theirs), (_, ours) in pairs) < len(pairs)
