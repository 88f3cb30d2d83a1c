"""What the pairs of tags of a line enclose in its translation: nested as in the source.

Where they are written, and where single tags come, is known to `tag_layout.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from transformer_mt.text.markup import Tag
from transformer_mt.text.placing import (
    Placing,
    Span,
    begins_with_mark,
    ends_with_mark,
    outside,
    without_marks,
)


def pair_spans(tags: Sequence[Tag], placing: Placing, unbroken: Sequence[Span]) -> dict[int, Span]:
    """Opening tags -> what their pairs enclose, without those that enclose nothing.

    Of two spans that share a word one holds the other, as the pair did in the source.

    Args:
        tags: of the line.
        placing: the line without tags, and its translation.
        unbroken: places of the translation, in order and apart, inside of which no span begins or ends.
    """
    return _Pairs(tags, placing, unbroken).spans


class _Pairs:
    """Pairs of tags, with what they enclose in a translation."""

    def __init__(self, tags: Sequence[Tag], placing: Placing, unbroken: Sequence[Span]) -> None:
        self._tags = tags
        self._placing = placing
        self._unbroken = unbroken
        self.spans: dict[int, Span] = {}
        self._parents: dict[int, int | None] = {}
        self._read()
        self._widen()
        self._part()

    def _read(self) -> None:
        """What each pair encloses by itself, and which pair is around it."""
        around: list[int] = []
        for index, tag in enumerate(self._tags):
            if tag.partner is None:
                continue
            if tag.partner < index:
                around.pop()
            elif span := self._span(tag, self._tags[tag.partner]):
                self.spans[index], self._parents[index] = span, around[-1] if around else None
                around.append(index)
            else:
                around.append(index)

    def _span(self, opening: Tag, closing: Tag) -> Span | None:
        """What a pair encloses in the translation, if anything."""
        placing, source = self._placing, self._placing.source
        start, end = opening.place, closing.place
        units = placing.units_at(start, end)
        if not units or not placing.target_units:
            return None
        if start <= placing.source_units[0][0] and placing.source_units[-1][1] <= end:
            first, last = placing.target_units[0][0], placing.target_units[-1][1]
            return outside(self._unbroken, first)[0], outside(self._unbroken, last)[1]
        if len(units) == len(placing.source_units):  # all of the line is all of the translation
            targets: Sequence[int] = range(len(placing.target_units))
        else:
            targets = _most_of(placing.targets(units))
        if not targets:
            return None
        enclosed = source[start:end].strip()
        first, last = without_marks(
            placing.translation,
            placing.target_units[targets[0]][0],
            placing.target_units[targets[-1]][1],
            like=enclosed,
            head=not begins_with_mark(enclosed) or begins_with_mark(source[max(start - 1, 0) : start]),
            tail=not ends_with_mark(enclosed) or ends_with_mark(source[end : end + 1]),
        )
        return outside(self._unbroken, first)[0], outside(self._unbroken, last)[1]

    def _widen(self) -> None:
        """Pairs hold what those hold that stood in them."""
        spans = self.spans
        for index in reversed(spans):  # from the inside to the outside
            parent = self._parents[index]
            if parent is not None:
                spans[parent] = min(spans[parent][0], spans[index][0]), max(spans[parent][1], spans[index][1])

    def _part(self) -> None:
        """Cut pairs until those of which none held the other share no word; what is left empty is none."""
        spans = self.spans
        children: dict[int | None, list[int]] = defaultdict(list)
        for index, parent in self._parents.items():
            children[parent].append(index)
        for parent in (None, *self._parents):  # from the outside to the inside
            taken, last = (0, len(self._placing.translation)) if parent is None else spans.get(parent, (0, 0))
            ordered = sorted(children[parent], key=lambda index: (spans[index], index))
            starts = [spans[index][0] for index in ordered]
            for index in ordered:
                start, end = max(spans[index][0], taken), min(spans[index][1], last)
                following = bisect_right(starts, start)
                if following < len(starts):
                    end = min(end, starts[following])
                start, end = self._without_spaces(start, end)
                if start < end:
                    spans[index] = start, end
                    taken = end
                else:
                    del spans[index]

    def _without_spaces(self, start: int, end: int) -> Span:
        text = self._placing.translation
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        return outside(self._unbroken, start)[0], outside(self._unbroken, end)[1]


def _most_of(targets: list[int]) -> list[int]:
    """All target units or, where more than every second unit between them is another, the most for which not.

    Single words are often aligned with distant ones by mistake, and a pair must not hold half the line then.
    """
    # targets[i] … targets[j] are dense enough if excess[j] - excess[i] <= 1. The best i is one of those that
    # exceed all before them; seen from the right, an i that has found its j needs no other.
    excess = [unit - 2 * index for index, unit in enumerate(targets)]
    starts: list[int] = []
    for index, value in enumerate(excess):
        if not starts or value > excess[starts[-1]]:
            starts.append(index)
    best = range(0)
    for end in range(len(targets) - 1, -1, -1):
        while starts and excess[starts[-1]] >= excess[end] - 1:
            best = max(range(starts.pop(), end + 1), best, key=len)
    return targets[best.start : best.stop]
