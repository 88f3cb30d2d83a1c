"""insertion: what a missing string replaces, and where it comes if it replaces nothing."""

from __future__ import annotations

import pytest

from transformer_mt.text.insertion import Guarded
from transformer_mt.text.protection import compile_patterns, guard, protected_spans

PATTERNS = compile_patterns([r"\{\w*\}", r"\d+(?:[.,]\d+)*", r"https?://[^\s]*\w", "约翰", "[+*?^$]{2,}"])
Pairs = list[tuple[int, int]]


def guarded(source: str, translation: str, alignment: Pairs) -> Guarded:
    return guard(source, protected_spans(source, PATTERNS), translation, alignment, PATTERNS)


def straight(number: int) -> Pairs:
    return [(unit, unit) for unit in range(number)]


@pytest.mark.parametrize(
    ("source", "translation", "alignment", "expected"),
    [
        ("hat 1.000 Euro", "has 1,000 euros", straight(3), "has 1.000 euros"),
        ("hat (1.000).", 'has "1,000",', straight(2), 'has "1.000",'),
        ("Hallo {Name}!", "Hello { name }!", [(0, 0), (1, 1), (1, 2), (1, 3)], "Hello {Name}!"),
        ("Hallo {Name} du", "Hello {name} you", straight(3), "Hello {Name} you"),
        ("17 Männer", "seventeen men", straight(2), "17 men"),
        ("um 10:30 da", "at half-past there", straight(3), "at 10:30 there"),
        ("siehe http://a.b/c", "see http://a.b./c", straight(2), "see http://a.b/c"),
        ("Herr 约翰 geht", "Mister Johannes goes", [(0, 0), (1, 1), (2, 1), (3, 2)], "Mister 约翰 goes"),
        ("看 17 吧", "看十七吧", [(0, 0), (1, 1), (1, 2), (2, 3)], "看17吧"),
        ("看 7 5", "看3", [(0, 0), (2, 1)], "看7 5"),
        ("看 7 5", "看五", [(0, 0), (1, 0), (2, 1)], "看7 5"),
    ],
)
def test_it_takes_the_place_of_what_was_made_of_it(
    source: str, translation: str, alignment: Pairs, expected: str
) -> None:
    """What looks like it, or the one word aligned with it; marks of the sentence stay."""
    assert guarded(source, translation, alignment).text == expected


@pytest.mark.parametrize(
    ("source", "translation", "alignment", "expected"),
    [
        # Aligned with many words, or with one that another source word has no counterpart without.
        ("Mann {a} geht", "the man goes home", [(0, 1), (1, 0), (1, 2), (1, 3)], "the man {a} goes home"),
        (
            "Mann 5 jetzt",
            "the man goes home now",
            [(0, 1), (1, 0), (1, 2), (1, 3), (2, 4)],
            "the man 5 goes home now",
        ),
        ("an 5 Bar da", "at barrier there", [(0, 0), (1, 1), (3, 2)], "at 5 barrier there"),
        # No word, so that another word is hardly its translation.
        ("看 {n} 吧", "看男吧", straight(3), "看{n}男吧"),
        ("siehe http://a.b/c da", "see it there", straight(3), "see http://a.b/c it there"),
        ("nur ++ zählt", "only plus counts", straight(3), "only ++ plus counts"),
        # Only a small part of its word.
        ("ein 5-jähriger Hund", "a five-year-old dog", straight(3), "a 5 five-year-old dog"),
        # Aligned with a mark, with nothing, or with what another protected string holds.
        ("Haus {a}.", "House .", [(0, 0), (1, 1)], "House {a} ."),
        ("Haus {a}.", "House.", [(0, 0)], "House {a}."),
        ("Haus, {a}", "House,", [(0, 0)], "House, {a}"),
        ("x {a} {b}", "y {b}", [(0, 0), (1, 1), (2, 1)], "y {b} {a}"),
        ("{a} 5", "", [], "{a} 5"),
        ("a {a}", '"b"', [], '{a} "b"'),
        ("你好{a}，看5", "你好，看", [(0, 0), (1, 1), (3, 2), (4, 3)], "你好{a}，看5"),
        ("it 5 5", "看5", [(0, 0)], "看5 5"),
        ("3x4 da", "there", [(1, 0)], "3 4 there"),
        ("a {a}{b} c", "x y", [(0, 0), (2, 1)], "x {a}{b} y"),
    ],
)
def test_it_comes_beside_what_stays(source: str, translation: str, alignment: Pairs, expected: str) -> None:
    """After what came before it, with spaces where the script has them, before a closing mark."""
    assert guarded(source, translation, alignment).text == expected


def test_nothing_comes_inside_of_what_stays_or_comes() -> None:
    """A protected string with a space in it is not parted, neither one that is kept nor one that comes in."""
    patterns = compile_patterns(["New York", r"\{\w\}", "a b"])
    source = "New York {x}"
    result = guard(source, protected_spans(source, patterns), "New York", [(0, 0)], patterns)
    assert result.text == "New York {x}"
    source = "u {x} a b"
    result = guard(source, protected_spans(source, patterns), "A B c", [(0, 0), (2, 0), (3, 1)], patterns)
    assert result.text == "a b {x} c"


def test_the_alignment_goes_along() -> None:
    """Words behind an inserted string have other numbers; the string is aligned with itself."""
    result = guarded("Der {a} Hund 1.000 da", "the dog 1,000 there", [(0, 0), (2, 1), (3, 2), (4, 3)])
    assert result.text == "the {a} dog 1.000 there"
    assert result.alignment == straight(5)
    assert [result.text[start:end] for start, end in result.spans] == ["{a}", "1.000"]
    assert guarded("hat 1.000", "has 1,000", [(0, 0), (0, 1), (1, 1)]).alignment == straight(2)
    assert guarded("a {a}.", "b.", [(0, 0), (1, 0)]).alignment == [(0, 0), (1, 0), (1, 1)]
