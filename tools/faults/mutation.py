"""What a mutation is: one small change of the package that brings one known fault back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """A text of one file that is replaced by another."""

    fault: str
    """Id of the fault that comes back, as in `tests/faults.md`."""
    name: str
    """What the change does, in a few words."""
    file: str
    """Below `transformer_mt/`."""
    old: str
    """Occurs in the file exactly once."""
    new: str
    tests: tuple[str, ...]
    """Below `tests/`, as `folder/test_file.py::test_function`; at least one fails under the change."""
