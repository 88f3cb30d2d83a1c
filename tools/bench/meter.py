"""Windows of time in which tokens are counted, and the peak of memory. Runs in any Python."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Meter:
    """Counts tokens in windows of equal length, after a warm-up."""

    def __init__(
        self,
        warm_seconds: float,
        window_seconds: float,
        windows: int,
        synchronize: Callable[[], object] = lambda: None,
    ) -> None:
        """Start the warm-up now.

        Args:
            synchronize: waits for what a device still has to do; called at the ends of windows only.
        """
        self.rates: list[float] = []
        """Tokens per second of every window that is over."""
        self._lengths = [warm_seconds] + [window_seconds] * windows
        self._synchronize = synchronize
        self._started = time.perf_counter()
        self._tokens = 0

    def tick(self, num_tokens: int) -> bool:
        """Count one update. Returns True when the last window is over."""
        self._tokens += num_tokens
        if time.perf_counter() - self._started >= self._lengths[0]:
            self._synchronize()
            now = time.perf_counter()
            self.rates.append(self._tokens / (now - self._started))
            self._lengths.pop(0)
            self._started, self._tokens = now, 0
        if self._lengths:
            return False
        del self.rates[0]  # the warm-up
        return True


def synchronizer(torch: Any, device: str) -> Callable[[], object]:
    """What waits for a device; a CPU has nothing left to do. `torch` is the module: not every peer has it."""
    return torch.cuda.synchronize if device.startswith("cuda") else lambda: None


def peak_gib(torch: Any, device: str) -> float:
    """The most memory this process has held: resident on a CPU, allocated by torch on a GPU."""
    if device.startswith("cuda"):
        return float(torch.cuda.max_memory_allocated(device)) / 2**30
    status = Path("/proc/self/status")
    if status.is_file():  # there the peak begins anew with each program; that of getrusage is inherited
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) / 2**20
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
