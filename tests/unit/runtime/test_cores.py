"""Usable cores: what a container allows counts, not what the machine has. All files are faked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from transformer_mt.runtime.cores import usable_cores


@pytest.fixture(autouse=True)
def sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 16 cores of which this process may use 12."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)), raising=False)


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return root


@pytest.mark.parametrize(
    ("files", "number", "reason"),
    [
        ({}, 12, "affinity"),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 12, "affinity"),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "350000 100000\n"}, 3, "quota of 3.5 cores"),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "2500 10000\n"}, 1, "quota of 0.25 cores"),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "not numbers\n"}, 12, "affinity"),
        (
            {
                "proc/self/cgroup": "0::/job/task\n",
                "sys/fs/cgroup/job/task/cpu.max": "900000 100000\n",
                "sys/fs/cgroup/job/cpu.max": "200000 50000\n",
            },
            4,
            "job/cpu.max",
        ),
        (
            {
                "proc/self/cgroup": "9:memory:/a\n4:cpu,cpuacct:/elsewhere/a\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "500000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/a/cpu.max": "100000 100000\n",
            },
            5,
            "cpu.cfs_quota_us",
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/a\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
            },
            12,
            "affinity",
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "9900000 100000\n"}, 12, "affinity"),
    ],
)
def test_the_smallest_limit_counts(tmp_path: Path, files: dict[str, str], number: int, reason: str) -> None:
    """Control groups of both versions, the own and those around it; what cannot be read is no limit."""
    found = usable_cores(_write(tmp_path, files))
    assert found.number == number
    assert reason in found.reason


def test_systems_without_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS: all cores."""
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores(tmp_path) == (16, "cores of this machine")
