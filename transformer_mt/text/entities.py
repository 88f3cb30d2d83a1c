"""Entities of HTML and XML in a text: read as the characters that they stand for, and written again.

A model shall see `&`, not `&amp;`. What has become of the text is written as the text was: a character as an
entity where it was one. Knows neither tags nor tokens.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# What markup would be broken by.
_ESCAPES = {"&": "&amp;", "<": "&lt;"}

Span = tuple[int, int]


@dataclass(frozen=True)
class Readable:
    """A text as a reader sees it; written tells of each character how it stands in the line."""

    text: str
    written: Sequence[str]

    @property
    def has_entities(self) -> bool:
        """Whether any character is written in another way than as itself."""
        return self.written is not self.text

    def places(self, of: Iterable[int]) -> list[int]:
        """Places of the line -> places of the text; for one inside of an entity the one after it."""
        starts = [0, *accumulate(map(len, self.written))]
        return [bisect_left(starts, place) for place in of]


def read_entities(line: str) -> Readable:
    """Read the entities of a line that stand for one character; a tab or an end of line is none of those."""
    written: list[str] = []
    copied = 0
    for match in _ENTITY.finditer(line):
        if _character(match[0]) is not None:
            written += [*line[copied : match.start()], match[0]]
            copied = match.end()
    if not written:
        return Readable(line, line)
    written += line[copied:]
    return Readable("".join(one if len(one) == 1 else _character(one) or "" for one in written), written)


def _character(entity: str) -> str | None:
    found = html.unescape(entity)
    return found if len(found) == 1 and unicodedata.category(found) not in ("Cc", "Cs") else None


def write_entities(
    text: str, source: Readable, unchanged: Sequence[tuple[Span, Span]] = (), *, typed: int = 0
) -> list[str]:
    """How each character of a translation is written in a line of markup.

    The first of a kind as the first of its kind in the source, and so on; one more as an entity, if any of
    them is one. `&` and `<`, which markup cannot hold, are entities where the source has none of them.

    Args:
        text: the translation.
        source: what it is a translation of.
        unchanged: spans of the translation, and of the source that they are copies of: written in the same
            way, all the characters of one in the place of its first.
        typed: so many characters at the start are written as they are.
    """
    written: list[str] = list(text)
    taken = [[False] * len(side) for side in (text, source.text)]
    taken[0][:typed] = [True] * min(typed, len(text))
    for (start, end), (first, last) in unchanged:
        taken[1][first:last] = [True] * (last - first)
        if start >= typed:
            taken[0][start:end] = [True] * (end - start)
            written[start:end] = ["".join(source.written[first:last]), *[""] * (end - start - 1)]
    forms: dict[str, list[str]] = defaultdict(list)
    for character, form, used in zip(source.text, source.written, taken[1], strict=True):
        if not used:
            forms[character].append(form)
    seen: Counter[str] = Counter()
    for place, character in enumerate(text):
        if not taken[0][place]:
            written[place] = _form(character, forms[character], seen[character])
            seen[character] += 1
    return written


def _form(character: str, forms: Sequence[str], number: int) -> str:
    if number < len(forms):
        return forms[number]
    if not forms:
        return _ESCAPES.get(character, character)
    return next((form for form in forms if form != character), character)
