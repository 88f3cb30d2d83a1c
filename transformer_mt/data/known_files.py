"""Digests of large files that were read before, so that a training on much text starts at once.

A file that has the size, times and number on its disk that it had is taken to be the same. Knows nothing of
what is in the files.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import read_json, write_json
from transformer_mt.text.corpus import file_digest

# Smaller files are read in no time.
_LARGE = 64 << 20
# What is changed again as soon as this may keep its times, for clocks of disks are coarse.
_SETTLED_SECONDS = 2.0


class KnownFiles:
    """`digest(path)` is the sha256 of a file; what it has read is remembered in a file of its own."""

    def __init__(self, record: Path) -> None:
        """record: where digests are remembered; one that is not there or cannot be read is an empty one."""
        self._record = record
        try:
            self._known: dict[str, Any] = read_json(record) or {}
        except (CheckpointError, OSError):
            self._known = {}

    def digest(self, path: Path) -> bytes:
        """sha256 of the raw bytes of a file.

        Raises:
            OSError: it cannot be read.
        """
        before = path.stat()
        if before.st_size < _LARGE:
            return file_digest(path)
        state = [before.st_size, before.st_mtime_ns, before.st_ctime_ns, before.st_ino, before.st_dev]
        name = str(path.resolve())
        known = self._known.get(name)
        if isinstance(known, list) and known[:-1] == state:
            return bytes.fromhex(known[-1])
        digest = file_digest(path)
        if time.time() - max(before.st_mtime, before.st_ctime) > _SETTLED_SECONDS:
            self._known[name] = [*state, digest.hex()]
            self._remember()
        return digest

    def _remember(self) -> None:
        try:
            self._record.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._record, self._known)
        except OSError:
            pass  # it is only slower without
