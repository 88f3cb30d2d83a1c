"""Tags of HTML and XML in a line: taken out before it is translated, put back around what belongs to them.

A tag is what looks like one: `<b>`, `</b>`, `<br/>`, `<a href="x > y">`, `<!-- … -->`, `<?…>`, and numbered
pairs such as `<0>` with `</0>`, which catalogues of messages use. A script or style is one tag with all in
it. So is a section `<![CDATA[ … ]]>` that holds `<` or `&`, which mean themselves there and nowhere else; any
other section is a pair. Any other `<` is text, and so are entities, but for tabs and ends of line: `&#10;`
stands where it stands as `<br/>` does.
Lines only: a pair that opens in one line and closes in another is two tags without a partner.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transformer_mt.text.words import needs_no_space

_TAG = re.compile(
    r"""<(?: (?i:(?P<whole>script|style)(?:\s[^<>]*+(?<!/))?>(?:(?!</?(?P=whole)[\s>]).)*+</(?P=whole)\s*+>)
         | (?P<section>!\[CDATA\[) (?=[^<&\]]*+(?:\](?!\]>)[^<&\]]*+)*+\]\]>)
         | !\[CDATA\[ (?:(?!<!\[CDATA\[|\]\]>).)*+ \]\]>
         | (?P<close>/)? (?P<name>[^\W\d][\w:.-]*+|\d++)
             (?: (?:\s++|(?<=["'])) [^\s"'<>/=]++ (?: \s*+=\s*+ (?:"[^"]*+"|'[^']*+'|[^\s"'=<>`]++) )?+ )*+
             \s*+ (?P<empty>/)? >
         | !--(?:(?!--).)*+-->
         | [!?][A-Za-z][^<>]*+> )
         | (?P<end>\]\]>)
         | (?P<gap>&(?:\#0*(?:9|10|13)|\#[xX]0*[9aAdD]|Tab|NewLine);)""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*+")
# Elements that part words although no space stands beside them.
_PARTING = re.compile(
    "address|article|aside|blockquote|body|br|caption|center|d[dlt]|div|fieldset|figcaption|figure|footer|form|"
    "h[1-6]|head|header|hr|html|img|input|li|main|nav|ol|option|p|pre|section|table|tbody|t[dhr]|textarea|tfoot|"
    "thead|title|ul"
)
TIGHT = frozenset(".,;:!?…)]")
"""Marks that no space precedes."""


@dataclass(frozen=True)
class Tag:
    """One tag of a line.

    text: as it stands in the line. place: where it stood in the text without tags. partner: index of the tag
    that it forms a pair with. space_before, space_after: whether white space stood beside it. parts: words
    met there without a space, and the text without tags has one.
    """

    text: str
    place: int
    partner: int | None
    space_before: bool
    space_after: bool
    parts: bool


@dataclass(frozen=True)
class Stripped:
    """A line without its tags, and the tags in order."""

    text: str
    tags: list[Tag]


def take_out(line: str) -> Stripped:
    """Take the tags out of a line; what a model shall translate remains.

    White space around a tag is kept once, and none at the ends of the line. A line without tags stays as it
    is.
    """
    found = _found(line)
    if not found:
        return Stripped(line, [])
    partners = _partners(found)
    text, copied = "", 0
    tags: list[Tag] = []
    for members in _neighbours(found, line):
        text += line[copied : members[0].start()].rstrip()
        sides = [_spaces_beside(line, member) for member in members]
        copied = _after_space(line, members[-1].end())
        spaced = any(before or after for before, after in sides)
        space = _space_instead(text[-1:], line[copied : copied + 1], members, spaced=spaced)
        for member, (before, after) in zip(members, sides, strict=True):
            partner = partners.get(len(tags))
            tags.append(Tag(member[0], len(text), partner, before, after, bool(space) and not spaced))
        text += space
    return Stripped(text + line[copied:], tags)


def _found(line: str) -> list[re.Match[str]]:
    """What is a tag: `]]>` only with a partner, a number such as "<2>" so too or closed in itself."""
    found = list(_TAG.finditer(line))
    partners = _partners(found)
    return [
        match
        for index, match in enumerate(found)
        if index in partners or match["empty"] or not (match["end"] or (match["name"] or "").isdigit())
    ]


def _neighbours(found: Sequence[re.Match[str]], line: str) -> Iterator[list[re.Match[str]]]:
    """Tags between which only white space stands, together."""
    group = [found[0]]
    for match in found[1:]:
        if _after_space(line, group[-1].end()) < match.start():
            yield group
            group = []
        group.append(match)
    yield group


def _after_space(line: str, place: int) -> int:
    match = _SPACE.match(line, place)
    return match.end() if match else place


def _spaces_beside(line: str, tag: re.Match[str]) -> tuple[bool, bool]:
    return line[max(tag.start() - 1, 0) : tag.start()].isspace(), line[tag.end() : tag.end() + 1].isspace()


def _space_instead(left: str, right: str, tags: Sequence[re.Match[str]], *, spaced: bool) -> str:
    """What stands between two characters when the tags between them are gone; "" is an end of the line."""
    if not left or not right:
        return ""
    if spaced:
        return "" if right in TIGHT else " "
    parting = any(
        tag["empty"] or tag["gap"] or _PARTING.fullmatch((tag["name"] or "").lower()) for tag in tags
    )
    return " " if parting and not (needs_no_space(left) or needs_no_space(right)) else ""


def _partners(found: Sequence[re.Match[str]]) -> dict[int, int]:
    """Indices of opening tags -> of the tags that close them, and back. What is not nested well has none."""
    partners: dict[int, int] = {}
    opened: list[tuple[str, int]] = []
    waiting: Counter[str] = Counter()
    for index, tag in enumerate(found):
        name = "[" if tag["section"] or tag["end"] else (tag["name"] or "").lower()
        if not name or tag["empty"]:
            continue
        if not (tag["close"] or tag["end"]):
            opened.append((name, index))
            waiting[name] += 1
        elif waiting[name]:
            while True:
                top, partner = opened.pop()
                waiting[top] -= 1
                if top == name:
                    break
            partners[partner], partners[index] = index, partner
    return partners
