"""tag_layout: each tag comes where a person would put it."""

from __future__ import annotations

import pytest

from transformer_mt.text.markup import take_out
from transformer_mt.text.tag_layout import put_back

Pairs = list[tuple[int, int]]


def straight(number: int) -> Pairs:
    return [(unit, unit) for unit in range(number)]


def translated(
    source: str, translation: str, alignment: Pairs, unbroken: list[tuple[int, int]] | None = None
) -> str:
    return put_back(translation, take_out(source), alignment, unbroken or [])


@pytest.mark.parametrize(
    ("source", "translation", "alignment", "expected"),
    [
        ("Ein <b>großer Hund</b> läuft.", "A big dog runs.", straight(4), "A <b>big dog</b> runs."),
        (
            "<b>Gestern</b> ging ich.",
            "I went yesterday.",
            [(0, 2), (1, 1), (2, 0)],
            "I went <b>yesterday</b>.",
        ),
        ("auto<b>bahn</b> hier", "motorway here", straight(2), "<b>motorway</b> here"),
        # A distant link does not make it hold half the line, a near one widens it.
        ("<b>a b</b> c", "A x B c", [(0, 0), (1, 2), (2, 3)], "<b>A x B</b> c"),
        ("<b>a b</b> c", "A B x x x x x A", [(0, 0), (1, 1), (0, 7), (2, 3)], "<b>A B</b> x x x x x A"),
        # All of the line is all of the translation, aligned or not.
        ("<p>Ein Hund.</p>", "A dog.", [], "<p>A dog.</p>"),
        ("<p> Ein Hund</p>", '"A dog".', straight(2), '<p>"A dog".</p>'),
        ("<p><b>Ein</b> Hund</p><br/>", "A dog.", straight(2), "<p><b>A</b> dog.</p><br/>"),
        # Without counterpart it is empty; so are those inside of it.
        ("a <b>x <i>y</i></b> c", "A C", [(0, 0), (3, 1)], "A <b><i></i></b> C"),
        ("a <b></b> c", "A C", straight(2), "A <b></b> C"),
        ("a <b>x</b>, c", "A. C", [(0, 0), (2, 1)], "A <b></b>. C"),
        ("a <b>x</b> .", "A.", [(0, 0)], "A <b></b>."),
    ],
)
def test_a_pair(source: str, translation: str, alignment: Pairs, expected: str) -> None:
    """It encloses the words aligned with those that it enclosed."""
    assert translated(source, translation, alignment) == expected


def test_a_pair_holds_the_marks_of_the_pair_in_it() -> None:
    """Although it would leave them outside by itself."""
    source, alignment = '<b>a <i>"b"</i> c</b> x', [(0, 1), (1, 0), (2, 2), (3, 3)]
    assert translated(source, '"B" A C X', alignment) == '<b><i>"B"</i> A C</b> X'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<b>Hund</b>.", "<b>dog</b>!"),
        ("<b>Hund.</b>", "<b>dog!</b>"),
        ('"<b>Hund</b>".', '"<b>dog</b>".'),
        ('<b>"Hund"</b>.', '<b>"dog"</b>.'),
        ('<b>"Hund".</b>', '<b>"dog".</b>'),
        ('"<b>Hund</b>"', "“<b>dog</b>”"),
        ("<b>20%</b> x", "<b>20%</b>. x"),
    ],
)
def test_marks_stay_inside_or_outside(source: str, expected: str) -> None:
    """As in the source: the translation carries its marks where the source has them or not."""
    assert translated(source, take_out(expected).text, [(0, 0)]) == expected


@pytest.mark.parametrize(
    ("source", "alignment", "expected"),
    [
        ("<b>a</b> <i>b</i> c", [(0, 0), (0, 2), (1, 1), (2, 3)], "<b>A</b> <i>B</i> C D"),
        ("<b>a</b> <i>b</i> c", [(0, 0), (0, 2), (1, 1), (1, 3)], "<b>A</b> <i>B C D</i>"),
        ("<b>a</b> <i>b</i> c", [(0, 1), (1, 1)], "A <b>B</b> <i></i> C D"),
        (
            "<b>a</b> <i>b</i> <u>c</u> d",
            [(0, 0), (0, 3), (1, 0), (1, 3), (2, 1)],
            "<b>A</b> <u>B</u> C D <i></i>",
        ),
        ("<b>a</b> <i>b</i> c", [(0, 0), (1, 0), (1, 1)], "<b>A</b> <i>B</i> C D"),
        ("<b>a</b> <i>x</i> c", [(0, 0), (0, 1), (0, 2)], "<b>A B C</b> <i></i> D"),
        ("<b>a <u>b</u></b> <i>c</i> d", [(0, 0), (1, 2), (2, 1), (3, 3)], "<b>A <u></u></b> <i>B</i> C D"),
        ("<b>a c</b> <br/>d", [(0, 0), (1, 2), (2, 1)], "<b>A B C</b> <br/> D"),
        ("d<br/> <b>a c</b>", [(0, 1), (1, 0), (2, 2)], "<br/> <b>A B C</b> D"),
        ("<b>a</b> <i>b</i> c", [(0, 2), (1, 0)], "<i>A</i> B <b>C</b> D"),
        ("x <b>a <i>b.</i> c</b>", [(1, 1), (2, 3), (3, 2)], "A <b>B C <i>D</i></b>"),
        ("<b>a<br/></b> c", [(0, 1), (1, 2)], "A <b>B<br/></b> C D"),
        ("c <b><br/>a</b>", [(1, 1)], "A <b><br/>B</b> C D"),
    ],
)
def test_pairs_that_would_cross_or_hold_each_other_are_parted(
    source: str, alignment: Pairs, expected: str
) -> None:
    """But ancestors stay around what is in them, and single tags in their pair and out of others."""
    assert translated(source, "A B C D", alignment) == expected


@pytest.mark.parametrize(
    ("source", "translation", "alignment", "expected"),
    [
        (
            "eins<br/>zwei <br/> drei<br/> vier",
            "one two three four",
            straight(4),
            "one<br/>two <br/> three<br/> four",
        ),
        ("a<p>b</p>", "A B", straight(2), "A<p>B</p>"),
        ("<li>a</li><li>b</li>", "A B", straight(2), "<li>A</li><li>B</li>"),
        ("a <x/>b c", "A C B", [(0, 0), (1, 2), (2, 1)], "A C <x/>B"),
        ("a <x/>b c", "A C B", [(0, 0), (2, 1)], "A <x/>C B"),
        ('Hallo <x id="1"/>, du', "Hello, you", straight(2), 'Hello <x id="1"/>, you'),
        ("a<x/> b c", "C A B", [(0, 1), (1, 2), (2, 0)], "C A<x/> B"),
        ("a b<br/>", "B A x", [(0, 1), (1, 0)], "B A x<br/>"),
        ("<br/> a b", "B A", [(0, 1), (1, 0)], "<br/> B A"),
        ("a b</b> <i>c", "A B C", straight(3), "A B</b> <i>C"),
        ("<b>a</b> b", "", [], "<b></b>"),
        ("a <br/> b", "", [], "<br/>"),
        ("<br/> <b>a</b>", "A", [(0, 0)], "<br/> <b>A</b>"),
        ("a <x/> <y/> b", "A B", straight(2), "A <x/> <y/> B"),
        ("a <x/><y/>b", "A B", straight(2), "A <x/><y/>B"),
        ("a <x/><b> </b><y/>b c", "C B A", [(0, 2), (1, 1), (2, 0)], "C <x/><b></b><y/>B A"),
        ("a<x/><y/> b", "B A", [(0, 1), (1, 0)], "B A<x/><y/>"),
    ],
)
def test_a_single_tag(source: str, translation: str, alignment: Pairs, expected: str) -> None:
    """It follows the word before it or goes with the word that it stands at, with the spaces it had."""
    assert translated(source, translation, alignment) == expected


@pytest.mark.parametrize(
    ("source", "translation", "alignment", "expected"),
    [
        (
            "see <b>here</b> <br/> now",
            "看这里现在",
            [(0, 0), (1, 1), (1, 2), (2, 3)],
            "看<b>这里</b><br/>现在",
        ),
        ("看<b>这里</b>。", "Look here.", [(0, 0), (1, 1), (2, 1), (3, 1)], "Look <b>here</b>."),
        ("<br/> see", "看", [(0, 0)], "<br/>看"),
    ],
)
def test_scripts_without_spaces(source: str, translation: str, alignment: Pairs, expected: str) -> None:
    """Characters are placed like words, and no space comes between them."""
    assert translated(source, translation, alignment) == expected


def test_no_tag_comes_inside_of_what_must_not_be_broken() -> None:
    """It moves to the nearer end that keeps the pair around its words."""
    assert translated("a <b>b</b> c", "A B C", straight(3), [(0, 3)]) == "<b>A B</b> C"
    assert translated("a <b>b</b> c", "A B C", straight(3), [(2, 5)]) == "A <b>B C</b>"
    assert translated("a<x/> b", "A B", straight(2), [(0, 3)]) == "A B<x/>"
    assert translated("a<b>b</b>!", "ab!!", [(0, 0)], [(0, 4)]) == "<b>ab!!</b>"


def test_a_wrong_alignment_is_an_error() -> None:
    """Only a line with tags looks at it."""
    assert translated("a", "b", [(7, 7)]) == "b"
    with pytest.raises(ValueError, match="there is no 7-7 in a line of 1"):
        translated("<b>a</b>", "b", [(7, 7)])
