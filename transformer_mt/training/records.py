"""`metrics.jsonl`: every record of a run once, whatever interrupts it.

Records past the step that a run continues from are cut off before they are written again, and so is the word
that it had diverged. What a full disk does not take waits, whole, for the next record. Knows nothing of what
the records say but kind and step.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer_mt.json_file import json_text, write_text

_log = logging.getLogger("transformer_mt")


class Records:
    """The file, open for more."""

    def __init__(self, path: Path, last_step: int, *, validated: bool = True) -> None:
        """Continue after a step.

        Args:
            path: of the file, which may be missing.
            last_step: later records are removed.
            validated: False where the validation of that step is made again.
        """
        self._path = path
        _cut(path, last_step, validated=validated)
        self._stream = open(path, "ab", buffering=0)  # noqa: SIM115 (closed in close)
        self._waiting = b""

    def add(self, record: Mapping[str, Any]) -> None:
        """Write a record, after those that wait; warn where the disk does not take them."""
        known = bool(self._waiting)
        self._waiting += (json_text(record) + "\n").encode("utf-8")
        try:
            self._write()
        except OSError as error:
            if not known:
                reason = error.strerror or error
                _log.warning("%s: records wait: %s; free some space", self._path, reason)

    def sync(self) -> None:
        """Bring every record to the disk.

        Raises:
            OSError: it does not take them.
        """
        self._write()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """No more records come."""
        self._stream.close()

    def _write(self) -> None:
        """All that waits, or nothing: what was written of a line is taken back."""
        end = os.fstat(self._stream.fileno()).st_size
        left = memoryview(self._waiting)
        try:
            while left:
                left = left[self._stream.write(left) :]
        except OSError:
            self._stream.truncate(end)
            raise
        self._waiting = b""


def _cut(path: Path, last_step: int, *, validated: bool) -> None:
    """Drop records that are made again, and a last line that a kill left half-written."""
    if not path.exists():
        return
    kept = []
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
            again = not validated and record["kind"] == "valid" and record["step"] == last_step
            if record["step"] <= last_step and not again and record["kind"] != "diverged":
                kept.append(line.decode("utf-8") + "\n")
        except (ValueError, KeyError, TypeError):
            continue
    write_text(path, "".join(kept))
