"""How long translations are: the line and its limits by hand."""

from __future__ import annotations

import math
import random

import pytest

from transformer_mt.text.proportion import Proportion, is_unfinished


def _pairs(count: int, spread: float) -> tuple[list[str], list[str]]:
    """Sources of 10 to 109 characters, and targets twice as long but for a factor around 1; all end well."""
    draw = random.Random(1)
    sources = ["x" * (10 + number % 100) for number in range(count)]
    factors = [math.exp(draw.gauss(0.0, spread)) for _ in range(count)]
    targets = [
        "y" * max(round(2 * (len(source) + 10) * factor) - 11, 0) + "."
        for source, factor in zip(sources, factors, strict=True)
    ]
    return sources, targets


def test_the_line_is_found() -> None:
    """Twice as long, 10 added on both sides: slope 1, intercept log 2."""
    learned = Proportion.learn(*_pairs(5000, 0.1))
    assert learned is not None
    assert learned.slope == pytest.approx(1.0, abs=0.02)
    assert learned.intercept == pytest.approx(math.log(2.0), abs=0.1)
    assert learned.off("x" * 30, "y" * 70) == pytest.approx(0.0, abs=0.03)
    assert learned.off("x" * 30, "y" * 30) == pytest.approx(math.log(0.5), abs=0.03)


def test_limits_follow_the_spread_of_the_pairs() -> None:
    """3 in 10,000 of a normal distribution lie 3.4 deviations out; for equal pairs there is a least."""
    wide, narrow = Proportion.learn(*_pairs(20_000, 0.2)), Proportion.learn(*_pairs(500, 0.0))
    assert wide is not None
    assert narrow is not None
    assert wide.short == pytest.approx(-0.2 * 3.43, abs=0.1)
    assert wide.unfinished == pytest.approx(-0.2 * 1.88, abs=0.02)
    assert wide.long == pytest.approx(0.2 * 3.43 + math.log(1.5), abs=0.1)
    assert narrow[2:] == (-0.3, -0.15, 0.7)


def test_unfinished_pairs_that_are_usual_move_the_limit() -> None:
    """Where good targets lack a final mark, a missing one says less: most of those are not suspicious."""
    sources, targets = _pairs(5000, 0.2)
    sources = [f"{source[:-1]}." for source in sources]
    learned = Proportion.learn(sources, [target[:-1] for target in targets])
    whole = Proportion.learn(sources, targets)
    assert learned is not None
    assert whole is not None
    assert learned.unfinished == pytest.approx(learned.short, abs=0.05)
    assert whole.unfinished > whole.short + 0.2


def test_equal_lengths_teach_nothing() -> None:
    assert Proportion.learn(["ab", "cd"], ["x", "yz"]) is None


def test_a_missing_end_makes_a_short_text_suspicious() -> None:
    """Two limits: one for any end, a closer one for a text that stops in the middle."""
    even = Proportion(0.0, 1.0, short=-0.6, unfinished=-0.3, long=0.7)
    source = "x" * 89 + "."
    assert not even.is_short(source, "y" * 59 + ".")
    assert even.is_short(source, "y" * 60)
    assert even.is_short(source, "y" * 40 + ".")
    assert not even.is_short(source, "y" * 65)
    assert not even.is_short(source[:-1], "y" * 60)
    assert even.is_long(source, "y" * 200)
    assert not even.is_long(source, "y" * 180)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Ja.", "Yes", True),
        ("Ja.", "Yes.", False),
        ("Ja", "Yes", False),
        ("„Ja!“", "“Yes!”", False),
        ("是。", "Yes.", False),
        ("(so) ja", "(so yes", True),
        ("(so ja", "(so yes", False),
        ("「是」", "“yes", True),
        ("a) b", "a) b", False),
    ],
)
def test_what_counts_as_unfinished(source: str, target: str, expected: bool) -> None:
    assert is_unfinished(source, target) is expected
