"""Where the tags of a line come to stand in its translation.

What a tag is, and how the line looks without them, is known to `markup.py`; what pairs enclose, to
`tag_spans.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transformer_mt.text.markup import TIGHT, Stripped, Tag
from transformer_mt.text.placing import Alignment, Placing, Span, ends_with_mark, outside
from transformer_mt.text.tag_spans import pair_spans
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
        self._spans = pair_spans(tags, placing, unbroken)
        self._children: dict[int | None, list[int]] = defaultdict(list)  # pair -> those directly inside
        self._singles: list[_Single] = []
        self._read()
        # By place, the outer one of two first.
        self._nested = sorted(
            self._spans, key=lambda index: (self._spans[index][0], -self._spans[index][1], index)
        )

    def _read(self) -> None:
        """Tell pairs, and which stand in which, from single tags; those around nothing are single."""
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
                self._children[inside].append(index)
                around.append(index)
            else:
                self._singles.append(_Single(list(self._tags[index : tag.partner + 1]), inside, index))
                index = tag.partner
            index += 1
        for inner in self._children.values():
            inner.sort(key=lambda index: self._spans[index])

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
        return outside(self._unbroken, found)[1]


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
