"""What is written down about an output: how many source lines it covers, which ones, and by which settings.

Stands beside it in a small JSON file, and tells whether a command would write the same. Knows neither models
nor formats.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from transformer_mt.errors import ConfigError, DataError
from transformer_mt.json_file import write_json

FORMAT = 1


class Names(NamedTuple):
    """Where things stand: of an output that is a link, beside what it leads to."""

    partial: Path
    journal: Path  # of the unfinished output
    record: Path  # of the finished one: its journal, where it was made with --resume


def names_beside(output: str | Path) -> Names:
    """What may stand beside an output."""
    real = os.path.realpath(output)
    return Names(Path(f"{real}.partial"), Path(f"{real}.partial.json"), Path(f"{real}.done.json"))


class Journal(NamedTuple):
    """What is known of an output; bytes of it, and the sha256 of its source lines and of these bytes.

    unfit numbers the lines that are blank since they did not fit into the memory.
    """

    settings: dict[str, Any]
    lines: int
    bytes: int
    source_sha256: str
    output_sha256: str
    unfit: list[int]


def write_journal(path: Path, journal: Journal) -> None:
    """Replace it as a whole."""
    write_json(path, {"format": FORMAT, **journal._asdict()})


def read_journal(path: Path, output: str | Path, settings: Mapping[str, Any]) -> Journal:
    """What is known of an output that was made by these settings.

    Args:
        path: of the journal.
        output: that it tells of.
        settings: all that the lines depend on besides their source; what JSON can hold.

    Raises:
        ConfigError: it was made with other settings.
        DataError: there is no such journal, or none that can be used.
    """
    kinds = {"settings": dict, "lines": int, "bytes": int, "source_sha256": str, "output_sha256": str}
    kinds["unfit"] = list
    try:
        found = {"unfit": [], **json.loads(path.read_text(encoding="utf-8"))}  # earlier ones lack it
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}, this version reads {FORMAT}")
        journal = Journal(**{name: kind(found[name]) for name, kind in kinds.items()})
    except FileNotFoundError:
        raise DataError(
            f"{path}: is missing, and nothing else says what {output} is; delete that to begin anew"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: tells nothing about {output} ({error!r}); delete both to begin anew"
        ) from None
    old, new = journal.settings, json.loads(json.dumps(settings))
    if changed := [name for name in {**old, **new} if old.get(name) != new.get(name)]:
        told = "; ".join(f"{name} was {old.get(name)}, is {new.get(name)}" for name in changed)
        raise ConfigError(
            f"{output}: was made with other settings ({told}); use those, or delete it to begin anew"
        )
    return journal


def other_output(output: str | Path, journal: Path) -> DataError:
    """The output is not that of its journal."""
    return DataError(f"{output}: is not what {journal} tells of; delete both to begin anew")


def other_source(output: str | Path, lines: int) -> DataError:
    """The source lines are not those of the journal."""
    return DataError(
        f"{output}: its {lines} lines were made of another source; give that one, or delete the file to "
        "begin anew"
    )
