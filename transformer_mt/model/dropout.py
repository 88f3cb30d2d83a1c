"""Dropout with cheap random masks. Knows nothing of what it is applied to."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def dropout(states: Tensor, rate: float, training: bool) -> Tensor:
    """Zero elements with probability `rate` and rescale the others, in training only."""
    return F.dropout(states, rate, training) if training and rate > 0.0 else states
