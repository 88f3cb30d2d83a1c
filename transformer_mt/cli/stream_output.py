"""Output to stdout, a pipe or a device: gone once it is written, so nothing of it can be continued."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType


def write_all(stream: io.RawIOBase, data: bytes) -> None:
    """Write all of it; nothing stays in a buffer that a later close could trip over."""
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """What fails here tells of this stream; the system names none that has no space."""
    try:
        yield
    except OSError as error:
        error.filename = name
        raise


def show(text: str = "") -> None:
    """Print a text and an end of line to stdout, at once."""
    with naming("stdout"):
        print(text, flush=True)


class NoOutput:
    """Writes nothing: for all processes but the first of several that translate together."""

    unfit: Sequence[int] = ()
    """The first process knows them."""

    def __init__(self, found: int) -> None:
        """found: source lines that are done already."""
        self.found = self._unseen = found

    def skip_done(self, source: Sequence[bytes]) -> int:
        """How many of the next source lines are done already."""
        count = min(len(source), self._unseen)
        self._unseen -= count
        return count

    def write(self, source: Sequence[bytes], data: bytes, unfit: Sequence[int] = ()) -> None:
        """Nothing."""

    def __enter__(self) -> NoOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was opened."""


class StreamOutput:
    """Takes lines, and has them written before it takes the next."""

    found = 0
    """Source lines that an earlier process has done: none."""

    def __init__(self, path: str | None) -> None:
        """Open a pipe or device; None is stdout."""
        self._path = path
        self.unfit: list[int] = []
        """Numbers of the lines without a translation, for want of memory."""
        self._stream: io.FileIO | OSError | None = None
        self._opening: threading.Thread | None = None
        # stdout by its name could be a file, which would be opened anew and emptied.
        if path is None or path == "/dev/stdout":
            return
        if Path(path).is_fifo():
            # To open a pipe waits for its reader, who may first want to open the one that we read from.
            self._opening = threading.Thread(target=self._open, args=(path,), daemon=True)
            self._opening.start()
        else:
            self._open(path)

    def _open(self, path: str) -> None:
        try:
            self._stream = io.FileIO(path, "w")
        except OSError as error:  # raised by who waits
            self._stream = error

    def _opened(self) -> io.FileIO | None:
        if self._opening is not None:
            self._opening.join()
        if isinstance(self._stream, OSError):
            raise self._stream
        return self._stream

    def skip_done(self, source: Sequence[bytes]) -> int:
        """Nothing is done already."""
        return 0

    def write(self, source: Sequence[bytes], data: bytes, unfit: Sequence[int] = ()) -> None:
        """Write whole lines."""
        self.unfit += unfit
        stream = self._opened()
        with naming(self._path or "stdout"):
            if stream is None:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            else:
                write_all(stream, data)

    def __enter__(self) -> StreamOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and (stream := self._opened()) is not None:
            stream.close()
