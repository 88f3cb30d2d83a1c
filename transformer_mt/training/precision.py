"""Mixed precision: where matrix products run in 16 bits, and the loss scaling that fp16 needs."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from transformer_mt.runtime.device import autocast_dtype


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Context in which matrix products run in `precision` (fp32: unchanged)."""
    return torch.autocast(device.type, autocast_dtype(precision), enabled=precision != "fp32")


def loss_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Scaler of the loss; does nothing unless fp16, whose gradients would underflow."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
