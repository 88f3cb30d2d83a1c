"""The least of all that limits memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from transformer_mt.runtime import memory as module
from transformer_mt.runtime.device import is_out_of_memory, peak_memory, reset_peak_memory
from transformer_mt.runtime.memory import Memory, refusing_memory, status_bytes, usable_memory

CPU = torch.device("cpu")
KIB, MIB = 1024, 1 << 20

FREE = {
    "proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n",
    "proc/self/status": "Name:\tpython\nVmSize:\t 700 kB\nVmRSS:\t 500 kB\n",
}
GROUP = {"proc/self/cgroup": "0::/box/inner\n"}
V2 = "sys/fs/cgroup/box"
V1 = "sys/fs/cgroup/memory/box"


@pytest.mark.parametrize(
    ("files", "limit", "reason"),
    [
        ({}, 8500 * KIB, "free memory of this machine"),
        (
            {
                **GROUP,
                f"{V2}/memory.max": f"{4 * MIB}\n",
                f"{V2}/memory.current": f"{3 * MIB}\n",
                f"{V2}/memory.stat": f"anon 5\ninactive_file {MIB}\n",
                f"{V2}/inner/memory.max": "max\n",
                f"{V2}/inner/memory.current": "5\n",
            },
            2 * MIB + 500 * KIB,
            f"limit of {{root}}/{V2}/memory.max",
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/box\n1:cpu:/other\n",
                f"{V1}/memory.limit_in_bytes": f"{MIB}\n",
                f"{V1}/memory.usage_in_bytes": f"{2 * MIB}\n",
            },
            500 * KIB,
            f"limit of {{root}}/{V1}/memory.limit_in_bytes",
        ),
        ({**GROUP, f"{V2}/memory.max": "nonsense\n"}, 8500 * KIB, "free memory of this machine"),
    ],
)
def test_the_smallest_limit_counts(tmp_path: Path, files: dict[str, str], limit: int, reason: str) -> None:
    for name, text in {**FREE, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_memory(CPU, tmp_path) == (limit, reason.format(root=tmp_path))


def test_a_limit_of_the_process_counts_what_is_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1000 * KIB, -1))
    assert usable_memory(CPU, tmp_path) == (650 * KIB, "limit of this process (ulimit -v)")


def test_processes_on_a_machine_share_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert usable_memory(CPU, tmp_path).limit == 2500 * KIB


def test_a_peak_that_is_over_is_forgotten() -> None:
    """Without it a large corpus that was prepared before would hide what an update takes."""
    if not reset_peak_memory(CPU):
        pytest.skip("/proc/self/clear_refs cannot be written here")
    before = peak_memory(CPU)
    block = bytearray(300 * MIB)
    block[:: 4 * KIB] = b"x" * len(block[:: 4 * KIB])
    assert peak_memory(CPU) > before + 250 * MIB
    del block
    assert reset_peak_memory(CPU)
    assert peak_memory(CPU) < before + 150 * MIB


def test_a_peak_is_that_of_this_process_alone() -> None:
    """What another process held that started this one would hide all that is smaller."""
    ask = "from transformer_mt.runtime.device import *; print(peak_memory(torch.device('cpu')))"
    program = (
        "import subprocess, sys; held = b'x' * (900 << 20); "
        f"subprocess.run([sys.executable, '-c', {ask!r}], check=True)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert 50 * MIB < int(done.stdout) < 800 * MIB


def test_what_is_too_large_is_refused_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a process that takes too much is killed, and what it had found is lost."""
    if not status_bytes("VmSize:"):
        pytest.skip("/proc/self/status does not tell how much is mapped")
    before = resource.getrlimit(resource.RLIMIT_AS)
    monkeypatch.setattr(
        module, "usable_memory", lambda device: Memory(status_bytes("VmRSS:") + 600 * MIB, "this test")
    )
    with refusing_memory(CPU):
        assert torch.ones(100 * MIB, dtype=torch.uint8).numel() == 100 * MIB
        with pytest.raises(RuntimeError) as caught:
            torch.ones(900 * MIB, dtype=torch.uint8)
        assert is_out_of_memory(caught.value)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.parametrize(
    ("text", "is_memory"),
    [
        ("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory", True),
        ("could not create a primitive", True),
        ("could not execute a primitive", True),
        ("could not create a primitive descriptor for a matmul primitive", False),
        ("mat1 and mat2 shapes cannot be multiplied", False),
    ],
)
def test_a_full_memory_is_told_from_other_errors(text: str, is_memory: bool) -> None:
    """Where `ulimit -v` is tight it is oneDNN that fails, half the time, in bf16 and fp16."""
    assert is_out_of_memory(RuntimeError(text)) is is_memory


def test_python_and_numpy_run_out_of_memory_too() -> None:
    """Pins a traceback where a picture, not a tensor, was refused memory."""
    assert is_out_of_memory(MemoryError("Unable to allocate 2.1 MiB for an array"))
