"""verbatim: tags and protected strings together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import pytest

from transformer_mt.errors import ConfigError
from transformer_mt.text.entities import Readable
from transformer_mt.text.verbatim import Verbatim


def steps(run: Callable[[], object]) -> int:
    """How many lines of Python it runs: the same on every machine, unlike a time."""
    number = 0

    def count(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal number
        number += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        run()
    finally:
        sys.settrace(before)
    return number


def test_protected_strings_are_looked_for_between_tags() -> None:
    """A string inside of a tag is safe anyway; the alignment that comes back is of the text without tags."""
    verbatim = Verbatim([r"\d+"], tags=True)
    source = verbatim.source('Der <a href="5">Hund 17</a> da')
    assert (source.text, source.untouched) == ("Der Hund 17 da", None)
    assert verbatim.needs_alignment(source, "the dog 17 there")
    text, alignment = verbatim.finish(source, "the dog there", [(0, 0), (1, 1), (3, 2)])
    assert text == 'the <a href="5">dog 17</a> there'
    assert alignment == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_no_tag_parts_a_protected_string() -> None:
    """A pair around one word of it takes in the whole."""
    verbatim = Verbatim(["New York"], tags=True)
    source = verbatim.source("in New <b>York</b>")
    assert verbatim.finish(source, "in New York", [(0, 0), (1, 1), (2, 2)])[0] == "in <b>New York</b>"


def test_without_tags_they_are_text() -> None:
    """They may be protected by a pattern then."""
    verbatim = Verbatim(["</?b>"])
    source = verbatim.source("ein <b>Hund</b>")
    assert source.text == "ein <b>Hund</b>"
    assert not verbatim.needs_alignment(source, "a <b> dog </b>")
    assert verbatim.finish(source, "a <b> dog </b>", [])[0] == "a <b> dog </b>"


@pytest.mark.parametrize(
    ("line", "untouched"),
    [
        ("<br/> <!-- x -->", True),
        ("{a}.", True),
        ("<b>{a}</b>, {b}", True),
        ("<b>{a}</b> x", False),
        ("<b>.</b>", False),
        ("&nbsp;&#10;", True),
        ("{a} &amp; {b}", True),
        ("&#20013;", False),
        ("", False),
        (" \u3000", False),
    ],
)
def test_lines_that_no_model_needs_to_see(line: str, *, untouched: bool) -> None:
    """They come back as they are; what is blank without any tag stays the translator's."""
    assert Verbatim([r"\{\w\}"], tags=True).source(line).untouched == (line if untouched else None)


def test_a_model_sees_the_characters_of_entities() -> None:
    """And the tags stand where they stood among them; in the translation they are entities again."""
    verbatim = Verbatim([], tags=True)
    source = verbatim.source("&lt;R&amp;D&gt; <b>und &#39;Co&#39;</b> &amp; x")
    assert source.text == "<R&D> und 'Co' & x" and not source.is_plain
    assert [tag.place for tag in source.stripped.tags] == [5, 14]
    links = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]
    text, alignment = verbatim.finish(source, "<R&D> and 'Co' & x", links)
    assert text == "&lt;R&amp;D&gt; <b>and &#39;Co&#39;</b> &amp; x"
    assert alignment == links
    assert Verbatim([]).source("R&amp;D").text == "R&amp;D"
    assert not verbatim.source("R&amp;D").is_plain
    plain = verbatim.source("R&D")
    assert plain.is_plain and verbatim.finish(plain, "R&D & Co", [])[0] == "R&D & Co"


@pytest.mark.parametrize(
    ("pattern", "line", "translation", "finished"),
    [
        (r"&\w+;", "a &copy; b", "a b", "a &copy; b"),
        (r"https://\S+", "a https://x/?a=1&amp;b b", "a b", "a https://x/?a=1&amp;b b"),
        ("AT&T", "a AT&amp;T b", "a b", "a AT&amp;T b"),
        ("AT&T", "a AT&amp;T b AT&T", "a AT&T b", "a AT&amp;T b AT&T"),
        (r"\d+", "a &#39; b", "a b", "a b"),
        (r"\d+", "a 39 &#39; b", "a b '", "a 39 b &#39;"),
        (";x", "a &lt;x b", "a b", "a b"),
        ("j", "a &fjlig; b", "a b", "a &fjlig; b"),
    ],
)
def test_protected_strings_are_written_as_they_stood(
    pattern: str, line: str, translation: str, finished: str
) -> None:
    """They are found with their entities, and as they are read; but a piece of an entity is no string."""
    verbatim = Verbatim([pattern], tags=True)
    source = verbatim.source(line)
    words = len(translation.split())
    links = [(0, 0), (source.text.split().index("b"), translation.split().index("b"))][:words]
    assert verbatim.finish(source, translation, links)[0] == finished


def test_a_line_end_that_is_an_entity_is_a_tag() -> None:
    """It parts words, and stands again where it stood."""
    verbatim = Verbatim([], tags=True)
    source = verbatim.source("eins&#10;zwei &#xD; drei&Tab;")
    assert source.text == "eins zwei drei"
    links = [(0, 0), (1, 1), (2, 2)]
    assert verbatim.finish(source, "one two three", links)[0] == "one&#10;two &#xD; three&Tab;"


@pytest.mark.parametrize(
    ("line", "translation", "finished"),
    [
        ("a <![CDATA[b]]> c", "C B & A", "C <![CDATA[B]]> &amp; A"),
        ("a <![CDATA[R & D]]> c", "C A", "C A <![CDATA[R & D]]>"),
        ("<script>a < b</script>a c", "C A", "<script>a < b</script>C A"),
    ],
)
def test_a_section_stays_what_it_is(line: str, translation: str, finished: str) -> None:
    """It holds its words, if none of them would mean another thing outside; else it is as it was."""
    verbatim = Verbatim([], tags=True)
    source = verbatim.source(line)
    words = source.text.split()
    links = [(unit, translation.split().index(word.upper())) for unit, word in enumerate(words)]
    assert verbatim.finish(source, translation, links)[0] == finished


def test_a_prefix_is_no_markup() -> None:
    """What the user has typed begins the translation as it is."""
    verbatim = Verbatim([], tags=True)
    source = verbatim.source("<b>a</b> &amp; b")
    links = [(0, 2), (1, 3), (2, 4)]
    assert verbatim.finish(source, "R&D &amp; a & b", links, prefix="R&D &amp;")[0] == (
        "R&D &amp; <b>a</b> &amp; b"
    )
    assert verbatim.finish(source, "R&D", [(0, 0)])[0] == "<b>R&amp;D</b>"


def test_a_line_stays_one_line() -> None:
    """A text given to the API may hold ends of lines, which cannot survive in a line."""
    source = Verbatim(["a.b"], tags=True).source("<x\ny='a\nb'/>a\nb x")
    assert source.text == "a b x"
    assert source.stripped.tags[0].text == "<x y='a b'/>"


def test_a_bad_pattern_is_told_at_once() -> None:
    """Before any line is read."""
    with pytest.raises(ConfigError, match=r"--protect '\[': is no regular expression"):
        Verbatim(["["])


def test_places_of_a_line_are_counted_once_for_all_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time they are counted through the whole line."""
    calls: list[Readable] = []
    places = Readable.places

    def counted(self: Readable, of: Iterable[int]) -> list[int]:
        calls.append(self)
        return places(self, of)

    monkeypatch.setattr(Readable, "places", counted)
    assert len(Verbatim([r"\d+"], tags=True).source("1 &amp; " * 9).spans) == 9
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("piece", "alignment"),
    [
        ("1 &amp; ", True),
        ("1 &amp; ", False),
        ("eins<br/> ", True),
        ("eins<br/> ", False),
        ("a <b>b</b> ", False),
    ],
)
def test_a_line_of_four_times_the_length_takes_about_four_times_as_long(
    piece: str, *, alignment: bool
) -> None:
    """Not sixteen times, aligned or not: what is known of the whole line is found out once."""
    verbatim = Verbatim([r"\d+"], tags=True)

    def calls(number: int) -> int:
        source = verbatim.source(piece * number)
        translation = source.text if alignment else "x " * number
        links = [(unit, unit) for unit in range(len(source.text.split()))] if alignment else []
        return steps(lambda: verbatim.finish(verbatim.source(piece * number), translation, links))

    assert calls(400) < 6 * calls(100)
