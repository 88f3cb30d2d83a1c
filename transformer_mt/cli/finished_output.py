"""An output file that stands there whole: whether anything is left to do for it.

Its journal is gone, so what can be told is what the file itself tells: how many lines it is of, and when it
was written. The settings it was made by cannot be seen in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from transformer_mt.cli.partial_output import partial_names
from transformer_mt.text.arrivals import STDIN, is_regular


def stands_whole(path: str) -> bool:
    """Whether there is an output, and no unfinished one beside it."""
    return Path(path).is_file() and not partial_names(path)[0].exists()


def difference(path: str, style: str, files: Iterable[str | Path], lines: int) -> str | None:
    """Why a whole output is not that of a source, in a few words; None where it is, as far as can be told.

    Args:
        path: the output.
        style: its format, one of `line_formats.FORMATS`.
        files: that it depends on, and `-`.
        lines: how many these have.
    """
    found = _num_sources(path, style)
    if found != lines:
        of = "is of another format" if found is None else f"has {found} lines"
        return f"{of}, but the source has {lines} lines"
    made = os.stat(path).st_mtime_ns
    for file in files:
        if file != STDIN and is_regular(str(file)) and os.stat(file).st_mtime_ns > made:
            return f"is older than {file}"
    return None


def _num_sources(path: str, style: str) -> int | None:
    """How many source lines an output is of; None where it has another format."""
    count, last = 0, b""
    with open(path, "rb") as stream:
        for count, last in enumerate(stream, start=1):  # noqa: B007 (the last one is meant)
            pass
    if not count or style in ("text", "jsonl"):
        return count
    number = last.split(b"\t" if style == "tsv" else b" ", 1)[0]
    return int(number) + (style == "moses") if number.isdigit() else None
