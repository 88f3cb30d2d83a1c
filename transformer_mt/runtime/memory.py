"""How many bytes of memory this process may come to hold.

A container may be allowed less than the machine has free, and is killed without a word where it takes more.
Imports nothing heavy but torch; knows nothing of what the memory is for.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch

from transformer_mt.runtime.cores import control_groups, sharing_processes


class Memory(NamedTuple):
    """Bytes that this process may hold, those that it holds already among them; and what sets that number."""

    limit: int
    reason: str


def usable_memory(device: torch.device, root: Path = Path("/")) -> Memory:
    """That of a card; of a CPU the smallest of: what is free, limits of control groups and of the process.

    Of several processes on this machine each has its share.

    Args:
        device: where the memory is.
        root: where /proc and /sys are found.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return Memory(free + torch.cuda.memory_reserved(device), f"free on {device}")
    held, mapped = (status_bytes(name, root) for name in ("VmRSS:", "VmSize:"))
    limits = [Memory(max(free, 0) // sharing_processes() + held, reason) for free, reason in _free(root)]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        # It counts what is mapped, not what is held: as much again goes to holes that stay mapped.
        room = max(soft - mapped, 0) // 2
        limits.append(Memory(room + held, "limit of this process (ulimit -v)"))
    return min(limits)


@contextmanager
def refusing_memory(device: torch.device) -> Iterator[None]:
    """While it lasts, a CPU refuses what is more than `usable_memory`, as a card does by itself.

    What is too large is an error then, instead of the end of the process.
    """
    mapped = status_bytes("VmSize:")
    if device.type != "cpu" or not mapped:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = mapped + max(usable_memory(device).limit - status_bytes("VmRSS:"), 0)
    resource.setrlimit(
        resource.RLIMIT_AS, (limit if soft == resource.RLIM_INFINITY else min(limit, soft), hard)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def status_bytes(name: str, root: Path = Path("/")) -> int:
    """A number of /proc/self/status, such as `VmRSS:`, in bytes; 0 where it is not told."""
    return _field(root / "proc/self/status", name) * 1024


def _free(root: Path) -> Iterator[tuple[int, str]]:
    """(bytes that may be taken besides those that are held, what says so)."""
    yield _field(root / "proc/meminfo", "MemAvailable:") * 1024, "free memory of this machine"
    for folder in control_groups(root, "memory"):
        try:
            if (path := folder / "memory.max").is_file():  # cgroup v2
                used, cached = folder / "memory.current", "inactive_file"
            else:
                path, used = folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes"
                cached = "total_inactive_file"
            limit = path.read_text(encoding="ascii").strip()
            if limit != "max":
                # Pages of files count as used, but are given back when they are needed.
                taken = int(used.read_text(encoding="ascii")) - _field(folder / "memory.stat", cached)
                yield int(limit) - taken, f"limit of {path}"
        except (OSError, ValueError):
            continue  # no such group here, or nothing that can be read


def _field(path: Path, name: str) -> int:
    """The number after a name in a file of /proc or of a control group; 0 where it is not there."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError:
        return 0
    found = [words for words in map(str.split, lines) if words and words[0] == name]
    return int(found[0][1]) if found else 0
