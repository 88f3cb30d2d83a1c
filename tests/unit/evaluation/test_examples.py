"""Which lines are shown, and who wins how often."""

from __future__ import annotations

import pytest

from transformer_mt.evaluation.examples import example_groups, sentence_scores, wins_ties_losses


def test_sentence_scores_take_the_best_reference() -> None:
    """Pins chrF2++ per line, 100 for a match with any stream, 0 for an empty line."""
    scores = sentence_scores(["the cat", "", "a dog"], [["the cat", "x", "the dog"], ["q", "y", "a dog"]])
    assert scores == [pytest.approx(100.0), 0.0, pytest.approx(100.0)]
    assert all(type(one) is float for one in scores)


def test_wins_ties_and_losses_are_of_the_later_system() -> None:
    assert wins_ties_losses([3.0, 1.0, 2.0, 5.0], [1.0, 1.0, 4.0, 4.0]) == (2, 1, 1)


def test_groups_hold_the_lines_where_each_wins_most() -> None:
    """Pins order, number, direction, ties left out, and one group of random lines for all systems."""
    size = 30
    first = [50.0] * size
    second = [50.0 + number if number < 12 else 50.0 for number in range(size)]
    third = [50.0, *[40.0] * 1, *[50.0] * (size - 2)]
    texts = [[f"{name}{number}" for number in range(size)] for name in "xyz"]
    references = [f"r{number}" for number in range(size)]
    groups = example_groups(["x", "y", "z"], texts, [first, second, third], references, None)
    assert [(group.title, group.against) for group in groups] == [
        ("y is furthest ahead of x", ("y", "x")),
        ("x is furthest ahead of z", ("x", "z")),
        ("lines at random", ()),
    ]
    ahead, behind, drawn = (group.examples for group in groups)
    assert [example.number for example in ahead] == list(range(12, 2, -1))
    assert [example.number for example in behind] == [2]
    one = behind[0]
    assert (one.source, one.reference, one.hypotheses) == (None, "r1", ("x1", "y1", "z1"))
    assert one.scores == (50.0, 51.0, 40.0)
    numbers = [example.number for example in drawn]
    assert len(set(numbers)) == 5 and numbers == sorted(numbers)
    again = example_groups(["x", "y", "z"], texts, [first, second, third], references, references)
    assert [example.number for example in again[-1].examples] == numbers
    assert again[-1].examples[0].source == f"r{numbers[0] - 1}"


def test_a_small_set_is_shown_whole() -> None:
    groups = example_groups(["x", "y"], [["a"], ["b"]], [[1.0], [1.0]], ["r"], None)
    assert [(group.title, len(group.examples)) for group in groups] == [("lines at random", 1)]
