"""An output file that stands there whole: whether a command would write the same.

What it was made of is known where it was finished with --resume: its journal has stayed then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transformer_mt.cli.output_journal import Journal, names_beside, other_output, other_source, read_journal


def stands_whole(path: str) -> bool:
    """Whether there is an output, and no unfinished one beside it."""
    return Path(path).is_file() and not names_beside(path).partial.exists()


def check_finished(path: str, settings: Mapping[str, Any], source: Iterable[bytes]) -> Journal:
    """Refuse a whole output that is not that of these settings and this source.

    Args:
        path: the output, which has a journal.
        settings: as in `read_journal`.
        source: what each line was read from.

    Returns:
        What is known of it.

    Raises:
        ConfigError: it was made with other settings.
        DataError: it was changed, or made of another source; as `read_journal`.
    """
    record = names_beside(path).record
    journal = read_journal(record, path, settings)
    with open(path, "rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != journal.output_sha256:
            raise other_output(path, record)
    lines, read = 0, hashlib.sha256()
    for lines, line in enumerate(source, start=1):  # noqa: B007 (the last number is meant)
        read.update(line + b"\n")
    if (lines, read.hexdigest()) != (journal.lines, journal.source_sha256):
        raise other_source(path, journal.lines)
    return journal
