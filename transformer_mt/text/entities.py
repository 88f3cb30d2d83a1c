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
    """A text as a reader sees it; written tells of each character how it stands in the line.

    Of an entity that stands for two characters, the first is written as nothing and the second as all of it.
    """

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

    def whole(self, span: Span) -> Span:
        """A span of the text, widened so that it cuts no entity."""
        start, end = span
        return start - (start > 0 and not self.written[start - 1]), end + (not self.written[end - 1])


def read_entities(line: str) -> Readable:
    """Read the entities of a line that stand for one or two characters, but no tab and no end of line."""
    written: list[str] = []
    copied = 0
    for match in _ENTITY.finditer(line):
        if characters := _characters(match[0]):
            written += [*line[copied : match.start()], *[""] * (len(characters) - 1), match[0]]
            copied = match.end()
    if not written:
        return Readable(line, line)
    written += line[copied:]
    return Readable("".join(one if len(one) == 1 else _characters(one) for one in written), written)


def _characters(entity: str) -> str:
    """What an entity stands for; "" if it is none, or none of text."""
    found = html.unescape(entity)
    is_text = len(found) <= 2 and all(unicodedata.category(one) not in ("Cc", "Cs") for one in found)
    return found if is_text else ""


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
    _write_twos(text, source, taken, written)
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


def _write_twos(text: str, source: Readable, taken: Sequence[list[bool]], written: list[str]) -> None:
    """Two characters that are one entity in the source are one where they stand side by side again."""
    searched: Counter[str] = Counter()
    for place in (place for place, form in enumerate(source.written) if not form and not taken[1][place]):
        taken[1][place : place + 2] = [True] * 2
        both = source.text[place : place + 2]
        while (found := text.find(both, searched[both])) >= 0:
            searched[both] = found + 1
            if not any(taken[0][found : found + 2]):
                taken[0][found : found + 2] = [True] * 2
                written[found : found + 2] = source.written[place : place + 2]
                break
        else:
            searched[both] = len(text)


def _form(character: str, forms: Sequence[str], number: int) -> str:
    if number < len(forms):
        return forms[number]
    if not forms:
        return _ESCAPES.get(character, character)
    return next((form for form in forms if form != character), character)
