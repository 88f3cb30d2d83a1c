"""Output to stdout, a pipe or a device: gone once it is written, so nothing of it can be continued."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from types import TracebackType

from transformer_mt.cli.partial_output import write_all


class StreamOutput:
    """Takes lines, and has them written before it takes the next."""

    found = 0
    """Source lines that an earlier process has done: none."""

    def __init__(self, path: str | None) -> None:
        """Open a pipe or device; None is stdout."""
        self._path = path
        # stdout by its name could be a file, which would be opened anew and emptied.
        self._stream = None if path is None or path == "/dev/stdout" else io.FileIO(path, "w")

    def skip_done(self, source: Sequence[bytes]) -> int:
        """Nothing is done already."""
        return 0

    def write(self, source: Sequence[bytes], data: bytes) -> None:
        """Write whole lines."""
        if self._stream is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        try:
            write_all(self._stream, data)
        except OSError as error:
            error.filename = self._path
            raise

    def __enter__(self) -> StreamOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()
