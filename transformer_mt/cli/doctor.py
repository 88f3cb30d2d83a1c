"""`doctor`: what is chosen on this machine and why; and whether a run can be used and continued."""

from __future__ import annotations

import argparse
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_mt.cli.model_flags import run_dir
from transformer_mt.cli.run_check import Finding, check_run
from transformer_mt.cli.stream_output import show
from transformer_mt.errors import EXIT_OK, CheckpointError, ConfigError, DataError

if TYPE_CHECKING:
    import torch


HELP = "show what is chosen on this machine and why, and check a run"
_PACKAGES = (
    *("transformer-mt", "torch", "sentencepiece", "sacrebleu", "datasets"),
    *("pyarrow", "numpy", "safetensors", "pydantic"),
)
# The first of these that was found is the exit code.
_CODES = (CheckpointError.exit_code, ConfigError.exit_code, DataError.exit_code)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of this verb."""
    parser.add_argument(
        "run_dir", metavar="RUN", type=run_dir, nargs="?", help="run directory to check as well"
    )
    parser.add_argument("--device", help="cpu, cuda or cuda:N (default: a GPU where there is one)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print one line for each finding. Returns 0, or the code of what is wrong with the run: 5, 2 or 3."""
    from transformer_mt.runtime.device import pick_device

    device = pick_device(args.device)
    findings = [*_versions(), *_process(device), *_machine(Path(args.run_dir or ""))]
    if args.run_dir:
        findings += check_run(Path(args.run_dir))
    show(_as_json(findings) if args.json else _as_table(findings))
    faults = {finding.fault for finding in findings}
    return next((code for code in _CODES if code in faults), EXIT_OK)


def _as_table(findings: list[Finding]) -> str:
    section_width = max(len(finding.section) for finding in findings)
    name_width = max(len(finding.name) for finding in findings)
    lines, last = [], ""
    for section, name, value, fault in findings:
        shown = "" if section == last else section
        lines.append(f"{shown:<{section_width}}  {name:<{name_width}}  {'FAULT: ' if fault else ''}{value}")
        last = section
    return "\n".join(lines)


def _as_json(findings: list[Finding]) -> str:
    report: dict[str, dict[str, str]] = {}
    for section, name, value, _ in findings:
        report.setdefault(section, {})[name] = value
    faults = [{"section": f.section, "name": f.name, "exit_code": f.fault} for f in findings if f.fault]
    return json.dumps({**report, "faults": faults}, ensure_ascii=False, indent=1)


def _versions() -> Iterator[Finding]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    yield Finding(
        "versions", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    for name in _PACKAGES:
        try:
            yield Finding("versions", name, version(name))
        except PackageNotFoundError:
            yield Finding("versions", name, "not installed")


def _process(device: torch.device) -> Iterator[Finding]:
    """What training and translating on this device would use."""
    import torch

    from transformer_mt.model.attention import BLOCKS_FROM, FUSED_FROM
    from transformer_mt.runtime.cores import usable_cores
    from transformer_mt.runtime.device import bf16_features, pick_precision, set_up_process
    from transformer_mt.training.loader import pick_workers

    settings, cores = set_up_process(), usable_cores()
    yield Finding("chosen", "device", f"{device}: {_device_name(device)}")
    for number in range(torch.cuda.device_count()):
        yield Finding("chosen", f"also cuda:{number}", _device_name(torch.device("cuda", number)))
    yield Finding("chosen", "cores", f"{cores.number}: {cores.reason}")
    yield Finding("chosen", "threads", f"{settings.num_threads}: {settings.threads_reason}")
    features = " and ".join(bf16_features())
    why = f"it has {features}" if features else "it has neither AVX-512 BF16 nor AMX"
    if device.type == "cuda":
        why = "compute capability {}.{}".format(*torch.cuda.get_device_capability(device))
    yield Finding("chosen", "precision auto", f"{pick_precision('auto', device)}: {why}")
    kept = "free memory is kept for the next step" if settings.keeps_memory else "free memory is given back"
    yield Finding("chosen", "allocator", kept)
    yield Finding("chosen", "denormals", "flushed to zero" if settings.flushes_denormals else "kept")
    for name, sampling in (("batches", False), ("batches sampled", True)):
        workers, reason = pick_workers("auto", device, sampling=sampling)
        ahead = f"built ahead by {workers} processes" if workers else "built in the training process"
        yield Finding("chosen", name, f"{ahead}: {reason}")
    if device.type == "cuda":
        yield Finding("chosen", "attention", "fused kernel")
    else:
        for (dtype, direction), product in FUSED_FROM.items():
            side = math.isqrt(product)
            yield Finding(
                "chosen",
                f"attention {dtype} {direction}",
                f"fused kernel from {side} x {side} tokens, else plain",
            )
    yield Finding("chosen", "attention window", f"block by block from {BLOCKS_FROM} windows of length")


def _device_name(device: torch.device) -> str:
    import torch

    if device.type == "cuda":
        found = torch.cuda.get_device_properties(device)
        return f"{found.name}, {found.total_memory / 2**30:.0f} GiB"
    features = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return str(features.get("cpu_name", "unknown processor"))


def _machine(folder: Path) -> Iterator[Finding]:
    yield Finding("free", "disk", f"{shutil.disk_usage(folder).free / 2**30:.1f} GiB at {folder}")
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        memory = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        free, total = memory["MemAvailable"] / 2**20, memory["MemTotal"] / 2**20
        yield Finding("free", "memory", f"{free:.1f} of {total:.1f} GiB")
    except (OSError, ValueError, KeyError):
        yield Finding("free", "memory", "this system does not tell")
