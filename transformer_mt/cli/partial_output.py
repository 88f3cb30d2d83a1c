"""The output file of a long translation: whole or not there, and continued after any interruption.

Until all is done the lines stand in `OUT.partial`. A journal beside it, `OUT.partial.json`, says how many
source lines it covers, which ones (sha256), and by which settings they were made; it never claims more than
is on disk. Knows neither models nor formats.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from transformer_mt.cli.stream_output import write_all
from transformer_mt.errors import ConfigError, DataError, UserError
from transformer_mt.json_file import write_json

FORMAT = 1
# At most this much work is done again when the process is killed or the machine fails.
_SECONDS_BETWEEN_ENTRIES = 1.0
_BLOCK_BYTES = 1 << 20


class _Done(NamedTuple):
    """What stands in the file: replaced as a whole, so that a signal cannot come between its parts."""

    lines: int
    bytes: int
    source: Any  # hash of the source lines
    output: Any  # hash of what was made of them


def partial_names(path: str | Path) -> tuple[Path, Path]:
    """Where the unfinished output and its journal stand; of a link, beside what it leads to."""
    real = os.path.realpath(path)
    return Path(f"{real}.partial"), Path(f"{real}.partial.json")


class PartialOutput:
    """Takes lines for a file that appears when the context ends well; otherwise what is done is kept."""

    def __init__(self, path: str | Path, settings: Mapping[str, Any], *, resume: bool) -> None:
        """Begin, or find what an earlier process has left.

        Args:
            path: the file that shall appear.
            settings: all that the lines depend on besides their source; what JSON can hold.
            resume: go on with what is there.

        Raises:
            ConfigError: there is an unfinished output, but `resume` is false or its settings are others.
            DataError: an unfinished output that cannot be used, or that another process is writing.
        """
        self._target = os.path.realpath(path)
        self.partial, self._journal = partial_names(path)
        self._settings = json.loads(json.dumps(settings))
        self._done = _Done(0, 0, hashlib.sha256(), hashlib.sha256())
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
                self._take_up(resume)
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

    def _take_up(self, resume: bool) -> None:
        if not resume:
            raise ConfigError(
                f"{self.partial}: is an unfinished output; go on with --resume, or delete it to begin anew"
            )
        if not self._journal.exists() and not os.path.getsize(self.partial):
            return self._enter()
        journal = self._read_journal()
        old, new = journal["settings"], self._settings
        if changed := [name for name in {**old, **new} if old.get(name) != new.get(name)]:
            told = "; ".join(f"{name} was {old.get(name)}, is {new.get(name)}" for name in changed)
            raise ConfigError(
                f"{self.partial}: was made with other settings ({told}); use those, or delete it to begin "
                "anew"
            )
        self._read_back(journal)
        self.found = self._unseen = self._entered_lines = journal["lines"]
        self._expected_source = journal["source_sha256"]
        return None

    def _read_journal(self) -> dict[str, Any]:
        kinds = {"settings": dict, "lines": int, "bytes": int, "source_sha256": str, "output_sha256": str}
        try:
            journal = json.loads(self._journal.read_text(encoding="utf-8"))
            if journal["format"] != FORMAT:
                raise ValueError(f"format {journal['format']}, this version reads {FORMAT}")
            return {name: kind(journal[name]) for name, kind in kinds.items()}
        except FileNotFoundError:
            raise DataError(
                f"{self._journal}: is missing, and nothing else says what {self.partial} is; delete that to "
                "begin anew"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{self._journal}: tells nothing about {self.partial} ({error!r}); delete both to begin anew"
            ) from None

    def _read_back(self, journal: Mapping[str, Any]) -> None:
        output, left = hashlib.sha256(), journal["bytes"]
        while left > 0 and (block := self._stream.read(min(left, _BLOCK_BYTES))):
            output.update(block)
            left -= len(block)
        if left or output.hexdigest() != journal["output_sha256"]:
            raise DataError(
                f"{self.partial}: is not what {self._journal} tells of; delete both to begin anew"
            )
        # What stands behind was being written when the process ended.
        self._stream.truncate(journal["bytes"])
        self._done = _Done(journal["lines"], journal["bytes"], hashlib.sha256(), output)

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
            raise self._other_source()
        self._unseen -= count
        return count

    def write(self, source: Sequence[bytes], data: bytes) -> None:
        """Add what the next source lines have become.

        Args:
            source: what each line was read from.
            data: whole lines.

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
            self._done = _Done(done.lines + len(source), done.bytes + len(data), read, written)
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
            raise self._other_source()
        os.fsync(self._stream.fileno())
        os.replace(self.partial, self._target)
        self._journal.unlink(missing_ok=True)

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
        write_json(
            self._journal,
            {
                "format": FORMAT,
                "settings": self._settings,
                "lines": done.lines,
                "bytes": done.bytes,
                "source_sha256": done.source.hexdigest(),
                "output_sha256": done.output.hexdigest(),
            },
        )
        self._entered, self._entered_lines = time.monotonic(), done.lines

    def _other_source(self) -> DataError:
        return DataError(
            f"{self.partial}: its {self.found} lines were made of another source; give that one, or delete "
            "the file to begin anew"
        )
