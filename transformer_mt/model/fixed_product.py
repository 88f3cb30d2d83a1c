"""Products with weights that stay as they are: on a CPU laid out once, in the order the kernel reads them.

Knows nothing of layers. Results of a row do not depend on how many rows there are, from 16 rows on.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

Product = Callable[[Tensor], Tensor]


def fixed_product(weight: Tensor, bias: Tensor | None) -> Product:
    """(..., in) -> (..., out), both in the dtype of the weight.

    torch lays weights out anew at every product. These kernels, which its compiler uses for frozen weights,
    take them as they lie: 7% (d_model 512) of a translation in bf16, and 13% of one with a single beam.

    Args:
        weight: (out, in), copied where that is faster: a later change of it may or may not show.
        bias: (out,) or None.
    """
    if not _can_be_laid_out(weight):
        return lambda states: F.linear(states, weight, bias)
    laid_out = torch.ops.mkldnn._reorder_linear_weight(weight)

    def product(states: Tensor) -> Tensor:
        result: Tensor = torch.ops.mkldnn._linear_pointwise(states, laid_out, bias, "none", [], "")
        return result

    return product


def _can_be_laid_out(weight: Tensor) -> bool:
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if weight.device.type != "cpu" or not available:
        return False
    kernels = torch.ops.mkldnn
    needed = ("_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_bf16_supported")
    if not all(hasattr(kernels, name) for name in needed):
        return False
    return weight.dtype == torch.bfloat16 and bool(kernels._is_mkldnn_bf16_supported())
