"""Figures of peers from earlier runs, for where a peer is not installed. They stand in saved_figures.json."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from tools.bench.machine import same_machine
from tools.bench.measure import Measured
from tools.bench.task import Measurement

PATH = Path(__file__).with_name("saved_figures.json")


@dataclass(frozen=True)
class Figure:
    """The median of an earlier run, where it was, and whether that was this machine."""

    value: float
    source: str
    here: bool


def look_up(measurement: Measurement, machine: dict[str, Any], path: Path = PATH) -> Figure | None:
    """The saved figure of a peer, of this machine if there is one; never one of another kind of device."""
    best: Figure | None = None
    for entry in json.loads(path.read_text(encoding="utf-8")):
        figure = entry["figures"].get(measurement.key)
        # A figure of a processor says nothing about a graphics card.
        if figure is None or (entry["machine"]["device"] == "cpu") != (machine["device"] == "cpu"):
            continue
        here = same_machine(entry["machine"], machine)
        if best is None or (here and not best.here):
            where = entry["machine"]
            size = f"{where['cores']} cores, {where['threads']} threads"
            source = f"{where['processor']}, {size}, {entry['when']}"
            best = Figure(figure["value"], source, here)
    return best


def save(results: Mapping[Measurement, Measured], machine: dict[str, Any], path: Path = PATH) -> None:
    """Put what the peers did into the entry of this machine."""
    entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    entry = next((entry for entry in entries if same_machine(entry["machine"], machine)), None)
    if entry is None:
        entry = {"figures": {}, "versions": {}}
        entries.insert(0, entry)
    entry["machine"], entry["when"] = machine, date.today().isoformat()
    for measurement, measured in results.items():
        if measurement.system == "ours" or not measured.values:
            continue
        values = measured.values
        entry["figures"][measurement.key] = {
            "value": statistics.median(values),
            "low": min(values),
            "high": max(values),
        }
        entry["versions"] |= measured.versions
    path.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
