"""The twin of a model that multiplies in half precision or in 8-bit integers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from transformer_mt.config import ModelConfig
from transformer_mt.model.build import build_model
from transformer_mt.model.narrow_linear import HalfLinear, Int8Linear, take_up_weights, with_narrow_products


def test_only_the_product_is_half_precision() -> None:
    """Input, weights, bias and result are rounded once each; what comes and goes is fp32."""
    torch.manual_seed(0)
    linear, states = nn.Linear(24, 7), torch.randn(3, 5, 24)
    found = HalfLinear(linear.weight, linear.bias, torch.bfloat16)(states)
    rounded = [tensor.bfloat16().double() for tensor in (states, linear.weight, linear.bias)]
    expected = F.linear(*rounded)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=2**-8, atol=1e-6)
    assert not torch.equal(found, linear(states))


def test_int8_rounds_every_row_by_itself() -> None:
    """Against a product of the rounded rows in fp64; the largest of every row is exact, a row of zeros is."""
    torch.manual_seed(0)
    linear, states = nn.Linear(24, 7), torch.randn(3, 5, 24) * torch.tensor([1e-3, 1.0, 50.0])[:, None, None]
    states[1, 2] = 0.0
    found = Int8Linear(linear.weight, linear.bias)(states)

    def rounded(rows: torch.Tensor) -> torch.Tensor:
        step = rows.detach().double().abs().amax(-1, keepdim=True).clamp(min=1e-300) / 127
        return (rows.detach().double() / step).round() * step

    expected = F.linear(rounded(states), rounded(linear.weight), linear.bias.detach().double())
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-6)
    assert torch.equal(found[1, 2], linear.bias.detach())
    error = (found - linear(states).detach()).norm(dim=-1) / linear(states).detach().norm(dim=-1)
    assert 0.0 < error.max().item() < 0.03
    assert torch.equal(Int8Linear(linear.weight, linear.bias)(states[1:2, :1]), found[1:2, :1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8])
@pytest.mark.parametrize("tied", ["three_way", "none"])
def test_a_twin_shares_what_is_not_a_product(dtype: torch.dtype, tied: str) -> None:
    """The model stays as it was; embeddings, norms and the output matrix are one tensor for both."""
    torch.manual_seed(1)
    sizes = {"d_model": 24, "num_heads": 4, "d_ff": 40, "num_encoder_layers": 2, "num_decoder_layers": 1}
    model = build_model(ModelConfig.model_validate({**sizes, "tied_embeddings": tied}), 31, 31).eval()
    twin = with_narrow_products(model, dtype, model.output_weight)
    narrow = [name for name, module in twin.named_modules() if isinstance(module, HalfLinear | Int8Linear)]
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    assert narrow == [name for name in linear if name != "output"]
    assert len(narrow) > 10
    ours, theirs = dict(twin.named_parameters()), dict(model.named_parameters())
    assert all(ours[name] is theirs[name] for name in ours)
    assert twin.output_weight is model.output_weight

    def results() -> list[torch.Tensor]:
        ids = torch.randint(4, 31, (3, 5), generator=torch.Generator().manual_seed(0))
        mask = torch.ones(3, 1, 1, 5, dtype=torch.bool)
        with torch.no_grad():
            return [one.hidden(ids, mask, ids[:, :4]) for one in (twin, model)]

    before = results()
    torch.testing.assert_close(before[0], before[1], rtol=0.0, atol=0.1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.flip(0))
    take_up_weights(twin, model)
    after = results()
    torch.testing.assert_close(after[0], after[1], rtol=0.0, atol=0.1)
    assert float((after[1] - before[1]).abs().max()) > 0.5
