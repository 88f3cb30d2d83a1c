"""markup: what a tag is, which two belong together, and the line without them."""

from __future__ import annotations

import pytest

from transformer_mt.text.markup import Tag, take_out


def tags(line: str) -> list[str]:
    return [tag.text for tag in take_out(line).tags]


@pytest.mark.parametrize(
    "tag",
    [
        "<b>",
        "</b>",
        "</b >",
        "<br/>",
        "<br />",
        '<a href="x.html">',
        "<a href='x > y' title=\"</b>\">",
        "<a href=x/y disabled>",
        '<a href="x"class="y">',
        '<x id = "1"/>',
        "<xliff:g id='a'>",
        "<my-tag.a>",
        "<naïve>",
        "<!-- a > b -->",
        "<!DOCTYPE html>",
        "<?xml version='1.0'?>",
        "<12/>",
        '<script>if (a < b) x("</b>");</script>',
        '<SCRIPT src="a">x</Script >',
        "<style>b > i { c: d }</style>",
        "<![CDATA[a <b>c</b> & d]] ]]>",
    ],
)
def test_a_tag(tag: str) -> None:
    """Found as it stands, among text that looks a little like it."""
    assert tags(f"a < b{tag}<3 {tag}") == [tag, tag]


@pytest.mark.parametrize(
    "text",
    [
        *("a < b", "<3", "x<y", "1<2>1", "</3>", "<>", "< b>", "</ b>", "<a@b.c>", "<http://a.b/c>", "<-->"),
        *("<b", '<a href="x>', "<a =x>", "&lt;b&gt; &amp;", "<!-- a", "<1a>", "<b<i", "a->b <- c"),
        *("a]]>", "<![CDATA[a", "a]]> <!--"),
    ],
)
def test_text_that_is_no_tag(text: str) -> None:
    """B157: signs and entities are text, and the line stays as it is to the last space."""
    assert take_out(f" {text}  x ").text == f" {text}  x "
    assert tags(text) == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Ein <b>großer</b> Hund", "Ein großer Hund"),
        ("Ein <b> großer </b> Hund", "Ein großer Hund"),
        ("Ein<b> großer</b> <i>Hund</i>", "Ein großer Hund"),
        ("auto<b>bahn</b>!", "autobahn!"),
        ("  <p> Ein  Hund </p> ", "Ein  Hund"),
        ("eins<br>zwei<x/>drei<P>vier</P>fünf<!-- c -->sechs", "eins zwei drei vier fünfsechs"),
        ("<li>eins</li><li>zwei</li>", "eins zwei"),
        ("你好<br/>世界", "你好世界"),
        ('Hallo <x id="1"/>, du', "Hallo, du"),
        ('sagt <b>"ja"</b>', 'sagt "ja"'),
        ("<b></b>", ""),
        (" <br/> <!-- --> ", ""),
        ("<br/> Ein", "Ein"),
    ],
)
def test_the_line_without_tags(line: str, text: str) -> None:
    """It reads like a line that never had any: one space for each gap, and one where a tag parted words."""
    assert take_out(line).text == text


@pytest.mark.parametrize(
    ("line", "partners"),
    [
        ("<b>x</b>", [1, 0]),
        ("<b>x<i>y</i></B>", [3, 2, 1, 0]),
        ("<b>x</b> y</b>", [1, 0, None]),
        ("<b>x<i>y</b>z</i>", [2, None, 0, None]),
        ("<b>x<br>y</b>", [2, None, 0]),
        ("<b/>x</b>", [None, None]),
        ("</b>x<b>", [None, None]),
        ("<b><b>x</b>", [None, 2, 1]),
        ("<!-- b -->x<0>y</0><1>", [None, 2, 1]),
        ("<![CDATA[x]y]] ]]> ]]>", [1, 0]),
        ("<![CDATA[]]>x<![CDATA[y]]>", [1, 0, 3, 2]),
        ("<![CDATA[x &amp; y]]><![CDATA[<]]>", [None, None]),
        ("<script/>x<scripts>y</scripts><script>z</script>", [None, 2, 1, None]),
        ("<script>x<style>y", [None, None]),
    ],
)
def test_pairs(line: str, partners: list[int | None]) -> None:
    """A closing tag closes the nearest one of its name; what that one holds open has no partner."""
    assert [tag.partner for tag in take_out(line).tags] == partners


def test_where_tags_stood() -> None:
    """In the text without tags, and with what beside them."""
    assert take_out("ab <i>c</i>d<br/>e").tags == [
        Tag("<i>", 2, 1, space_before=True, space_after=False, parts=False),
        Tag("</i>", 4, 0, space_before=False, space_after=False, parts=False),
        Tag("<br/>", 5, None, space_before=False, space_after=False, parts=True),
    ]
