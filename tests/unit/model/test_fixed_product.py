"""Products with weights that stay: the same numbers, and every row's its own."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from transformer_mt.model import fixed_product as module
from transformer_mt.model.fixed_product import fixed_product


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("with_bias", [True, False])
def test_it_is_the_linear_map(dtype: torch.dtype, with_bias: bool) -> None:
    """Pins a transposed or forgotten part; sums are taken in fp32, so results differ by one rounding."""
    torch.manual_seed(0)
    weight, bias = torch.randn(40, 24).to(dtype), torch.randn(40).to(dtype) if with_bias else None
    states = torch.randn(3, 7, 24).to(dtype)
    found = fixed_product(weight, bias)(states)
    expected = F.linear(states.double(), weight.double(), None if bias is None else bias.double())
    assert found.dtype == dtype
    assert found.shape == (3, 7, 40)
    tolerance = 2**-8 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=1e-4)


def test_without_the_kernels_it_is_the_plain_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch without them, or another device: bit for bit `F.linear`."""
    monkeypatch.setattr(module, "_can_be_laid_out", lambda weight: False)
    weight, states = torch.randn(40, 24).bfloat16(), torch.randn(3, 24).bfloat16()
    assert torch.equal(fixed_product(weight, None)(states), F.linear(states, weight))


def test_rows_do_not_depend_on_their_number() -> None:
    """Widths of the presets, any number of rows from 16 on."""
    torch.manual_seed(1)
    for inputs, outputs in [(256, 768), (1024, 256), (96, 340), (512, 2048)]:
        product = fixed_product(torch.randn(outputs, inputs).bfloat16(), torch.randn(outputs).bfloat16())
        states = torch.randn(320, inputs).bfloat16()
        whole = product(states)
        for count in (16, 17, 31, 100):
            rows = torch.randperm(320)[:count]
            assert torch.equal(product(states[rows]), whole[rows])
