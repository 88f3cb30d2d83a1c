"""Where the tags of a line come to stand in its translation.

What a tag is, and how the line looks without them, is known to `markup.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transformer_mt.text.markup import TIGHT, Stripped, Tag
from transformer_mt.text.placing import (
    Alignment,
    Placing,
    Span,
    begins_with_mark,
    ends_with_mark,
    overlapping,
    without_marks,
)
from transformer_mt.text.words import needs_no_space


def put_back(
    translation: str,
    stripped: Stripped,
    alignment: Alignment,
    unbroken: Sequence[Span] = (),
    written: Sequence[str] | None = None,
) -> str:
    """Put the tags of the source into the translation, each once and as it was.

    A pair encloses the words that are aligned with those it enclosed, and what stands between them: all of
    the translation, if it enclosed all of the source. Pairs are widened to hold those that they held, and
    cut where they would hold or cross others, so tags are nested as they were. A pair for whose words no
    counterpart is found, or left, encloses nothing. Any other tag follows the word that is aligned with the
    word before it, or precedes the one aligned with the word that it stood at.

    Args:
        translation: of `stripped.text`.
        stripped: what `take_out` gave for the source.
        alignment: between `stripped.text` and the translation.
        unbroken: places of the translation, in order and apart, inside of which no tag may come.
        written: what comes out for each character of the translation, if not the character itself.

    Raises:
        ValueError: the alignment names a unit that is not there.
    """
    written = translation if written is None else written
    if not stripped.tags:
        return "".join(written)
    layout = _Layout(stripped.tags, Placing(stripped.text, translation, alignment), unbroken)
    return _rendered(translation, written, layout.tags_at())


@dataclass
class _Single:
    """Tags that stand at one place: one that is in no pair, or an empty pair with all that is in it.

    inside: opening tag of the pair around it. number: of its first tag.
    """

    tags: list[Tag]
    inside: int | None
    number: int


class _Placed(NamedTuple):
    """A tag that has found its place, and whether it is parted by spaces from what stands beside it."""

    tag: Tag
    space_before: bool = False
    space_after: bool = False


class _Layout:
    """The places of a translation and the tags that come there."""

    def __init__(self, tags: Sequence[Tag], placing: Placing, unbroken: Sequence[Span]) -> None:
        self._tags = tags
        self._placing = placing
        self._unbroken = unbroken
        self._spans: dict[int, Span] = {}  # opening tag -> what its pair encloses
        self._parents: dict[int, int | None] = {}
        self._singles: list[_Single] = []
        self._read_pairs()
        self._widen()
        self._children = self._parted()
        # By place, the outer one of two first.
        self._nested = sorted(
            self._spans, key=lambda index: (self._spans[index][0], -self._spans[index][1], index)
        )
        self._read_singles()

    def _read_pairs(self) -> None:
        """What each pair encloses by itself, and which pair is around it."""
        around: list[int] = []
        for index, tag in enumerate(self._tags):
            if tag.partner is None:
                continue
            if tag.partner < index:
                around.pop()
            elif span := self._span(tag, self._tags[tag.partner]):
                self._spans[index], self._parents[index] = span, around[-1] if around else None
                around.append(index)
            else:
                around.append(index)

    def _read_singles(self) -> None:
        """Those in no pair, and pairs that enclose nothing."""
        around: list[int] = []
        index = 0
        while index < len(self._tags):
            tag = self._tags[index]
            inside = around[-1] if around else None
            if tag.partner is None:
                self._singles.append(_Single([tag], inside, index))
            elif tag.partner < index:
                around.pop()
            elif index in self._spans:
                around.append(index)
            else:
                self._singles.append(_Single(list(self._tags[index : tag.partner + 1]), inside, index))
                index = tag.partner
            index += 1

    def _span(self, opening: Tag, closing: Tag) -> Span | None:
        """What a pair encloses in the translation, if anything."""
        placing, source = self._placing, self._placing.source
        start, end = opening.place, closing.place
        units = placing.units_at(start, end)
        if units and placing.target_units and not (source[:start].strip() or source[end:].strip()):
            first, last = placing.target_units[0][0], placing.target_units[-1][1]
            return self._outside(first)[0], self._outside(last)[1]
        if len(units) == len(placing.source_units):  # all of the line is all of the translation
            targets: Sequence[int] = range(len(placing.target_units))
        else:
            targets = _most_of(placing.targets(units))
        if not units or not targets:
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
        return self._outside(first)[0], self._outside(last)[1]

    def _outside(self, place: int) -> Span:
        """The nearest places before and after this one that are not inside of what must not be broken."""
        inside = overlapping(self._unbroken, place, place)
        return self._unbroken[inside[0]] if inside else (place, place)

    def _widen(self) -> None:
        """Pairs hold what those hold that stood in them."""
        spans = self._spans
        for index in reversed(spans):  # from the inside to the outside
            parent = self._parents[index]
            if parent is not None:
                spans[parent] = min(spans[parent][0], spans[index][0]), max(spans[parent][1], spans[index][1])

    def _parted(self) -> dict[int | None, list[int]]:
        """Cut pairs until those of which none held the other share no word; what is left empty is none.

        Returns:
            Opening tags of pairs, or None for the line -> those of the pairs directly inside, by place.
        """
        spans = self._spans
        children: dict[int | None, list[int]] = defaultdict(list)
        for index, parent in self._parents.items():
            children[parent].append(index)
        for parent in (None, *self._parents):  # from the outside to the inside
            taken, last = (0, len(self._placing.translation)) if parent is None else spans.get(parent, (0, 0))
            ordered = sorted(children[parent], key=lambda index: (spans[index], index))
            starts = [spans[index][0] for index in ordered]
            children[parent] = []
            for index in ordered:
                start, end = max(spans[index][0], taken), min(spans[index][1], last)
                following = bisect_right(starts, start)
                if following < len(starts):
                    end = min(end, starts[following])
                start, end = self._without_spaces(start, end)
                if start < end:
                    spans[index] = start, end
                    taken = end
                    children[parent].append(index)
                else:
                    del spans[index]
        return children

    def _without_spaces(self, start: int, end: int) -> Span:
        text = self._placing.translation
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        return self._outside(start)[0], self._outside(end)[1]

    def tags_at(self) -> dict[int, list[_Placed]]:
        """Place of the translation -> the tags that come there, in order."""
        free: dict[int, list[_Single]] = defaultdict(list)
        at_start: dict[int, list[_Single]] = defaultdict(list)
        at_end: dict[int, list[_Single]] = defaultdict(list)
        for neighbours in self._neighbours():
            inside = neighbours[0].inside
            place = self._beside_pairs(self._place(neighbours), neighbours[0])
            if inside is None or place not in self._spans[inside]:
                free[place] += neighbours
            else:
                (at_start if place == self._spans[inside][0] else at_end)[inside] += neighbours
        tags: dict[int, list[_Placed]] = defaultdict(list)
        for index in reversed(self._nested):
            here = tags[self._spans[index][1]]
            here += _alone(at_end[index])
            here.append(_Placed(self._tags[self._tags[index].partner or 0]))
        for place, singles in free.items():
            tags[place] += _alone(singles)
        for index in self._nested:
            here = tags[self._spans[index][0]]
            here.append(_Placed(self._tags[index]))
            here += _alone(at_start[index])
        return tags

    def _neighbours(self) -> list[list[_Single]]:
        """The single tags; those that stood side by side without a space together, so that they stay so."""
        groups: list[list[_Single]] = []
        for single in self._singles:
            first = single.tags[0]
            beside = groups[-1][0] if groups and not first.space_before else None
            if beside and (beside.inside, beside.tags[0].place) == (single.inside, first.place):
                groups[-1].append(single)
            else:
                groups.append([single])
        return groups

    def _beside_pairs(self, place: int, single: _Single) -> int:
        """The nearest place inside of the pair that it stood in, and of none that it stood beside."""
        if single.inside is not None:
            start, end = self._spans[single.inside]
            place = min(max(place, start), end)
        children = self._children[single.inside]
        nearest = bisect_right(children, place, key=lambda index: self._spans[index][1])
        if nearest < len(children):
            start, end = self._spans[children[nearest]]
            if start < place:
                return end if children[nearest] < single.number else start
        return place

    def _place(self, neighbours: Sequence[_Single]) -> int:
        """Where single tags side by side come: with the word they stood at, else after the one before it."""
        placing = self._placing
        first, last = neighbours[0].tags[0], neighbours[-1].tags[-1]
        place, end = first.place, last.place
        rest = placing.source[end:].lstrip()
        if not placing.source[:place].strip() or not placing.target_units:
            return 0
        if not rest:
            return placing.target_units[-1][1]
        found = placing.place_after(place)
        if first.space_before and not last.space_after and not ends_with_mark(rest[:1]):
            following = bisect_left(placing.source_units, end, key=lambda span: span[0])
            targets = placing.links[following]
            if targets:
                found = placing.target_units[targets[0]][0]
            else:
                text = placing.translation
                found += len(text[found:]) - len(text[found:].lstrip())
        return self._outside(found)[1]


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


def _alone(singles: Sequence[_Single]) -> Iterator[_Placed]:
    for single in singles:
        for tag in single.tags:
            before = tag is single.tags[0] and tag.space_before
            yield _Placed(tag, before, tag is single.tags[-1] and tag.space_after)


def _rendered(translation: str, written: Sequence[str], tags: dict[int, list[_Placed]]) -> str:
    """The translation, as it is written, with the tags in it and the spaces beside the single ones."""
    text = ""
    copied = 0
    space = tight = False  # after the last tag: one is due, or none is wanted
    for place in sorted({*tags, len(translation)}):
        here = tags.get(place, [])
        words = "".join(written[copied:place])
        copied = place
        if tight:
            words = words.lstrip()
        tight = bool(here) and all(placed.tag.parts for placed in here)
        if tight:
            words = words.rstrip()
        if words:
            text += " " + words if space and not (words[0].isspace() or words[0] in TIGHT) else words
            space = False
        spaced = not any(map(needs_no_space, translation[max(place - 1, 0) : place + 1]))
        for placed in here:
            due = space or (spaced and placed.space_before and bool(text))
            text += " " if due and not text[-1:].isspace() else ""
            text += placed.tag.text
            space = spaced and placed.space_after
    return text
