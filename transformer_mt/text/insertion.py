"""Strings of a source line that its translation lacks, put where the alignment says.

Which strings these are is known to `protection.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from transformer_mt.text.placing import (
    Placing,
    Span,
    ends_with_mark,
    is_only_marks,
    overlapping,
    without_marks,
)
from transformer_mt.text.words import needs_no_space, unit_spans

# A string that the model could not copy, such as "{ Name}" for "{name}", is about as like it as this.
_ALIKE = 0.6
_MOST_PIECES = 8
# Words and numbers, which have a translation; no placeholder and no link.
_WORDS = re.compile(r"[^\W_]+(?:(?:[ '’-]|(?<=\d)[.,:](?=\d))[^\W_]+)*")
_CHARACTERS_OF_A_WORD = 3


@dataclass(frozen=True)
class Guarded:
    """A translation that holds every protected string of its source.

    text: the translation. alignment: pairs of source unit and unit of this text. copies: where the protected
    strings stand in this text, in order and apart, and where in the source.
    """

    text: str
    alignment: list[tuple[int, int]]
    copies: list[tuple[Span, Span]]

    @property
    def spans(self) -> list[Span]:
        """Where the protected strings stand."""
        return [span for span, _ in self.copies]


@dataclass(frozen=True)
class _Edit:
    """translation[start:end] becomes `text`, which stands at this place of the source and for these units."""

    start: int
    end: int
    text: str
    source: Span
    source_units: range

    @property
    def inserts(self) -> bool:
        """Whether nothing has to go for it."""
        return self.start == self.end


class Draft:
    """A translation with what has to be changed in it; places are those of the unchanged text."""

    def __init__(self, placing: Placing, kept: Mapping[Span, Span]) -> None:
        """Begin with the protected strings that the translation holds: places of the source -> where."""
        self._placing = placing
        self._sources = {place: source for source, place in kept.items()}
        self._kept = sorted(kept.values())
        self._held = {unit for span in self._kept for unit in overlapping(placing.target_units, *span)}
        self._edits: list[_Edit] = []

    def put(self, span: Span) -> None:
        """Plan how the protected string source[span] comes in."""
        placing = self._placing
        units = placing.units_at(*span)
        text = placing.source[slice(*span)]
        run = self._run(units, text) if self._is_most_of(units, span) else None
        if run is None:
            start = end = self._gap(units, span)
        else:
            self._held.update(run)
            start, end = placing.target_units[run[0]][0], placing.target_units[run[-1]][1]
            start, end = without_marks(placing.translation, start, end, like=text)
        self._edits.append(_Edit(start, end, text, span, units))

    def _is_most_of(self, units: range, span: Span) -> bool:
        """Whether little more than the span stands in its units: for "5" in "5-jährig", too much would go."""
        if not units:
            return False
        source, ends = self._placing.source, self._placing.source_units
        whole = sum(map(str.isalnum, source[ends[units[0]][0] : ends[units[-1]][1]]))
        return 2 * sum(map(str.isalnum, source[slice(*span)])) >= whole

    def _run(self, units: range, text: str) -> list[int] | None:
        """The target units in a row that the string takes the place of, if that loses nothing else.

        They are what the model made of the string: they look like it; or it is a word or a number, they are
        as few as its own units, and what stands beside it is aligned with other words. A model that never saw
        the like of a placeholder or a link often aligns good words with it; then they stay, and the string is
        put beside them.
        """
        placing = self._placing
        weights = Counter(target for unit in units for target in placing.links[unit])
        runs: list[list[int]] = []
        for target in sorted(weights):
            if target in self._held or (is_only_marks(self._word(target)) and not is_only_marks(text)):
                continue
            if runs and runs[-1][-1] == target - 1:
                runs[-1].append(target)
            else:
                runs.append([target])
        alike = [
            (likeness, part)
            for run in runs
            for part in _parts(run)
            if (likeness := _likeness(text, "".join(map(self._word, part)))) >= _ALIKE
        ]
        if alike:
            return max(alike)[1]
        run = max(runs, key=lambda run: sum(weights[target] for target in run), default=[])
        beside = [unit for unit in (units[0] - 1, units[-1] + 1) if 0 <= unit < len(placing.source_units)]
        few = _size(map(self._word, run)) <= _size(
            placing.source[slice(*placing.source_units[unit])] for unit in units
        )
        alone = all(set(placing.links[unit]) - set(run) for unit in beside)
        return run if run and few and alone and _WORDS.fullmatch(text) else None

    def _word(self, target: int) -> str:
        return self._placing.translation[slice(*self._placing.target_units[target])]

    def _gap(self, units: range, span: Span) -> int:
        """After a protected string that stands where this one belongs, or after what came before it."""
        placing = self._placing
        held = [target for target in placing.targets(units) if target in self._held]
        if held:
            start, end = placing.target_units[held[-1]]
            return without_marks(placing.translation, start, end, head=False)[1]
        first = placing.source_units[units[0]][0] if units else span[0]
        words_before = any(map(str.isalnum, placing.source[first : span[0]]))
        return placing.place_after(span[0] if words_before else first)

    def finish(self) -> Guarded:
        """Carry the plan out."""
        translation = self._placing.translation
        text = ""
        copied = 0
        moves: list[tuple[int, int]] = []  # from this place of the old text on, all moves by so much
        put: list[tuple[Span, _Edit]] = []
        for edit in self._in_order():
            moves.append((copied, len(text) - copied))
            text += translation[copied : edit.start]
            follows_edit = edit.start == copied and bool(put)
            copied = edit.end
            if (follows_edit or edit.inserts) and _needs_space(text[-1:], edit.text[0]):
                text += " "
            put.append(((len(text), len(text) + len(edit.text)), edit))
            text += edit.text
            following = translation[copied : copied + 1]
            mark_follows = edit.start > 0 and ends_with_mark(following)
            if edit.inserts and not mark_follows and _needs_space(text[-1], following):
                text += " "
        moves.append((copied, len(text) - copied))
        text += translation[copied:]
        return self._guarded(text, moves, put)

    def _in_order(self) -> list[_Edit]:
        """The edits by their places; nothing is inserted inside of a string that stays or comes in."""
        solid = sorted([*self._kept, *((edit.start, edit.end) for edit in self._edits if not edit.inserts)])
        apart = []
        for edit in self._edits:
            inside = overlapping(solid, edit.start, edit.start) if edit.inserts else range(0)
            place = solid[inside[0]][1] if inside else edit.start
            apart.append(replace(edit, start=place, end=max(place, edit.end)))
        return sorted(apart, key=lambda edit: (edit.start, edit.end))

    def _guarded(self, text: str, moves: list[tuple[int, int]], put: list[tuple[Span, _Edit]]) -> Guarded:
        """The new text with the alignment and the kept spans moved to where they are now."""
        placing = self._placing

        def moved(start: int, end: int) -> Span:
            first = moves[bisect_right(moves, start, key=lambda move: move[0]) - 1][1]
            last = moves[bisect_right(moves, end - 1, key=lambda move: move[0]) - 1][1]
            return start + first, end + last

        gone = sorted((edit.start, edit.end) for edit in self._edits if not edit.inserts)
        links = [(source_unit, span) for span, edit in put for source_unit in edit.source_units]
        for source_unit, targets in enumerate(placing.links):
            for target in targets:
                span = without_marks(placing.translation, *placing.target_units[target])
                if not overlapping(gone, *span):
                    links.append((source_unit, moved(*span)))
        units = unit_spans(text)
        pairs = {(source_unit, unit) for source_unit, span in links for unit in overlapping(units, *span)}
        copies = [(moved(*span), self._sources[span]) for span in self._kept]
        copies += [(span, edit.source) for span, edit in put]
        return Guarded(text, sorted(pairs), sorted(copies))


def _needs_space(left: str, right: str) -> bool:
    """Whether a space parts two characters that come to stand side by side; "" is an end of the text."""
    return bool(left and right) and not any(
        character.isspace() or needs_no_space(character) for character in (left, right)
    )


def _parts(run: list[int]) -> Iterator[list[int]]:
    """What stands in a row in a row of units, as far as it may be one mangled string."""
    for start in range(len(run)):
        for end in range(start + 1, min(start + _MOST_PIECES, len(run)) + 1):
            yield run[start:end]


def _likeness(text: str, found: str) -> float:
    """How much of two strings is the same, 0 to 1; enough of two numbers, or of two with the same letters."""
    text, found = text.casefold(), found.casefold()
    core = _alphanumeric(text)
    same = core and core == _alphanumeric(found)
    numbers = core and not any(map(str.isalpha, core)) and any(map(str.isdigit, found))
    likeness = SequenceMatcher(None, text, found, autojunk=False).ratio()
    return max(likeness, _ALIKE) if same or numbers else likeness


def _alphanumeric(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _size(units: Iterable[str]) -> int:
    """About how many words these are: of characters without spaces, some make a word."""
    words = characters = 0
    for unit in units:
        if needs_no_space(unit[0]):
            characters += 1
        else:
            words += 1
    return words + -(-characters // _CHARACTERS_OF_A_WORD)
