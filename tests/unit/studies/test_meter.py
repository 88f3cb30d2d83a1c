"""Seconds and bytes of a piece of work: units, what counts once, what does not fit."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

from transformer_mt.runtime.device import reset_peak_memory
from transformer_mt.studies import meter
from transformer_mt.studies.meter import MIB, if_it_fits, peak_of, saved_mib, timed

CPU = torch.device("cpu")


def test_time_is_in_seconds() -> None:
    found, seconds = timed(lambda: time.sleep(0.05) or "done", CPU)
    assert found == "done"
    assert 0.05 <= seconds < 5.0


def test_a_peak_is_what_was_held_besides() -> None:
    """In MiB: a block that was there before does not count, one that is gone by now does."""
    if not reset_peak_memory(CPU):
        pytest.skip("/proc/self/clear_refs cannot be written here")
    before = torch.ones(300 * MIB, dtype=torch.uint8)
    found, peak = peak_of(lambda: torch.ones(200 * MIB, dtype=torch.uint8).numel(), CPU)
    assert found + before.numel() == 500 * MIB
    assert peak is not None
    assert 190 < peak < 250


def test_a_peak_that_cannot_be_told_from_an_earlier_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "reset_peak_memory", lambda device: False)
    assert peak_of(lambda: 5, CPU) == (5, None)


def test_only_a_lack_of_memory_is_no_fit() -> None:
    def fails(message: str) -> None:
        raise RuntimeError(message)

    assert if_it_fits(lambda: 7) == 7
    assert if_it_fits(lambda: fails("DefaultCPUAllocator: can't allocate memory")) is None
    with pytest.raises(RuntimeError, match="shapes"):
        if_it_fits(lambda: fails("shapes do not match"))


def test_saved_bytes_of_a_small_module() -> None:
    """By hand: the input of the product (2 x 3 numbers) and the output of tanh (2 x 5), which is its own
    derivative and both factors of the square, are kept; the weight is kept too, but was there before."""
    layer, given = nn.Linear(3, 5, bias=False), torch.randn(2, 3, requires_grad=True)

    def forward() -> torch.Tensor:
        states = layer(given).tanh()  # (2, 5)
        return (states * states.view(10).view(2, 5)).sum()

    assert saved_mib(forward, layer.parameters()) * MIB == (2 * 3 + 2 * 5) * 4
    assert saved_mib(forward, ()) * MIB == (2 * 3 + 2 * 5 + 3 * 5) * 4
    with torch.no_grad():
        assert saved_mib(forward, [*layer.parameters(), given]) * MIB == 2 * 5 * 4
