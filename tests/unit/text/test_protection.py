"""protection: what the patterns match, what a translation holds already, and patterns that are refused."""

from __future__ import annotations

import pytest

from transformer_mt.errors import ConfigError
from transformer_mt.text.protection import (
    compile_patterns,
    guard,
    is_all_protected,
    lacks_protected,
    protected_spans,
)

NUMBERS = r"\d+(?:[.,]\d+)*"


def matches(line: str, *patterns: str) -> list[str]:
    return [line[start:end] for start, end in protected_spans(line, compile_patterns(patterns))]


def lacks(source: str, translation: str, *patterns: str) -> bool:
    compiled = compile_patterns(patterns)
    return lacks_protected(source, protected_spans(source, compiled), translation, compiled)


def kept(
    source: str, translation: str, alignment: list[tuple[int, int]], pattern: str
) -> list[tuple[int, int]]:
    """Where `guard` finds the strings of a translation that it leaves as it is."""
    compiled = compile_patterns([pattern])
    result = guard(source, protected_spans(source, compiled), translation, alignment, compiled)
    assert result.text == translation
    return result.spans


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            "(a\n",
            r"^--protect '\(a ': is no regular expression \(missing \), unterminated.*write \\ before a sign",
        ),
        ("a{99999999999}", "--protect 'a.9{11}.': is no regular expression"),
        ("[z-a]", "is no regular expression .bad character range"),
        (r"\d*", r"^--protect '\\d\*': also matches empty text.*with \+ instead of \*$"),
        ("", "--protect '': also matches empty text"),
        (r"\b", r"^--protect '\\b': matches places between characters and no character.* instead of \\b$"),
        (r"(?=a)(?!abc+)", "matches places between characters"),
        (r"(?<=x)|\B", "matches places between characters"),
        (r"(?i)(?=ab)", "matches places between characters"),
    ],
)
def test_patterns_that_protect_nothing_are_refused(pattern: str, message: str) -> None:
    """In one line that names the flag and the pattern."""
    with pytest.raises(ConfigError, match=message) as error:
        compile_patterns(["fine", pattern])
    assert "\n" not in str(error.value)


def test_an_error_names_another_place_too() -> None:
    """A pattern may come from elsewhere than the command line."""
    with pytest.raises(ConfigError, match="^protect '': also"):
        compile_patterns([""], where="protect")


def test_matches_that_share_a_character_are_one() -> None:
    """Each of them survives with the whole; matches side by side stay two, empty ones count for nothing."""
    assert matches("see http://a.b/17 or 17", r"\d+", r"http\S+") == ["http://a.b/17", "17"]
    assert matches("abcd", "ab", "bc") == ["abc"]
    assert matches("{a}{b}", r"\{\w\}") == ["{a}", "{b}"]
    assert matches("a b", r"a|\b") == ["a"]
    assert matches("no number", NUMBERS) == []


@pytest.mark.parametrize(
    ("source", "translation", "missing"),
    [
        ("5 Hunde", "5 dogs", False),
        ("5 Hunde", "15 dogs", True),
        ("5 Hunde", "1.5 dogs", True),
        ("5 Hunde", "5km", False),
        ("5 und 5", "5 and five", True),
        ("5 und 15", "15", True),
        ("1,000", "1.000", True),
        ("有5个", "5只", False),
        ("ohne", "", False),
    ],
)
def test_only_a_whole_string_counts(source: str, translation: str, *, missing: bool) -> None:
    """A number inside of another one is not that number."""
    assert lacks(source, translation, NUMBERS) is missing


def test_marks_around_a_match_do_not_hide_it() -> None:
    """A link pattern takes the full stop along where one follows; the link is there all the same."""
    assert not lacks("Siehe http://a.b heute", "Look at http://a.b.", r"http\S+")
    assert not lacks("%size", "%size", "%s")


def test_a_string_inside_of_a_longer_one_needs_a_place_of_its_own() -> None:
    """Both were in the source, so both are wanted."""
    assert lacks("a.b/c a.b", "a.b/c", r"a\.b(?:/c)?")
    assert not lacks("a.b/c a.b", "a.b a.b/c", r"a\.b(?:/c)?")
    assert not lacks("{} {{}}", "{{}} {}", r"\{+\}+")


def test_of_several_places_the_aligned_one_serves() -> None:
    """The other one may have to give way to what is missing."""
    assert kept("x 5", "5 y 5", [(1, 2)], NUMBERS) == [(4, 5)]
    assert kept("x 5", "5 y 5", [], NUMBERS) == [(0, 1)]
    assert kept("5 5", "5 y 5 5", [(0, 3), (1, 3)], NUMBERS) == [(0, 1), (6, 7)]


@pytest.mark.parametrize(
    ("line", "alone"),
    [("{a}", True), ("{a}, {b}!", True), ("({a})", True), ("{a} b", False), ("{a}好", False), ("...", False)],
)
def test_a_line_of_protected_strings_alone(line: str, *, alone: bool) -> None:
    """It is its own translation; a line without any is not."""
    assert is_all_protected(line, protected_spans(line, compile_patterns([r"\{\w\}"]))) is alone
