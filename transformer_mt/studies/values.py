"""What is measured of a variant: a number, its name, and where it was taken.

All results of a study are one long table of these, whatever they are about.
"""

from __future__ import annotations

from collections.abc import Mapping
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
