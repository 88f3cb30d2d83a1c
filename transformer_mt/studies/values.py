"""What is measured of a variant: a number, its name, and where it was taken.

All results of a study are one long table of these, whatever they are about; in files its columns stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

At = Mapping[str, float | int | str]
"""Where a number was taken, such as {"length": 512}; empty where there is one such number."""


@dataclass(frozen=True)
class Measured:
    """One number of one variant."""

    metric: str
    """Its name, the unit in it: `update_seconds`, `peak_mib`, `bleu`."""
    value: float | None
    """None where it could not be measured: no memory for it, or nothing finite came out."""
    at: At = field(default_factory=dict)
    """Where it was taken."""


@dataclass(frozen=True)
class Columns:
    """All numbers of one metric that were taken at the same kinds of places, as files hold them.

    A curve of a thousand updates would repeat its names a thousand times otherwise.
    """

    metric: str
    at: dict[str, list[float | int | str]]
    """Kind of place -> where each number was taken."""
    values: list[float | None]


def to_columns(measured: Iterable[Measured]) -> list[Columns]:
    """Numbers -> columns, by metric in the order in which each came first."""
    found: dict[tuple[str, ...], Columns] = {}
    for one in measured:
        columns = found.setdefault(
            (one.metric, *one.at), Columns(one.metric, {key: [] for key in one.at}, [])
        )
        columns.values.append(one.value)
        for key, place in one.at.items():
            columns.at[key].append(place)
    return list(found.values())


def from_columns(columns: Columns) -> Iterator[Measured]:
    """The numbers again.

    Raises:
        ValueError: the columns differ in length.
    """
    for value, *places in zip(columns.values, *columns.at.values(), strict=True):
        yield Measured(columns.metric, value, dict(zip(columns.at, places, strict=True)))
