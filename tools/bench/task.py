"""The task that the package and every peer are given: sizes, rates, ids, and how a child is told and answers.

Imports nothing but the standard library: it also runs in the Python of the peers.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
DROPOUT = 0.1
LABEL_SMOOTHING = 0.1
MAX_TOKENS = 4096
"""Rows times padded length of the longer side of a training batch."""
FORCED_TOKENS = 15
"""Target tokens of every translation: with the length forced, speed needs no trained weights."""
FORCING_FLAGS = (f"--min-length={FORCED_TOKENS}", "--max-len-a=0", f"--max-len-b={FORCED_TOKENS}")
"""What makes our `translate` do so."""
BATCH_SENTENCES = 64
LENGTHS = (16, 64, 256, 512)


@dataclass(frozen=True)
class Size:
    """A model; as many decoder layers as encoder layers. An lstm has no heads and no feed-forward blocks."""

    preset: str
    d_model: int
    num_heads: int
    d_ff: int
    num_layers: int
    architecture: str = "transformer"


SIZES = {
    "S": Size("small", 256, 4, 1024, 3),
    "B": Size("base", 512, 8, 2048, 6),
    "lstm": Size("small", 320, 0, 0, 3, "lstm"),
}


@dataclass(frozen=True)
class Measurement:
    """One thing that can be measured: who does what, how large, in which arithmetic."""

    system: str
    work: str
    size: str = ""
    precision: str = ""
    beam: int = 0

    @property
    def key(self) -> str:
        """A name for files: plain/train/S/bf16."""
        parts = (self.system, self.work, self.size, self.precision, f"beam{self.beam}" if self.beam else "")
        return "/".join(part for part in parts if part)


@dataclass(frozen=True)
class Effort:
    """How long a child measures. Windows are seconds of training, or passes over the sentences."""

    warm_seconds: float
    window_seconds: float
    windows: int
    sentences: dict[str, int]
    memory_updates: int
    prepared_pairs: int


@dataclass(frozen=True)
class Job:
    """What a child is told."""

    measurement: Measurement
    effort: Effort
    folder: str
    device: str
    threads: int

    def to_json(self) -> str:
        """One command line argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_command_line(cls) -> Job:
        """The job that `measure.py` gave this process."""
        told = json.loads(sys.argv[1])
        told["measurement"] = Measurement(**told["measurement"])
        told["effort"] = Effort(**told["effort"])
        return cls(**told)

    def path(self, name: str) -> Path:
        """A file of the workspace."""
        return Path(self.folder) / name


def answer(values: list[float], *packages: str, **detail: Any) -> None:
    """End a child: a value for each window, packages whose versions matter, what else is worth keeping."""
    versions = {package: metadata.version(package) for package in packages}
    print(json.dumps({"values": values, "versions": versions, "detail": detail}))
