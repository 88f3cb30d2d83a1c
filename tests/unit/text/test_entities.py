"""entities: read as characters, and written again as they were."""

from __future__ import annotations

import pytest

from transformer_mt.text.entities import Readable, read_entities, write_entities


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("A &amp; B", "A & B"),
        ("&lt;b&gt; &quot;x&quot; &#39;y&#x27;", "<b> \"x\" 'y'"),
        ("f&uuml;r 5&nbsp;km", "für 5\u00a0km"),
        ("&amp;lt;", "&lt;"),
        ("&#20013;&#x1F600;", "中😀"),
        ("&#128;", "€"),
        ("&fjlig;ord", "fjord"),
        ("A & B; AT&T; &amp &; &#; &#x; &nothing; &#99999999;", None),
        ("&#10;&#9;&#1;&NewLine;&notit;", None),
        ("", None),
    ],
)
def test_an_entity_is_the_character_that_it_stands_for(line: str, text: str | None) -> None:
    """None: nothing is one. What is no character of text, or several, stays."""
    readable = read_entities(line)
    if text is None:
        assert not readable.has_entities and readable.text == line
        return
    assert (readable.text, "".join(readable.written), readable.has_entities) == (text, line, True)
    assert len(readable.written) == len(text)


def test_places_of_the_line_are_places_of_the_text() -> None:
    """Inside of an entity none begins."""
    readable = read_entities("a&lt;b&gt;")
    assert readable.places([0, 1, 2, 4, 5, 6, 10]) == [0, 1, 2, 2, 2, 3, 4]
    two = read_entities("a&fjlig;b")
    assert two.places([0, 1, 2, 7, 8, 9]) == [0, 1, 3, 3, 3, 4]
    assert [two.whole(span) for span in ((0, 1), (0, 2), (2, 3), (3, 4))] == [(0, 1), (0, 3), (1, 3), (3, 4)]


@pytest.mark.parametrize(
    ("line", "translation", "written"),
    [
        ("A &amp; B", "B & A", "B &amp; A"),
        ("A &amp; B", "C & B & A < 'D' > E", "C &amp; B &amp; A &lt; 'D' > E"),
        ("A & B &amp; C", "C & B & A & D", "C & B &amp; A &amp; D"),
        ("A & B &lt; C", "B & A & D < C", "B & A & D &lt; C"),
        ('&quot;A&quot; "B" &#34;C&#34;', '"a" "b" "c"', '&quot;a&quot; "b" &#34;c&#34;'),
        ("f&uuml;r", "Münch für", "M&uuml;nch f&uuml;r"),
        ("A &amp; B", "A und B", "A und B"),
        ("A B", "A & B < C", "A &amp; B &lt; C"),
        ("A & B", "A & B & C", "A & B & C"),
        ("&fjlig;ord f j", "fj f fjord j", "&fjlig; f fjord j"),
        ("&fjlig; &fjlig; &fjlig;", "f fj fj", "f &fjlig; &fjlig;"),
        ("&nvlt;", "<", "&lt;"),
    ],
)
def test_what_was_an_entity_is_one_again(line: str, translation: str, written: str) -> None:
    """In order; one more of a kind is one too, and so is what markup cannot hold and the source has not."""
    assert "".join(write_entities(translation, read_entities(line))) == written


def test_what_is_copied_is_written_as_its_origin() -> None:
    """Whatever its own characters are elsewhere, of which they do not count."""
    readable = read_entities("R&D &amp; AT&amp;T & x")
    found = write_entities("& AT&T & R&D &", readable, [((2, 6), (6, 10)), ((9, 12), (0, 3))])
    assert "".join(found) == "&amp; AT&amp;T & R&D &amp;"
    assert len(found) == 14


def test_what_was_typed_stays_as_it_is() -> None:
    """Also where a copy begins there."""
    readable = read_entities("a &amp; b")
    found = write_entities("a & b &", readable, [((2, 3), (2, 3))], typed=5)
    assert "".join(found) == "a & b &amp;"
    assert "".join(write_entities("&", Readable("", ""), typed=9)) == "&"
