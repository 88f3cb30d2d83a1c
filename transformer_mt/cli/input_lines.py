"""What `translate` and `score` share of reading: kinds of files, buffers of lines, objects of JSON Lines.

Knows nothing of models, nor what a line is read for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence, Sized
from typing import Any, TypeVar

from transformer_mt.errors import DataError
from transformer_mt.text.arrivals import STDIN, Line, arriving_lines, is_regular
from transformer_mt.text.json_lines import columns_of, parse_json
from transformer_mt.text.lines import PACKED_SUFFIXES, read_lines

Made = TypeVar("Made")
_JSON_SUFFIXES = tuple(f".jsonl{suffix}" for suffix in PACKED_SUFFIXES)
# So many lines at a time are looked at before anything is done.
_CHECKED_TOGETHER = 4096


def is_json(file: str, kind: str | None) -> bool:
    """Whether a file is JSON Lines: by its kind, or where that is None by its name."""
    return kind == "jsonl" if kind else file.endswith(_JSON_SUFFIXES)


def checked(files: Sequence[str], buffers: Callable[[int], Iterator[Sized]]) -> int | None:
    """Read everything once: what cannot be used shows before anything is done.

    Args:
        files: what `buffers` reads.
        buffers: gives all of it, so many lines at a time.

    Returns:
        Number of lines; None where a file is a stream, which cannot be read twice.

    Raises:
        DataError: as `buffers`.
    """
    if STDIN not in files and all(map(is_regular, files)):
        return sum(map(len, buffers(_CHECKED_TOGETHER)))
    for file in files:
        if file != STDIN and is_regular(file):
            next(read_lines(file), None)  # one that cannot be opened is told at once all the same
    return None


def made_of_lines(files: Sequence[str], size: int, make: Callable[[Line], Made]) -> Iterator[list[Made]]:
    """What is made of every line, in order, as they come; see `arriving_lines`.

    Raises:
        DataError: unreadable files, bytes that are not UTF-8, what `make` raises; first comes all before.
    """
    for lines in arriving_lines(files, size):
        done: list[Made] = []
        try:
            for line in lines:
                done.append(make(line))
        except DataError:
            if done:
                yield done
            raise
        yield done


def object_of(line: Line, where: str, taken: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The object that a line spells, and the fields of it that may hold text; see `columns_of`.

    Raises:
        DataError: it is none, or has a field of those that will be added.
    """
    record = parse_json(line.text, where)
    columns = columns_of(record, where)
    if clash := next((name for name in record if name in taken), None):
        raise DataError(
            f"{where}: has a field {clash} already; give those that are added other names, "
            f"such as mt_{clash} with --added-prefix mt_"
        )
    return record, columns
