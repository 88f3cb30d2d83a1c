"""verbatim: tags and protected strings together."""

from __future__ import annotations

import pytest

from transformer_mt.errors import ConfigError
from transformer_mt.text.verbatim import Verbatim


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
        ("", False),
        (" \u3000", False),
    ],
)
def test_lines_that_no_model_needs_to_see(line: str, *, untouched: bool) -> None:
    """They come back as they are; what is blank without any tag stays the translator's."""
    assert Verbatim([r"\{\w\}"], tags=True).source(line).untouched == (line if untouched else None)


def test_a_line_stays_one_line() -> None:
    """A text given to the API may hold ends of lines, which cannot survive in a line."""
    source = Verbatim(["a.b"], tags=True).source("<x\ny='a\nb'/>a\nb x")
    assert source.text == "a b x"
    assert source.stripped.tags[0].text == "<x y='a b'/>"


def test_a_bad_pattern_is_told_at_once() -> None:
    """Before any line is read."""
    with pytest.raises(ConfigError, match=r"--protect '\[': is no regular expression"):
        Verbatim(["["])
