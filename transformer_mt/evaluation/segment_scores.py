"""Segment scores of an outside metric, read from a table: a column for each system, a row for each line.

Of metrics it knows the direction alone; it computes nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from transformer_mt.errors import DataError
from transformer_mt.text.lines import read_lines

_HIGHER = frozenset(
    {"bertscore", "bleu", "bleurt", "chrf", "comet", "cometkiwi", "meteor", "sentbleu", "xcomet", "yisi"}
)
_LOWER = frozenset({"cer", "hter", "metricx", "ter", "wer"})
_LARGEST = 1e100
"""Sums of larger numbers may not be finite."""


def lower_is_better(metric: str) -> bool | None:
    """Whether a metric of this name counts faults; None where the name does not tell."""
    words = set(re.findall("[a-z]+", metric.lower()))
    return True if words & _LOWER else False if words & _HIGHER else None


def read_segment_scores(path: str | Path, systems: Sequence[str], lines: int) -> dict[str, list[float]]:
    """The scores of every system.

    Args:
        path: tab-separated text whose first line holds the names of the systems, in any order.
        systems: their names.
        lines: how many rows there must be.

    Raises:
        DataError: other names, another number of rows or columns, or something that is no finite number.
    """
    rows = [line.split("\t") for line in read_lines(path)]
    names = [name.strip() for name in rows[0]] if rows else []
    if sorted(names) != sorted(systems):
        raise DataError(
            f"{path}: its first line must name the systems {', '.join(systems)}, separated by tabs, but is "
            f"{', '.join(names) or 'missing'}"
        )
    if len(rows) - 1 != lines:
        raise DataError(
            f"{path}: has {len(rows) - 1} rows of scores below its first line, but the set has {lines} lines"
        )
    columns: dict[str, list[float]] = {name: [] for name in names}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise DataError(f"{path}:{number}: has {len(row)} columns, but there are {len(names)} systems")
        for name, cell in zip(names, row, strict=True):
            columns[name].append(_number(cell, f"{path}:{number}"))
    return columns


def _number(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not abs(value) < _LARGEST:
        raise DataError(
            f"{where}: {cell!r} is no finite number below 1e100; every line needs a score of every system"
        )
    return value
