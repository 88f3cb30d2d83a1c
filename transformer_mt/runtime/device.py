"""What the process runs on: device, arithmetic, threads, allocator, memory in use.

Chosen once per process from what the machine offers; nothing here knows models or data.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import sys
from dataclasses import dataclass

import torch

from transformer_mt.errors import ConfigError
from transformer_mt.runtime.cores import usable_cores
from transformer_mt.runtime.distributed import ALONE, Ranks
from transformer_mt.runtime.memory import status_bytes

# glibc mallopt parameters (malloc.h).
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_MMAP_MAX = -4
# Bytes from which on a block is mapped by itself where the address space is limited.
_MAPPED_FROM = 2**17
# Kernels that oneDNN, and torch around it, keep: one for each shape of a product, half a megabyte of code and
# buffers each. Both keep 1,024 if nobody says otherwise, and shapes of batches hardly ever come again: after
# twenty updates they were half a GiB. An update has about fifty.
_KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
_KEPT_KERNELS = 128
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def pick_device(name: str | None = None, ranks: Ranks = ALONE) -> torch.device:
    """The named device, or a GPU where there is one, else the CPU. Of several processes each has its own GPU.

    Raises:
        ConfigError: no such device here.
    """
    if ranks.world > 1:
        return _own_device(name, ranks.local_rank)
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


def _own_device(name: str | None, local_rank: int) -> torch.device:
    """That of one of several processes on this machine."""
    if name == "cpu" or (name is None and not torch.cuda.is_available()):
        return torch.device("cpu")
    if name not in (None, "cuda"):
        raise ConfigError(f"--device {name}: each of several processes takes its own; use cpu or cuda")
    if local_rank >= torch.cuda.device_count():
        raise ConfigError(
            f"this machine has {torch.cuda.device_count()} GPUs, but torchrun started process "
            f"{local_rank + 1} on it; lower --nproc-per-node, or use --device cpu"
        )
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def pick_precision(name: str, device: torch.device) -> str:
    """fp32, bf16, fp16 or int8; `auto` takes bf16 where the processor multiplies it natively, else fp32 (fp16
    on GPUs without bf16).

    Raises:
        ConfigError: int8 where it is not native.
    """
    if name == "int8" and device.type != "cpu":
        raise ConfigError(f"precision int8: is for CPUs, not for {device.type}; use bf16 or auto")
    if name == "int8" and not int8_features():
        raise ConfigError("precision int8: this processor has neither AVX-512 VNNI nor AMX; use fp32 or auto")
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    return "bf16" if bf16_features() else "fp32"


def autocast_dtype(precision: str) -> torch.dtype:
    """The dtype that matrix products run in."""
    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "int8": torch.int8}
    return dtypes[precision]


@dataclass(frozen=True)
class ProcessSettings:
    """What `set_up_process` chose."""

    num_threads: int
    """Threads of one operation on the CPU."""
    threads_reason: str
    keeps_memory: bool
    """Whether the allocator keeps freed blocks."""
    flushes_denormals: bool


def set_up_process() -> ProcessSettings:
    """Settings that make training on a CPU faster; call before the first tensor.

    torch takes a thread for each core that it sees, but a container may be allowed fewer: threads that wait
    for their share of time keep all others waiting. glibc returns large blocks to the system after every
    step and pays page faults to get them back: keep them; but not where the address space is limited (ulimit
    -v), for of that the holes between kept blocks take as much again. Denormals appear in optimizer moments
    and cost hundreds of cycles each: flush them to zero (threads started later inherit it).
    """
    for name in _KERNEL_CACHES:
        os.environ.setdefault(name, str(_KEPT_KERNELS))  # read when the first product is made
    reason = _limit_threads()
    keeps_memory = False
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt") and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
            libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM)  # said by us it does not grow
        elif hasattr(libc, "mallopt"):
            # 1 is success; allocators that only bear the name (musl has none) say 0.
            keeps_memory = bool(libc.mallopt(_M_MMAP_MAX, 0) and libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))
    return ProcessSettings(torch.get_num_threads(), reason, keeps_memory, torch.set_flush_denormal(True))


def _limit_threads() -> str:
    """Let torch use no more threads than cores; the user's own word counts more. Returns the reason."""
    # torchrun says 1 where its user says nothing, however many cores there are for each process.
    torchrun = "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("OMP_NUM_THREADS") == "1"
    for name in () if torchrun else _THREAD_VARIABLES:
        if os.environ.get(name):
            return f"{name}={os.environ[name]}"
    cores = usable_cores()
    if torchrun or cores.number < torch.get_num_threads():
        torch.set_num_threads(cores.number)
        return cores.reason
    return "as torch chooses by itself"


def compiler_fault(device: torch.device) -> str | None:
    """Why `torch.compile` cannot work here, as without a C++ compiler or Triton; None if it can."""
    try:
        torch.compile(torch.neg)(torch.zeros(8, device=device))
    except Exception as error:
        return " ".join(str(error).partition("\n")[0].split())
    return None


# Of oneDNN, which makes the products of bf16 and fp16: all that it says where it is refused memory.
_ONEDNN_OUT_OF_MEMORY = ("could not create a primitive", "could not execute a primitive")


def is_out_of_memory(error: RuntimeError | MemoryError) -> bool:
    """Whether a device had too little memory; of torch on a CPU only the text of the error tells."""
    text = str(error)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator" in text:
        return True
    return text.partition("\n")[0] in _ONEDNN_OUT_OF_MEMORY


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
    if sys.platform == "linux" and (peak := status_bytes("VmHWM:")):
        return peak
    unit = 1 if sys.platform == "darwin" else 1024
    # On Linux this is no less than what the process held that started this one.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak_memory(device: torch.device) -> bool:
    """Let `peak_memory` forget what was held earlier and is free now. Returns whether that can be done."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        return True
    release_memory()
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as stream:
            stream.write("5")  # what this number means is told by `man proc`
    except OSError:
        return False
    return True


def bf16_features() -> list[str]:
    """What of this processor multiplies bf16; with none of it such products are slower than fp32."""
    return _features("avx512_bf16", "amx_bf16", "amx_tile")


def int8_features() -> list[str]:
    """What of this processor multiplies 8-bit integers; without it torch does so number by number."""
    return _features("avx512_vnni", "amx_int8")


def _features(*wanted: str) -> list[str]:
    found = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return [name for name in wanted if found.get(name)]


def machine_name() -> str:
    """Kind of machine, and the GPU, or the CPU where the system tells it: times of two are not comparable."""
    if torch.cuda.is_available():
        processor = torch.cuda.get_device_name()
    else:
        features = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
        processor = str(features.get("cpu_name", platform.processor()))
    return f"{platform.machine()} {processor}".strip()
