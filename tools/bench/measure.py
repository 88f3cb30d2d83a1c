"""Runs the measurements, each in a process of its own, ours and its peers by turns.

Knows neither targets nor ratios.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tools.bench.rows import Row
from tools.bench.task import Effort, Job, Measurement
from tools.bench.workspace import ROOT

NEEDS = {
    "plain": ("torch", "numpy"),
    "transformers": ("torch", "numpy", "transformers", "accelerate"),
    "ctranslate2": ("ctranslate2", "numpy"),
}
"""Peer -> the packages it needs in its Python. What is not named here runs in our own."""

_PROGRAMS = {
    ("ours", "train"): "ours_train",
    ("ours", "memory"): "ours_train",
    ("ours", "lengths"): "ours_train",
    ("ours", "decode"): "ours_decode",
    ("ours", "start"): "ours_commands",
    ("ours", "prepare"): "ours_commands",
    ("plain", "train"): "peer_plain",
    ("transformers", "train"): "peer_transformers",
    ("transformers", "memory"): "peer_transformers",
    ("transformers", "decode"): "peer_transformers",
    ("ctranslate2", "decode"): "peer_ctranslate2",
    ("sentencepiece", "prepare"): "peer_sentencepiece",
}
_MOST_SECONDS = 1800

RunChild = Callable[[Measurement], dict[str, Any]]


class MeasurementFailed(Exception):
    """A child ended without an answer; the message is the last thing it said."""


@dataclass
class Measured:
    """What became of one measurement: a value for each time it ran, or why there is none."""

    values: list[float] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    detail: list[dict[str, Any]] = field(default_factory=list)
    failure: str = ""


@dataclass(frozen=True)
class Setting:
    """What is common to all children of a call."""

    folder: str
    device: str
    threads: int
    effort: Effort
    peer_python: str

    def environment(self) -> dict[str, str]:
        """The same for ours and for peers: one number of threads, no network."""
        threads = str(self.threads)
        common = {
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "PYTHONPATH": str(ROOT),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        return {**os.environ, **common}

    def run(self, measurement: Measurement) -> dict[str, Any]:
        """Run one child to its end and return its answer.

        Raises:
            MeasurementFailed: it failed, or took too long.
        """
        job = Job(measurement, self.effort, self.folder, self.device, self.threads)
        python = self.peer_python if measurement.system in NEEDS else sys.executable
        program = f"tools.bench.{_PROGRAMS[measurement.system, measurement.work]}"
        try:
            done = subprocess.run(
                [python, "-P", "-m", program, job.to_json()],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                timeout=_MOST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise MeasurementFailed(f"took more than {_MOST_SECONDS} s") from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["said nothing"]
            raise MeasurementFailed(f"exit code {done.returncode}: {said[-1]}")
        try:
            answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            raise MeasurementFailed("gave no answer") from None
        return answer


def missing_packages(measurement: Measurement, versions: dict[str, str]) -> list[str]:
    """What the Python of the peers lacks for a measurement."""
    return [name for name in NEEDS.get(measurement.system, ()) if name not in versions]


def contests(rows: Iterable[Row]) -> list[list[Measurement]]:
    """What runs by turns: each measurement of ours once, with the peers of all rows that it serves."""
    found: dict[Measurement, list[Measurement]] = {}
    for row in rows:
        peers = found.setdefault(row.ours, [])
        peers += [peer for peer in row.peers if peer not in peers]
    return [[ours, *peers] for ours, peers in found.items()]


def run_by_turns(
    measurements: list[Measurement], pairs: int, run: RunChild, say: Callable[[str], None]
) -> dict[Measurement, Measured]:
    """A B A B …: every measurement `pairs` times. One that fails is not tried again.

    Args:
        run: what runs a child; see `Setting.run`.
        say: told about every value as it comes.
    """
    results = {measurement: Measured() for measurement in measurements}
    for number in range(1, pairs + 1):
        for measurement, result in results.items():
            if result.failure:
                continue
            try:
                answer = run(measurement)
            except MeasurementFailed as error:
                result.failure = str(error)
                say(f"{measurement.key} {number}/{pairs}: failed: {error}")
                continue
            result.values.append(statistics.median(answer["values"]))
            result.versions = answer["versions"]
            result.detail.append({"windows": answer["values"], **answer["detail"]})
            say(f"{measurement.key} {number}/{pairs}: {result.values[-1]:,.2f}")
    return results
