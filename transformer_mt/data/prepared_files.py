"""The files of prepared data: Arrow tables, lengths and the manifest that vouches for all of them.

Arrow IPC files without compression, so that a memory map gives arrays without a copy. Knows nothing of
where the ids came from.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transformer_mt.errors import DataError

MANIFEST = "manifest.json"
# Larger files are checked by size alone when they are opened; hashing them would cost seconds each time.
_HASHED_BYTES = 16 << 20

Ids = npt.NDArray[np.int32]

EXAMPLES = pa.schema(
    [
        ("src", pa.list_(pa.int32())),
        ("tgt", pa.list_(pa.int32())),
        ("src_text", pa.string()),
        ("tgt_text", pa.string()),
    ]
)
"""Ids of both sides, ending in eos, and their text."""


def flat_ids(examples: pa.RecordBatch, side: str) -> tuple[Ids, Ids]:
    """Ids of one side (`src` or `tgt`), one example after the other, and the length of each."""
    column = examples.column(side)
    return column.flatten().to_numpy(), np.diff(column.offsets.to_numpy())


class SplitWriter:
    """Writes one split, batch by batch: `<name>.arrow` and the lengths of both sides."""

    def __init__(self, folder: Path, name: str, *, with_text: bool) -> None:
        self._schema = EXAMPLES if with_text else pa.schema([EXAMPLES.field("src"), EXAMPLES.field("tgt")])
        self._folder, self._name = folder, name
        self._lengths: dict[str, list[Ids]] = {"src": [], "tgt": []}
        self._writer = pa.ipc.new_file(str(folder / f"{name}.arrow"), self._schema)

    def write(self, examples: pa.RecordBatch) -> None:
        """Append examples of the schema EXAMPLES; text that is not kept is left out."""
        if examples.num_rows == 0:
            return
        self._writer.write_batch(examples.select(self._schema.names))
        for side, lengths in self._lengths.items():
            lengths.append(flat_ids(examples, side)[1])

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        if kind is None:
            for side, lengths in self._lengths.items():
                whole = np.concatenate([np.zeros(0, dtype=np.int32), *lengths])
                np.save(self._folder / f"{self._name}.{side}_lengths.npy", whole)


def write_manifest(folder: Path, fingerprint: str) -> None:
    """Put every file on disk and write down its size and sha256; the manifest comes last."""
    files = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        files[path.name] = {"size": path.stat().st_size, "sha256": digest}
    with (folder / MANIFEST).open("w", encoding="utf-8", newline="\n") as stream:
        json.dump({"fingerprint": fingerprint, "files": files}, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder of prepared data.

    Raises:
        DataError: there is none, or it cannot be read.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return {"fingerprint": str(manifest["fingerprint"]), "files": dict(manifest["files"])}
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(
            f"{folder}: is not a whole folder of prepared data; remove it or name another data.prepared_dir"
        ) from None


def damaged_file(folder: Path, manifest: dict[str, Any]) -> str | None:
    """The name of a file that is missing, or differs from the manifest, if there is one."""
    for name, entry in manifest["files"].items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != entry["size"]:
            return str(name)
        if entry["size"] <= _HASHED_BYTES:
            with path.open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != entry["sha256"]:
                    return str(name)
    return None
