"""The common ids as files: training batches and test sentences, the same for every system.

Written by `workspace.py`, read by the peers; needs numpy alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]
_COLUMNS = ("src", "tgt", "batches", "test")


def write(folder: Path, columns: dict[str, Sequence[Any]], pieces: Sequence[str]) -> None:
    """Write rows of ids under the names of `_COLUMNS`, and the pieces of the vocabulary."""
    arrays: dict[str, Any] = {}
    for name in _COLUMNS:
        rows = columns[name]
        arrays[name] = np.concatenate([np.asarray(row, dtype=np.int32) for row in rows])
        arrays[f"{name}.ends"] = np.cumsum([len(row) for row in rows])
    np.savez(folder / "ids.npz", **arrays)
    (folder / "pieces.json").write_text(json.dumps(list(pieces)), encoding="utf-8")


class Exported:
    """Training pairs, the batches of the first epoch in order, and test sentences; all ids end in eos."""

    def __init__(self, folder: Path) -> None:
        with np.load(folder / "ids.npz") as arrays:
            columns = {name: np.split(arrays[name], arrays[f"{name}.ends"][:-1]) for name in _COLUMNS}
        self.src: list[Ids] = columns["src"]
        self.tgt: list[Ids] = columns["tgt"]
        self.batches: list[Ids] = columns["batches"]
        self.test: list[Ids] = columns["test"]
        self.pieces: list[str] = json.loads((folder / "pieces.json").read_text(encoding="utf-8"))

    def pairs(self, batch: Ids) -> tuple[list[Ids], list[Ids]]:
        """Source and target rows of a batch."""
        return [self.src[i] for i in batch], [self.tgt[i] for i in batch]

    def stream(self, first: Sequence[int] = ()) -> Iterator[tuple[list[Ids], list[Ids]]]:
        """The batches numbered `first`, then all of them in order, again and again."""
        for number in first:
            yield self.pairs(self.batches[number])
        while True:
            for batch in self.batches:
                yield self.pairs(batch)

    def largest(self) -> int:
        """The number of the batch with most places on both sides, padding counted."""
        return max(range(len(self.batches)), key=lambda number: self._places(self.batches[number]))

    def _places(self, batch: Ids) -> int:
        src, tgt = self.pairs(batch)
        return len(batch) * (max(map(len, src)) + max(map(len, tgt)))
