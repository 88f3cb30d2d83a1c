"""What a figure was measured on: processor, memory, versions."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from transformer_mt.errors import ConfigError

_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")


def machine_facts(device: str, threads: int | None) -> dict[str, Any]:
    """Facts that decide how fast programs run here; `threads` None is one a core."""
    name, flags = _processor(_read("/proc/cpuinfo"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    facts = {
        "processor": name or platform.processor() or platform.machine(),
        "cores": cores,
        "flags": flags,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": threads or cores,
        "device": "cpu",
    }
    if device.startswith("cuda"):
        import torch

        facts["device"] = torch.cuda.get_device_name(device)
    return facts


def same_machine(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether figures of both, threads and all, may be set against each other."""
    facts = ("processor", "cores", "flags", "threads", "device")
    return all(one.get(fact) == other.get(fact) for fact in facts)


def one_line(facts: dict[str, Any]) -> str:
    """The facts for the head of a table."""
    flags = " ".join(facts["flags"]) or "no vector flags known"
    device = "" if facts["device"] == "cpu" else f", {facts['device']}"
    return f"{facts['processor']}, {facts['cores']} cores ({flags}), {facts['threads']} threads{device}"


def installed(python: str, environment: dict[str, str]) -> dict[str, str]:
    """Package -> version in another Python, of those that the peers need; missing ones are left out.

    Raises:
        ConfigError: it is not a Python that can run the peers.
    """
    names = ("torch", "transformers", "accelerate", "ctranslate2", "sentencepiece", "numpy")
    program = (
        "import sys\nfrom importlib import metadata\nassert sys.version_info >= (3, 11)\n"
        f"for name in {names!r}:\n"
        "    try: print(name, metadata.version(name))\n"
        "    except metadata.PackageNotFoundError: pass\n"
    )
    try:
        done = subprocess.run(
            [python, "-P", "-c", program], env=environment, capture_output=True, encoding="utf-8", check=True
        )
    except (OSError, subprocess.CalledProcessError):
        raise ConfigError(
            f"--peer-python {python}: is not a Python of version 3.11 or newer; "
            "name the one that the peers are installed for"
        ) from None
    return dict(line.split() for line in done.stdout.splitlines())


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).is_file() else ""


def _processor(cpuinfo: str) -> tuple[str, list[str]]:
    """(model name, which of `_FLAGS` it has) of Linux's description of the first core."""
    facts: dict[str, str] = {}
    for line in cpuinfo.partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        facts[key.strip()] = value.strip()
    flags = facts.get("flags", "").split()
    return facts.get("model name", ""), [flag for flag in _FLAGS if flag in flags]
