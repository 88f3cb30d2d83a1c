"""The closing summary: hand-counted numbers, and the lines it points at."""

from __future__ import annotations

from transformer_mt.cli.summary import Summary
from transformer_mt.decoding.translator import Candidate, Translation

BLANK = Translation([Candidate("", 0.0, [], False)], 0)


def _one(
    tokens: int, *, cut: bool = False, parts: int = 1, flags: tuple[str, ...] = (), retried: bool = False
) -> Translation:
    return Translation([Candidate("x", -1.0, list(range(tokens)), cut)], 2 * tokens, parts, flags, retried)


def test_numbers_are_those_of_all_buffers() -> None:
    """Lines, blank ones, tokens of both sides, and the time that translating took, whatever else passed."""
    summary = Summary()
    assert summary.told() == ["0 lines (0 blank), 0 source and 0 target tokens, 0.0 s"]
    summary.add(1, [_one(2), BLANK, _one(3)], 1.5)
    summary.add(4, [BLANK, _one(5)], 0.5)
    assert summary.told() == ["5 lines (2 blank), 20 source and 10 target tokens, 2.0 s, 2.5 lines/s"]


def test_lines_that_deserve_a_look_are_pointed_at() -> None:
    """B054, B059: how many, the first of them by its number in the whole input, and what to do."""
    summary = Summary()
    summary.add(11, [_one(1), _one(1, cut=True), _one(1, parts=3), _one(1, flags=("loop", "copy"))], 1.0)
    summary.add(
        15, [_one(1, cut=True, flags=("limit",)), _one(1, flags=("loop", "limit"), retried=True)], 1.0
    )
    _, cut, split, wrong = summary.told()
    assert cut.startswith("note: 2 of 6 translations were cut off at their longest length, first in line 12;")
    assert split.startswith(
        "note: 1 of 6 lines are more than the model knows and were translated in parts, first line 13;"
    )
    assert (
        "2 of 6 translations look wrong (copy 1, loop 2; 1 lines searched twice), first in line 14;" in wrong
    )
