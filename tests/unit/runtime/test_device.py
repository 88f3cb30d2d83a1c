"""Device and precision are chosen from what the machine offers."""

import os
import subprocess
import sys

import pytest
import torch

from transformer_mt.errors import ConfigError
from transformer_mt.runtime import device as module
from transformer_mt.runtime.cores import Cores
from transformer_mt.runtime.device import (
    autocast_dtype,
    bf16_features,
    peak_memory,
    pick_device,
    pick_precision,
    set_up_process,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("features", "expected"),
    [({"avx512_bf16": True}, "bf16"), ({"amx_bf16": True}, "bf16"), ({"avx2": True}, "fp32"), ({}, "fp32")],
)
def test_auto_takes_bf16_only_where_the_processor_has_it(monkeypatch, features, expected):
    monkeypatch.setattr(module.torch.cpu, "get_capabilities", lambda: features, raising=False)
    assert pick_precision("auto", CPU) == expected
    assert pick_precision("fp16", CPU) == "fp16"


def test_int8_is_refused_where_it_would_be_slow(monkeypatch):
    """Pins a silent fall to torch's loop over single numbers, and int8 on a GPU."""
    features = {"avx512_vnni": True}
    monkeypatch.setattr(module.torch.cpu, "get_capabilities", lambda: features, raising=False)
    assert pick_precision("int8", CPU) == "int8"
    features = {"amx_int8": True}
    assert pick_precision("int8", CPU) == "int8"
    with pytest.raises(ConfigError, match="precision int8: is for CPUs, not for cuda; use bf16 or auto"):
        pick_precision("int8", torch.device("cuda"))
    features = {"avx512_bf16": True, "avx512_vnni": False}
    with pytest.raises(ConfigError, match="this processor has neither AVX-512 VNNI nor AMX; use fp32"):
        pick_precision("int8", CPU)


def test_names_of_devices(monkeypatch):
    assert pick_device("cpu") == CPU
    with pytest.raises(ConfigError, match="--device tpuu: no such device; use cpu, cuda or cuda:N"):
        pick_device("tpuu")
    with pytest.raises(ConfigError, match="--device meta: not supported"):
        pick_device("meta")
    monkeypatch.setattr(module.torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ConfigError, match="--device cuda:3: this machine has 1 such devices"):
        pick_device("cuda:3")


@pytest.mark.parametrize(
    ("allowed", "variable", "num_threads", "reason"),
    [
        (3, "", 3, "quota of 3.5 cores"),
        (3, "OMP_NUM_THREADS", 5, "OMP_NUM_THREADS=5"),
        (3, "MKL_NUM_THREADS", 5, "MKL_NUM_THREADS=5"),
        (64, "", 5, "as torch chooses by itself"),
    ],
)
def test_no_more_threads_than_allowed(monkeypatch, allowed, variable, num_threads, reason):
    """torch sees all cores of the machine; a container may be allowed fewer; the user has the last word."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "5")
    monkeypatch.setattr(module, "usable_cores", lambda: Cores(allowed, "quota of 3.5 cores"))
    before = torch.get_num_threads()
    torch.set_num_threads(5)  # what torch found at its start
    try:
        settings = set_up_process()
        assert (settings.num_threads, settings.threads_reason) == (num_threads, reason)
        assert torch.get_num_threads() == num_threads
    finally:
        torch.set_num_threads(before)


def test_dtypes():
    assert [autocast_dtype(name) for name in ("fp32", "bf16", "fp16")] == [
        torch.float32,
        torch.bfloat16,
        torch.float16,
    ]


def test_peak_memory_sees_a_large_tensor():
    """In bytes: a block of 256 MiB raises the peak by about that much."""
    before = peak_memory(CPU)
    block = torch.ones(before // 4 + 2**28, dtype=torch.uint8)
    assert peak_memory(CPU) >= before
    assert peak_memory(CPU) >= block.numel()


def _grown(work: str, field: str, **env: str) -> int:
    """MiB that a field of /proc/self/status has grown by over lines of Python, in a process of its own."""
    code = f"""
import resource, torch
from transformer_mt.runtime.device import set_up_process
from transformer_mt.runtime.memory import status_bytes
{work}
print(status_bytes("{field}:") - before >> 20)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(not bf16_features(), reason="the processor multiplies no bf16, so no kernels are kept")
def test_kernels_of_shapes_that_do_not_come_again_are_not_kept():
    """Pins half a GiB that every training in bf16 grew by in its first twenty updates."""
    work = """
set_up_process()
weight = torch.ones(64, 64, dtype=torch.bfloat16, requires_grad=True)
rows = lambda number: torch.ones(number, 64, dtype=torch.bfloat16)
torch.nn.functional.linear(rows(7), weight).sum().backward()
before = status_bytes("VmRSS:")
for number in range(20, 420):
    torch.nn.functional.linear(rows(number), weight).sum().backward()
"""
    kept = dict.fromkeys(("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"), "1024")
    bounded, unbounded = (_grown(work, "VmRSS", OMP_NUM_THREADS="1", **env) for env in ({}, kept))
    assert bounded < unbounded / 2


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_a_limited_address_space_is_not_spent_on_holes():
    """Pins freed blocks that stay mapped: of `ulimit -v` nothing was left after some updates."""
    work = """
if limited:
    resource.setrlimit(resource.RLIMIT_AS, (2**36, resource.RLIM_INFINITY))
assert set_up_process().keeps_memory is not limited
before = status_bytes("VmSize:")
torch.ones(2**25)
"""
    assert _grown("limited = False" + work, "VmSize") >= 120
    assert _grown("limited = True" + work, "VmSize") < 20
