"""Mutations for the faults B001 to B087."""

from __future__ import annotations

from tools.faults.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "B002",
        "lines end where str.splitlines() ends them",
        "text/lines.py",
        'lines = text.split("\\n")',
        'lines = text.splitlines() + [""]',
        ("unit/text/test_lines.py::test_other_line_separators_stay_in_the_line",),
    ),
)
