"""Commands that run on a corpus -> their seconds, and the memory that is their own.

Own memory is what the system calls anonymous: pages of mapped files are not counted, for they are given back
when something else needs the room.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from transformer_mt.errors import DataError

_LOOK_SECONDS = 0.02
_PASS = Path(__file__).with_name("loader_pass.py")


@dataclass(frozen=True)
class Cost:
    """What one size of corpus costs; memory in bytes at the peak, all of the command's own."""

    prepare_seconds: float
    prepare_bytes: int
    order_seconds: float
    order_bytes: int
    pass_seconds: float
    start_seconds: float
    start_bytes: int
    updates_per_second: float | None

    HEAD: ClassVar[str] = "prepare s  prepare MiB  order s  order MiB  pass s  start s  start MiB  updates/s"

    def __str__(self) -> str:
        rate = "" if self.updates_per_second is None else f"{self.updates_per_second:.2f}"
        return (
            f"{self.prepare_seconds:>9.0f}  {self.prepare_bytes / 2**20:>11.0f}  {self.order_seconds:>7.1f}  "
            f"{self.order_bytes / 2**20:>9.0f}  {self.pass_seconds:>6.0f}  {self.start_seconds:>7.1f}  "
            f"{self.start_bytes / 2**20:>9.0f}  {rate:>9}"
        )


def learn(recipe: Path, folder: Path) -> None:
    """Put the tokenizer that is learned from the corpus of a recipe into a new folder."""
    _Command("prepare", str(recipe)).run()
    folder.mkdir()
    for path in recipe.parent.glob("prepared/*/tokenizer*.model"):
        shutil.copy(path, folder)


def measured(recipe: Path) -> Cost:
    """Prepare, go through all batches once, and train."""
    prepare = _Command("prepare", str(recipe))
    prepare.run()
    loader = _Command(str(recipe), script=_PASS)
    told = json.loads("".join(loader.lines()))
    time.sleep(2.0)  # what was just written is read again each time
    # Remembers the digests of the text, as an earlier start of a training would have.
    _Command("prepare", str(recipe)).run()
    start, first, steps, last = _Command("train", str(recipe)), None, 0, 0.0
    for line in start.lines():
        if line.startswith("step ") and " loss " in line:
            steps, last = steps + 1, start.seconds
            first = first or last
    assert first is not None, "an update is told"
    return Cost(
        prepare.seconds,
        prepare.peak,
        told["order_seconds"],
        told["order_bytes"],
        told["pass_seconds"],
        first,
        start.peak,
        (steps - 1) / (last - first) if steps > 1 else None,
    )


class _Command:
    """A command of the package, or a script, that is watched while it runs."""

    def __init__(self, *words: str, script: Path | None = None) -> None:
        what = ["-m", "transformer_mt"] if script is None else [str(script)]
        self._words = [sys.executable, *what, *words]
        self.peak = 0
        """The most anonymous memory it has held, in bytes."""
        self.seconds = 0.0
        """Since it began."""

    def run(self) -> None:
        """Run it, whatever it says.

        Raises:
            DataError: it failed.
        """
        for _ in self.lines():
            pass

    def lines(self) -> Iterator[str]:
        """Run it, and give what it says as it says it.

        Raises:
            DataError: it failed.
        """
        started, said = time.perf_counter(), []
        with subprocess.Popen(
            self._words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
        ) as process:
            assert process.stdout is not None
            os.set_blocking(process.stdout.fileno(), False)
            rest = b""
            while True:
                done = process.poll() is not None
                self.peak = max(self.peak, _anonymous(process.pid))
                self.seconds = time.perf_counter() - started
                rest += process.stdout.read() or b""
                *whole, rest = rest.split(b"\n")
                said += [line.decode() for line in whole]
                yield from said[-len(whole) :] if whole else ()
                if done:
                    break
                time.sleep(_LOOK_SECONDS)
        if process.returncode:
            raise DataError(
                f"{' '.join(self._words)}: ended with {process.returncode}: {' '.join(said[-3:])}"
            )


def _anonymous(process: int) -> int:
    try:
        with open(f"/proc/{process}/status", encoding="utf-8") as stream:
            fields = dict(line.split(":", 1) for line in stream)
    except OSError:
        return 0
    return sum(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem") if name in fields)
