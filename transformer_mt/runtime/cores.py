"""How many processor cores this process may keep busy.

A container may be allowed less than the machine has; threads beyond that only make each other wait. Knows
nothing of what the cores are used for, and imports nothing heavy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Cores(NamedTuple):
    """Usable cores, and what sets that number."""

    number: int
    reason: str


def usable_cores(root: Path = Path("/")) -> Cores:
    """The smallest of: cores of the machine, cores this process is bound to, time its control group gets; of
    several processes that torchrun started on this machine each has its share.

    Args:
        root: where /proc and /sys are found.
    """
    limits = [Cores(os.cpu_count() or 1, "cores of this machine")]
    if hasattr(os, "sched_getaffinity"):
        limits.append(Cores(len(os.sched_getaffinity(0)), "cores this process is bound to (affinity)"))
    for quota, path in _quotas(root):
        # Rounded down: a thread more than the quota stops all of them until the next period begins.
        limits.append(Cores(max(int(quota), 1), f"quota of {quota:g} cores ({path})"))
    least, sharing = min(limits, key=lambda limit: limit.number), sharing_processes()
    if sharing == 1:
        return least
    return Cores(max(least.number // sharing, 1), f"{least.reason}, shared by {sharing} processes")


def sharing_processes() -> int:
    """How many processes torchrun has started on this machine, this one among them."""
    number = os.environ.get("LOCAL_WORLD_SIZE", "1")
    return max(int(number), 1) if number.isdecimal() else 1


def _quotas(root: Path) -> Iterator[tuple[float, Path]]:
    """(cores, file that says so) of every control group around this process that has a limit."""
    for folder in control_groups(root, "cpu"):
        try:
            if (path := folder / "cpu.max").is_file():  # cgroup v2: "QUOTA PERIOD" or "max PERIOD"
                quota, period = path.read_text(encoding="ascii").split()
            else:  # v1: microseconds in files of their own, -1 for no limit
                path = folder / "cpu.cfs_quota_us"
                quota = path.read_text(encoding="ascii")
                period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii")
            if quota != "max" and int(quota) > 0:
                yield int(quota) / int(period), path
        except (OSError, ValueError, ZeroDivisionError):
            continue  # no such group here, or nothing that can be read


def control_groups(root: Path, kind: str) -> Iterator[Path]:
    """Folders of this process's groups that limit cpu or memory, and of all groups around them.

    In a container the path may be the host's; its own group is then the top folder.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, inner = rest.partition(":")
        if controllers and kind not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / (kind if controllers else "")
        folder = top / inner.lstrip("/")
        yield from (folder, *(parent for parent in folder.parents if parent.is_relative_to(top)))
