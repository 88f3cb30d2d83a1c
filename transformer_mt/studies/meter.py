"""Seconds and bytes of a piece of work, and whether the memory holds it.

The process must do nothing else meanwhile. Knows nothing of what the work is.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from torch import Tensor

from transformer_mt.runtime.device import is_out_of_memory, peak_memory, reset_peak_memory

MIB = 2**20

Found = TypeVar("Found")


def timed(work: Callable[[], Found], device: torch.device) -> tuple[Found, float]:
    """What the work gives, and the seconds until the device has done it."""
    _wait(device)
    started = time.perf_counter()
    found = work()
    _wait(device)
    return found, time.perf_counter() - started


def peak_of(work: Callable[[], Found], device: torch.device) -> tuple[Found, float | None]:
    """What the work gives, and the MiB that it held at its peak above what was held before.

    On a CPU this is the resident memory of the process, on a card what is allocated there; None where the
    system does not let the peak be told from an earlier one.
    """
    gc.collect()
    can_be_told = reset_peak_memory(device)
    before = peak_memory(device)
    found = work()
    _wait(device)
    return found, (peak_memory(device) - before) / MIB if can_be_told else None


def if_it_fits(work: Callable[[], Found]) -> Found | None:
    """What the work gives, or None where the memory does not hold it."""
    try:
        return work()
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    return None


def saved_mib(forward: Callable[[], object], there_anyway: Iterable[Tensor]) -> float:
    """MiB that a forward pass keeps for its backward pass; what shares its storage counts once.

    Args:
        forward: the pass.
        there_anyway: such as weights, which take no memory of their own when they are kept.
    """
    known = {tensor.untyped_storage().data_ptr() for tensor in there_anyway}
    # Held here, so that no other tensor can come to stand at the same address.
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage
        return tensor.detach()

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = forward()
    bytes_kept = sum(storage.nbytes() for storage in kept.values())
    del result  # with the graph, which until now had kept all of this
    return bytes_kept / MIB


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
