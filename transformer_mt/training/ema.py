"""Exponential moving average of the weights: what validation sees and `translate` uses when it is on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Ema:
    """shadow <- shadow + (1 - decay_t) (weights - shadow), decay_t = min(decay, (1 + t) / (10 + t)).

    The slower start keeps the random initial weights out of the average. One shadow tensor per parameter, in
    fp32; a tied weight is one parameter and has one shadow.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self._weights = list(model.parameters())
        self._names = [name for name, _ in model.named_parameters()]
        self._shadow = [weight.detach().clone() for weight in self._weights]

    @torch.no_grad()
    def update(self) -> None:
        """Take the current weights into the average."""
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(self._shadow, [weight.data for weight in self._weights], 1.0 - decay)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Inside, the model holds the averaged weights; nothing is copied."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def tensors(self) -> dict[str, Tensor]:
        """Parameter name -> averaged weight."""
        return dict(zip(self._names, self._shadow, strict=True))

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor], updates: int) -> None:
        """Continue from saved averages."""
        self.updates = updates
        for name, shadow in self.tensors().items():
            shadow.copy_(tensors[name])

    def _swap(self) -> None:
        for position, weight in enumerate(self._weights):
            weight.data, self._shadow[position] = self._shadow[position], weight.data
