"""placing: the places of a translation that belong to places of its source."""

from __future__ import annotations

import pytest

from transformer_mt.text.placing import Placing, is_only_marks, overlapping, without_marks


@pytest.mark.parametrize("pair", [(2, 0), (0, 1), (-1, 0), (0, -1)])
def test_a_unit_that_is_not_there_is_an_error(pair: tuple[int, int]) -> None:
    """Such a pair belongs to other texts, so no place would be right."""
    with pytest.raises(
        ValueError, match=f"alignment: there is no {pair[0]}-{pair[1]} in a line of 2 and a tr.* 1 "
    ):
        Placing("ein Hund", "dog", [(0, 0), pair])


def test_units_and_their_targets() -> None:
    """Any shared character counts."""
    placing = Placing("ein Hund da", "a dog", [(1, 1), (0, 0), (0, 1), (0, 0)])
    assert list(placing.units_at(2, 5)) == [0, 1]
    assert list(placing.units_at(3, 4)) == []
    assert placing.targets([0, 1, 2]) == [0, 1]


@pytest.mark.parametrize(("end", "place"), [(0, 0), (3, 2), (4, 3), (9, 7), (10, 9), (13, 9)])
def test_what_follows_comes_after_the_nearest_aligned_word(end: int, place: int) -> None:
    """Before the marks behind that word, unless one stands before the place in the source too."""
    assert Placing("ein, Hund. Oh", "an, dog!.", [(0, 0), (1, 1)]).place_after(end) == place


def test_spans_that_share_a_character() -> None:
    """An empty range lies in a span only if it is strictly inside."""
    spans = [(0, 2), (2, 5), (7, 8)]
    assert list(overlapping(spans, 1, 3)) == [0, 1]
    assert list(overlapping(spans, 5, 7)) == []
    assert list(overlapping(spans, 2, 2)) == []
    assert list(overlapping(spans, 3, 3)) == [1]
    assert list(overlapping(spans, 0, 9)) == [0, 1, 2]


def test_marks_of_the_sentence() -> None:
    """They are left out at both ends, but for one that the string itself has there; marks alone are kept."""
    text = '("foo").'
    assert without_marks(text, 0, 8) == (2, 5)
    assert without_marks(text, 0, 8, head=False) == (0, 5)
    assert without_marks(text, 0, 8, tail=False) == (2, 8)
    assert without_marks(text, 0, 8, like='"x"') == (1, 6)
    assert without_marks("a ..", 2, 4) == (2, 4)
    assert without_marks("20%", 0, 3) == (0, 3)
    assert is_only_marks('".') and not is_only_marks("%.")
