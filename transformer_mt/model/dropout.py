"""Dropout with cheap random masks on CPUs. Knows nothing of what it is applied to.

torch draws CPU masks one number per element in one thread, a fifth of a training step. Here one 64-bit draw
serves eight elements: each compares a byte of its own with a threshold. Rates are therefore multiples of
1/256, and kept elements are rescaled by the rate really drawn, so the mean stays exact.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

RESOLUTION = 256


def dropout(states: Tensor, rate: float, training: bool) -> Tensor:
    """Zero elements with probability `rate` and rescale the others, in training only.

    Args:
        states: any shape.
        rate: 0 <= rate < 1; on CPUs rounded to the nearest multiple of 1/256 from 1/256 to 255/256.
        training: False returns `states` itself.

    Returns:
        The same shape and dtype. The mask comes from torch's default generator.
    """
    if not training or rate <= 0.0:
        return states
    if states.device.type != "cpu" or torch.compiler.is_compiling():  # no compiler follows the view of bytes
        return F.dropout(states, rate)
    threshold = min(max(round(rate * RESOLUTION), 1), RESOLUTION - 1)
    keep = random_bytes(states.numel()).ge_(threshold).to(states.dtype).view(states.shape)
    # The factor stays outside the mask: rounded to bfloat16 it would shift the mean by up to 0.4%.
    return (states * keep).mul_(RESOLUTION / (RESOLUTION - threshold))


def random_bytes(count: int) -> Tensor:
    """(count,) uint8, uniform over 0 … 255, from torch's default generator.

    The draw names its full range: by default `random_` leaves the sign bit 0, every eighth byte below 128.
    """
    draws = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    return draws.view(torch.uint8)[:count]
