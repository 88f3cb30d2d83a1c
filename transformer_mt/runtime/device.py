"""What the process runs on: device, arithmetic, allocator, memory in use.

Chosen once per process from what the machine offers; nothing here knows models or data.
"""

from __future__ import annotations

import ctypes
import resource
import sys

import torch

from transformer_mt.errors import ConfigError

# glibc mallopt parameters (malloc.h).
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4


def pick_device(name: str | None = None) -> torch.device:
    """The named device, or a GPU where there is one, else the CPU.

    Raises:
        ConfigError: no such device here.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"--device {name}: no such device; use cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"--device {name}: not supported; use cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"--device {name}: this machine has {torch.cuda.device_count()} such devices")
    return device


def pick_precision(name: str, device: torch.device) -> str:
    """fp32, bf16 or fp16; `auto` takes bf16 where the processor multiplies it natively, else fp32 (fp16 on
    GPUs without bf16)."""
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    return "bf16" if _cpu_multiplies_bf16() else "fp32"


def autocast_dtype(precision: str) -> torch.dtype:
    """The dtype that matrix products run in."""
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def set_up_process() -> None:
    """Settings that make training on a CPU faster; call before the first tensor.

    glibc returns large blocks to the system after every step and pays page faults to get them back: keep
    them. Denormals appear in optimizer moments and cost hundreds of cycles each: flush them to zero (threads
    started later inherit it).
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(_M_MMAP_MAX, 0)
            libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
    torch.set_flush_denormal(True)


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a device had too little memory; on a CPU only the text of the error tells."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def release_memory() -> None:
    """Give free heap pages back to the system.

    With the settings above a heap only grows: batches of many shapes leave holes between each other's blocks.
    Called now and then it bounds that growth; called every step it would cost what the settings save.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "malloc_trim"):
            libc.malloc_trim(0)


def peak_memory(device: torch.device) -> int:
    """Bytes: the most this process has held (resident memory on a CPU, allocated memory on a GPU)."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _cpu_multiplies_bf16() -> bool:
    """True with AMX or AVX-512 BF16; without them bf16 products are emulated and slower than fp32."""
    features = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(features.get("avx512_bf16") or features.get("amx_bf16") or features.get("amx_tile"))
