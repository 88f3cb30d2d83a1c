"""The output file of a long translation: whole or not there, and continued after any interruption.

Until all is done the lines stand in `OUT.partial`. The journal beside it, `OUT.partial.json`, never claims
more than is on disk; it becomes `OUT.done.json` where the output may be asked for again. Knows neither models
nor formats.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from transformer_mt.cli.output_journal import (
    Journal,
    names_beside,
    other_output,
    other_source,
    read_journal,
    write_journal,
)
from transformer_mt.cli.stream_output import write_all
from transformer_mt.errors import ConfigError, DataError, UserError

# At most this much work is done again when the process is killed or the machine fails.
_SECONDS_BETWEEN_ENTRIES = 1.0
_BLOCK_BYTES = 1 << 20


class _Done(NamedTuple):
    """What stands in the file: replaced as a whole, so that a signal cannot come between its parts."""

    lines: int
    bytes: int
    source: Any  # hash of the source lines
    output: Any  # hash of what was made of them
    unfit: list[int]


class PartialOutput:
    """Takes lines for a file that appears when the context ends well; otherwise what is done is kept."""

    def __init__(self, path: str | Path, settings: Mapping[str, Any], *, resume: bool) -> None:
        """Begin, or find what an earlier process has left.

        Args:
            path: the file that shall appear.
            settings: all that the lines depend on besides their source; what JSON can hold.
            resume: go on with what is there; and let the journal stay, so that what is finished can be told.

        Raises:
            ConfigError: there is an unfinished output, but `resume` is false or its settings are others.
            DataError: an unfinished output that cannot be used, or that another process is writing.
        """
        self._target = os.path.realpath(path)
        self.partial, self._journal, self._record = names_beside(path)
        self._settings, self._resume = dict(settings), resume
        self._done = _Done(0, 0, hashlib.sha256(), hashlib.sha256(), [])
        self._entered, self._entered_lines = time.monotonic(), 0
        self.found = 0
        """Source lines that an earlier process has done."""
        self._unseen = 0  # those of them that the source has not shown yet
        self._expected_source = ""
        exists = self.partial.exists()
        self._stream = io.FileIO(self.partial, "r+" if exists else "x")
        try:
            self._lock()
            if exists:
                self._take_up()
            else:
                self._enter()
        except BaseException:
            self._stream.close()
            if not exists:
                self.partial.unlink()
            raise

    def _lock(self) -> None:
        try:
            # It is this process's alone: forked workers, which may live a little longer, do not hold it.
            fcntl.lockf(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(
                f"{self.partial}: another process is writing it; wait for it, or name another --output"
            ) from None

    def _take_up(self) -> None:
        if not self._resume:
            raise ConfigError(
                f"{self.partial}: is an unfinished output; go on with --resume, or delete it to begin anew"
            )
        if not self._journal.exists() and not os.path.getsize(self.partial):
            return self._enter()
        journal = read_journal(self._journal, self.partial, self._settings)
        self._read_back(journal)
        self.found = self._unseen = self._entered_lines = journal.lines
        self._expected_source = journal.source_sha256
        return None

    def _read_back(self, journal: Journal) -> None:
        output, left = hashlib.sha256(), journal.bytes
        while left > 0 and (block := self._stream.read(min(left, _BLOCK_BYTES))):
            output.update(block)
            left -= len(block)
        if left or output.hexdigest() != journal.output_sha256:
            raise other_output(self.partial, self._journal)
        # What stands behind was being written when the process ended.
        self._stream.truncate(journal.bytes)
        self._done = _Done(journal.lines, journal.bytes, hashlib.sha256(), output, journal.unfit)

    @property
    def unfit(self) -> list[int]:
        """Numbers of the lines without a translation, for want of memory; those of earlier processes too."""
        return self._done.unfit

    def skip_done(self, source: Sequence[bytes]) -> int:
        """How many of the next source lines are done already.

        Args:
            source: what each line was read from.

        Raises:
            DataError: other lines than these are done.
        """
        count = min(len(source), self._unseen)
        for line in source[:count]:
            self._done.source.update(line + b"\n")
        if count == self._unseen and count and self._done.source.hexdigest() != self._expected_source:
            raise other_source(self.partial, self.found)
        self._unseen -= count
        return count

    def write(self, source: Sequence[bytes], data: bytes, unfit: Sequence[int] = ()) -> None:
        """Add what the next source lines have become.

        Args:
            source: what each line was read from.
            data: whole lines.
            unfit: numbers of those that did not fit into the memory.

        Raises:
            DataError: they cannot be written, for want of space for example.
        """
        done = self._done
        read, written = done.source.copy(), done.output.copy()
        for line in source:
            read.update(line + b"\n")
        written.update(data)
        try:
            write_all(self._stream, data)
            lines, size = done.lines + len(source), done.bytes + len(data)
            self._done = _Done(lines, size, read, written, [*done.unfit, *unfit])
            if time.monotonic() - self._entered >= _SECONDS_BETWEEN_ENTRIES:
                self._enter()
        except OSError as error:
            raise DataError(
                f"{self.partial}: cannot be written: {error.strerror or error}; free some space"
            ) from None

    def __enter__(self) -> PartialOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stream:
            if error is None:
                return self._finish()
            kept = self._keep()
        if kept and isinstance(error, UserError | KeyboardInterrupt):
            raise type(error)("; ".join([*map(str, error.args), kept])) from None
        return None

    def _finish(self) -> None:
        if self._unseen:
            raise other_source(self.partial, self.found)
        self._enter()
        self._record.unlink(missing_ok=True)  # it tells of the file that goes now
        os.replace(self.partial, self._target)
        if self._resume:
            os.replace(self._journal, self._record)
        else:
            self._journal.unlink()

    def _keep(self) -> str | None:
        """Save what is done; in words, if there is anything."""
        if self._unseen:
            return None
        with contextlib.suppress(OSError):
            self._stream.truncate(self._done.bytes)
            self._enter()
        if not self._entered_lines:
            self.partial.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)
            return None
        return (
            f"the first {self._entered_lines} lines are kept in {self.partial}, and the same command goes on "
            "with --resume"
        )

    def _enter(self) -> None:
        """Write the journal; first comes what it tells of."""
        os.fsync(self._stream.fileno())
        done = self._done
        hashes = done.source.hexdigest(), done.output.hexdigest()
        journal = Journal(self._settings, done.lines, done.bytes, *hashes, done.unfit)
        write_journal(self._journal, journal)
        self._entered, self._entered_lines = time.monotonic(), done.lines
