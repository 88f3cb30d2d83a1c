"""Device and precision are chosen from what the machine offers."""

import pytest
import torch

from transformer_mt.errors import ConfigError
from transformer_mt.runtime import device as module
from transformer_mt.runtime.cores import Cores
from transformer_mt.runtime.device import (
    autocast_dtype,
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
