"""Which place of a translation belongs to a place of its source: an alignment, in characters of both lines.

What is put there, and why, is known to `protection.py` and `markup.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from transformer_mt.text.words import unit_spans

Span = tuple[int, int]
"""Place of the first character, and the place after the last."""
Alignment = Sequence[tuple[int, int]]
"""Pairs (source unit, target unit) from 0; the units are those of `words.unit_spans`."""

# What stands around words and belongs to the sentence, not to them; no sign that numbers or links begin or
# end with, such as % # & / - $
_OPENING = frozenset("\"'([“‘„‚«‹「『《〈（【")
_CLOSING = frozenset(".,;:!?…\"')]”’“‘»›«。，、；：！？」』》〉）】،؛؟।")


class Placing:
    """A line, its translation, and which units of them belong together."""

    def __init__(self, source: str, translation: str, alignment: Alignment) -> None:
        """Read the alignment.

        Raises:
            ValueError: it names a unit that is not there.
        """
        self.source, self.translation = source, translation
        self.source_units, self.target_units = unit_spans(source), unit_spans(translation)
        self.links: list[list[int]] = [[] for _ in self.source_units]
        for source_unit, target_unit in sorted(set(alignment)):
            if not (0 <= source_unit < len(self.source_units) and 0 <= target_unit < len(self.target_units)):
                raise ValueError(
                    f"alignment: there is no {source_unit}-{target_unit} in a line of "
                    f"{len(self.source_units)} and a translation of {len(self.target_units)} units"
                )
            self.links[source_unit].append(target_unit)
        linked = (unit if targets else -1 for unit, targets in enumerate(self.links))
        self._last_linked = list(accumulate(linked, max, initial=-1))

    def units_at(self, start: int, end: int) -> range:
        """Source units that share a character with source[start:end]."""
        return overlapping(self.source_units, start, end)

    def targets(self, source_units: Iterable[int]) -> list[int]:
        """Target units that belong to any of these source units, in order."""
        return sorted({unit for source_unit in source_units for unit in self.links[source_unit]})

    def place_after(self, end: int) -> int:
        """Where in the translation stands what follows source[:end].

        It is after the last target unit of the nearest source unit before it that has any, or at the start.
        A mark of the sentence at the end of that target unit is left behind it, unless source[:end] ends with
        one too.
        """
        units_before = bisect_left(self.source_units, end, key=lambda span: span[0])
        source_unit = self._last_linked[units_before]
        if source_unit < 0:
            return 0
        stop = min(end, self.source_units[source_unit][1])
        start, last = self.target_units[self.links[source_unit][-1]]
        if not ends_with_mark(self.source[stop - 1 : stop]):
            last = without_marks(self.translation, start, last, head=False)[1]
        return last


def overlapping(spans: Sequence[Span], start: int, end: int) -> range:
    """Indices of the spans, which are in order and apart, that share a character with [start, end)."""
    first = bisect_right(spans, start, key=lambda span: span[1])
    return range(first, max(first, bisect_left(spans, end, key=lambda span: span[0])))


def outside(spans: Sequence[Span], place: int) -> Span:
    """The nearest places before and after this one that are inside of none of the spans."""
    inside = overlapping(spans, place, place)
    return spans[inside[0]] if inside else (place, place)


def begins_with_mark(text: str) -> bool:
    """Whether a mark that belongs to the sentence stands first, such as a quotation mark."""
    return text[:1] in _OPENING


def ends_with_mark(text: str) -> bool:
    """Whether a mark that belongs to the sentence stands last, such as a full stop."""
    return text[-1:] in _CLOSING


def is_only_marks(text: str) -> bool:
    """Whether nothing but marks of the sentence stands there."""
    return all(character in _OPENING or character in _CLOSING for character in text)


def without_marks(
    text: str, start: int, end: int, *, like: str = "", head: bool = True, tail: bool = True
) -> Span:
    """Where text[start:end] stands without the marks of the sentence around it, and spaces between them.

    Args:
        like: a mark that this begins (or ends) with is no mark of the sentence here.
        head, tail: which marks to leave out.

    Returns:
        The whole span where there is nothing but marks.
    """
    first, last = start, end
    while (
        head
        and first < last
        and (text[first] in _OPENING or text[first].isspace())
        and text[first] != like[:1]
    ):
        first += 1
    while (
        tail
        and first < last
        and (text[last - 1] in _CLOSING or text[last - 1].isspace())
        and text[last - 1] != like[-1:]
    ):
        last -= 1
    return (first, last) if first < last else (start, end)
