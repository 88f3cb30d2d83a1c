"""Broken outputs, each kind by hand."""

from __future__ import annotations

from transformer_mt.evaluation.outputs import OutputCounts, count_outputs


def test_characters_repeat_where_there_are_no_spaces() -> None:
    found = count_outputs(["我们我们我们走", "哈哈哈", "哈哈哈哈"], [["我们走", "哈哈", "哈哈"]], None)
    assert found == OutputCounts(empty=0, copied=None, repeated=2, overlong=0)


def test_nothing_counts_that_the_reference_does_too() -> None:
    """Pins empty, copied and repeated against references that are themselves so."""
    same = ["", "OK", "no no no no"]
    assert count_outputs(same, [same], same) == OutputCounts(0, 0, 0, 0)


def test_each_kind_is_counted() -> None:
    """B178's neighbours: \u200b is no translation, and white space does not hide a copy."""
    hypotheses = [" \u200b", "ein Haus ", "go go go go", " ".join("abcdefghijklmno"), "fine"]
    references = ["a house", "a house", "go", "a b", "fine"]
    sources = ["ein Haus", "ein Haus", "geh", "a b", "gut"]
    assert count_outputs(hypotheses, [references], sources) == OutputCounts(1, 1, 1, 1)


def test_over_long_is_more_than_twice_the_longest_reference_and_ten() -> None:
    words = [str(number) for number in range(40)]
    for length, count in ((16, 0), (17, 1)):
        found = count_outputs([" ".join(words[:length])], [["one two"], ["one two three"]], None)
        assert found.overlong == count


def test_any_reference_excuses_a_copy() -> None:
    assert count_outputs(["Haus"], [["house"], ["Haus"]], ["Haus"]).copied == 0
