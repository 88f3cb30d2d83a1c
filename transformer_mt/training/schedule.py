"""Learning-rate schedules: pure functions of the step, nothing else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformer_mt.config import TrainingConfig


def learning_rate(step: int, config: TrainingConfig) -> float:
    """The rate of one update.

    All schedules rise linearly over `warmup_steps` to `learning_rate`. After that inverse_sqrt falls with
    1/sqrt(step) (Vaswani et al. 2017), cosine falls to `min_learning_rate` at `max_steps` (Loshchilov and
    Hutter 2017), wsd stays and falls linearly over the last `decay_steps`, constant stays.

    Args:
        step: 1 for the first update.
    """
    peak, floor = config.learning_rate, config.min_learning_rate
    warmup = config.warmup_steps
    if step <= warmup:
        return peak * step / warmup
    if config.schedule == "inverse_sqrt":
        return peak * math.sqrt(max(warmup, 1) / step)
    if config.schedule == "cosine":
        done = min((step - warmup) / max(config.max_steps - warmup, 1), 1.0)
        return floor + (peak - floor) * 0.5 * (1.0 + math.cos(math.pi * done))
    if config.schedule == "wsd":
        left = max(config.max_steps - step, 0)
        return peak if left >= config.decay_steps else floor + (peak - floor) * left / config.decay_steps
    return peak
