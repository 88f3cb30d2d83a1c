"""Lines of files and streams, in buffers: large ones of what lies there, small ones of what comes slowly.

A line that is typed, or sent down a pipe by someone who waits, is in a buffer at once. Knows nothing of what
lines hold.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from transformer_mt.errors import DataError
from transformer_mt.text.lines import line_blocks, open_bytes

STDIN = "-"
# A buffer is given when no more has come for this long, and at most this long after its first line.
_LINGER_SECONDS = 0.02
_LONGEST_SECONDS = 0.2


class Line(NamedTuple):
    """A line, and where it stands: the name of its file, and its number there from 1."""

    text: str
    file: str
    number: int


def arriving_lines(files: Sequence[str], size: int) -> Iterator[list[Line]]:
    """The lines of all files, in order.

    Args:
        files: paths of text, plain or packed, of pipes, or `-` for standard input.
        size: lines of a full buffer; only one that had to wait for more, or the last, has fewer.

    Raises:
        DataError: as `read_lines`; the lines before come first.
    """
    waiting: list[Line] = []
    try:
        for file in files:
            steady = is_regular(file)
            if waiting and not steady:
                yield waiting  # whoever writes into a pipe may take long to open it
                waiting = []
            with _opened(file) as (stream, name):
                number, began = 1, 0.0
                for texts in line_blocks(stream, name):
                    began = began if waiting else time.monotonic()
                    waiting += [Line(text, name, place) for place, text in enumerate(texts, start=number)]
                    number += len(texts)
                    if full := len(waiting) // size:
                        yield from (waiting[size * place : size * (place + 1)] for place in range(full))
                        waiting, began = waiting[size * full :], time.monotonic()
                    if waiting and not steady and not _more_comes(stream, began):
                        yield waiting
                        waiting = []
    except DataError:
        if waiting:
            yield waiting
        raise
    if waiting:
        yield waiting


def lines_of(file: str) -> Iterator[str]:
    """The lines of one file, as `arriving_lines` has them, one by one.

    Raises:
        DataError: as `read_lines`; the lines before come first.
    """
    with _opened(file) as (stream, name):
        for texts in line_blocks(stream, name):
            yield from texts


def is_regular(file: str) -> bool:
    """Whether all of a file lies there; one that is missing counts as such, and fails when it is opened."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode if file == STDIN else os.stat(file).st_mode
    except (OSError, ValueError):
        return True
    return stat.S_ISREG(mode)


@contextlib.contextmanager
def _opened(file: str) -> Iterator[tuple[io.BufferedIOBase, str]]:
    if file == STDIN:
        yield cast(io.BufferedIOBase, sys.stdin.buffer), "stdin"
        return
    with open_bytes(file) as stream:
        yield stream, file


def _more_comes(stream: io.BufferedIOBase, began: float) -> bool:
    """Whether there is more to read, or the end, before a buffer that began at this time must be given."""
    seconds = min(_LINGER_SECONDS, began + _LONGEST_SECONDS - time.monotonic())
    if seconds <= 0:
        return False
    watch = select.poll()
    watch.register(stream, select.POLLIN)
    return bool(watch.poll(seconds * 1000))
