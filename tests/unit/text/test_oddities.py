"""Signs of broken translations, each by hand."""

from __future__ import annotations

import itertools
import random
import re
import time

import pytest

from transformer_mt.text.oddities import copies, loops, oddities, repeats
from transformer_mt.text.proportion import Proportion

# A target as long as its source; half of it is too short, a third less if the end is missing.
EVEN = Proportion(0.0, 1.0, short=-0.6, unfinished=-0.3, long=0.7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("very very very good", False),
        ("very very very very good", True),
        ("we go we go we go", True),
        ("we go we go now we go", False),
        ("x a b c a b c a b c y", True),
        ("", False),
        ("a a a", False),
    ],
)
def test_what_counts_as_repeated(text: str, expected: bool) -> None:
    """Pins four of one word, three of a longer sequence, anywhere in the line."""
    assert repeats(text.split()) is expected


def test_repetitions_are_found_wherever_they_begin_and_in_no_time() -> None:
    """Pins the places of all short texts of two letters against a pattern, and 50,000 words in a line."""
    pattern = re.compile(r"(.)\1{3}|(..+)\2\2")
    for length in range(13):
        for letters in itertools.product("ab", repeat=length):
            assert repeats(letters) is bool(pattern.search("".join(letters)))
    draw = random.Random(1)
    assert not repeats([str(draw.random()) for _ in range(50_000)])


@pytest.mark.parametrize(
    ("letters", "twice", "expected"),
    [
        ("abcdeabcde", 5, True),
        ("abcdeabcde", None, False),
        ("abcdeabcde", 6, False),
        ("xabcdefabcdef", 5, True),
        ("abcdexabcde", 5, False),
        ("abcabc", 5, False),
    ],
)
def test_a_long_stretch_that_stands_twice_counts_where_it_is_asked_for(
    letters: str, twice: int | None, expected: bool
) -> None:
    """Pins the least length, and that shorter ones still need three times."""
    assert repeats(letters, twice=twice) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the the the the", True),
        ("The the THE the", True),
        ("hahaha", False),
        ("Hahahaha", True),
        ("a dolgergergerger", True),
        ("a dolgergerg", False),
        ("ha-ha-ha-ha", False),
        ("no!!!!!!!!", True),
        ("no!!!!!!!", False),
        ("wait....... ______", False),
        ("ein Bahnhohohohof", True),
        ("Schifffahrt www.a.b", False),
        ("他说unununun了", True),
        ("भाभाभाभा", True),
        ("10000000000 people", False),
        ("ha ha ha", False),
        ("a man in a hat a man in a hat", True),
        ("我们我们我们", True),
        ("他穿着红色的衣服走在街他穿着红色的衣服走在街", True),
        ("Yes.", False),
        ("", False),
    ],
)
def test_loops_in_words_and_inside_words(text: str, expected: bool) -> None:
    """B059: what a model without an end in sight writes; numbers and short rows are no loops."""
    assert loops(text) is expected


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Ein Mann geht langsam.", "Ein Mann geht langsam."),
        ("ein Mann geht langsam über die Straße", "ein Mann geht langsam über die Straße "),
        ("Ein Mann geht.", "Ein Mann geht."),
        ("Ein Mann geht heute langsam über die Straße", "A Mann geht heute langsam über die Straße"),
        ("EIN MANN GEHT LANGSAM", "EIN MANN GEHT LANGSAM"),
        ("我们走在街上。", "我们走在街上。"),
        ("你好吗？", "你好吗？"),
        ("я иду домой.", "я иду домой."),
        ("वह घर जाता है।", "वह घर जाता है।"),
    ],
)
def test_copies_of_sentences(source: str, target: str) -> None:
    assert copies(source, target)


@pytest.mark.parametrize(
    "text",
    [
        "3.5",
        "1. 2. 3.",
        "Angela Merkel",
        "Leonardo da Vinci",
        "Vincent van Gogh, Auvers-sur-Oise",
        "https://example.org/a/b?c=d some text here",
        "for i in range(10): print(i)",
        "return x;",
        "cd /usr/share and so on",
        "mail@example.org",
        "Taxi",
        "Hotel.",
        "IBM PC",
        "北京",
        "東京都",
        "محمد علي",
        "!!!",
        "",
    ],
)
def test_names_numbers_addresses_and_code_may_stay(text: str) -> None:
    """A copy is right where there is nothing to translate."""
    assert not copies(text, text)
    assert oddities(text, text) == ()


def test_a_translation_with_words_in_common_is_no_copy() -> None:
    assert not copies("der Film in Berlin war warm in der Hand", "the film in Berlin was warm in the hand")


def test_signs_have_names_and_an_order() -> None:
    """Each sign at most once; a source that does the same excuses a loop, a blank one everything."""
    assert oddities("ein Haus", " \u200b") == ("empty",)
    assert oddities(" ", "") == ()
    assert oddities("ha ha ha ha ha", "ha ha ha ha ha") == ()
    assert oddities("er lacht laut", "he he he he") == ("loop",)
    copied = "wir gehen nach oben und " * 3
    assert oddities("wir gehen nach oben und", copied, EVEN) == ("loop", "copy", "long")
    assert oddities("Yes.", "Ja.", EVEN) == ()


def test_proportion_speaks_of_lengths_only_where_it_is_known() -> None:
    source = "Zwei Hunde laufen über eine grüne Wiese und bellen."
    assert oddities(source, "Two dogs") == ()
    assert oddities(source, "Two dogs", EVEN) == ("short",)
    assert oddities(source, "Two dogs run across a green meadow, barking.", EVEN) == ()


@pytest.mark.parametrize("unit", ["a", "a ", "ab ", "。", "我", "(", "https://a", "x1 ", "wort "])
def test_looking_takes_time_in_proportion_to_the_line(unit: str) -> None:
    """Pins 20,000 characters of the worst kinds, against themselves and against something else."""
    text = unit * (20_000 // len(unit))
    started = time.perf_counter()
    oddities(text, text, EVEN)
    oddities("ein Haus", text, EVEN)
    oddities(text, "".join(map(chr, range(0x4E00, 0x9000))), EVEN)
    assert time.perf_counter() - started < 5.0
