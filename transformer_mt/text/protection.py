"""Strings of a line that must stand in its translation as they are: placeholders, links, numbers.

The model is shown the line as it is, because models copy much by themselves and have no symbols to spare for
masks. Afterwards each protected string is looked for in the translation, and what is missing is put where the
alignment says. Strings and pairs of places only: models and tags are not known here.

A regular expression runs in time that its author answers for: one such as `(a+)+b` can take forever.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from transformer_mt.errors import ConfigError
from transformer_mt.text.insertion import Draft, Guarded
from transformer_mt.text.lines import one_line
from transformer_mt.text.placing import Alignment, Placing, Span, overlapping
from transformer_mt.text.words import needs_no_space


def compile_patterns(patterns: Iterable[str], where: str = "--protect") -> list[re.Pattern[str]]:
    """Regular expressions as users wrote them, ready to be searched for.

    Args:
        patterns: in the syntax of Python's `re`.
        where: what an error message calls their place.

    Raises:
        ConfigError: one that is not a regular expression, that matches empty text, or nothing but places.
    """
    compiled = []
    for pattern in patterns:
        try:
            found = re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigError(
                f"{where} '{one_line(pattern)}': is no regular expression ({error}); "
                r"write \ before a sign that stands for itself"
            ) from None
        if found.search(""):
            raise ConfigError(
                f"{where} '{one_line(pattern)}': also matches empty text, of which nothing can be kept; "
                "ask for one character at least, such as with + instead of *"
            )
        if _matches_places_alone(found):
            raise ConfigError(
                f"{where} '{one_line(pattern)}': matches places between characters and no character, so "
                r"nothing is kept; match what stands there too, such as \b\w+ instead of \b"
            )
        compiled.append(found)
    return compiled


def _matches_places_alone(pattern: re.Pattern[str]) -> bool:
    r"""Whether it matches no character wherever it is tried, as `\b` and `(?=a)` do."""
    # What looks behind must match as many characters in each alternative: here none.
    flags = re.match(r"(?:\(\?[aLimsux]+\))?", pattern.pattern)
    bare = pattern.pattern[flags.end() :] if flags else pattern.pattern
    try:
        re.compile(f"(?<=(?:{bare})|)", pattern.flags)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def protected_spans(line: str, patterns: Iterable[re.Pattern[str]]) -> list[Span]:
    """What the patterns match in a line, in order; matches that share a character are one."""
    return united(match.span() for pattern in patterns for match in pattern.finditer(line))


def united(found: Iterable[Span]) -> list[Span]:
    """Spans in order, without empty ones; those that share a character are one."""
    spans: list[Span] = []
    for span in sorted(found):
        if span[0] == span[1]:
            continue
        if spans and span[0] < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], span[1]))
        else:
            spans.append(span)
    return spans


def is_all_protected(line: str, spans: Sequence[Span]) -> bool:
    """Whether no letter and no digit stands outside the spans, so that the line is its own translation."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(line)]
    between = "".join(line[end:start] for end, start in zip(ends, starts, strict=True))
    return bool(spans) and not any(map(str.isalnum, between))


def lacks_protected(
    source: str, spans: Sequence[Span], translation: str, patterns: Sequence[re.Pattern[str]]
) -> bool:
    """Whether the translation lacks a protected string, so that `guard` needs an alignment."""
    return len(_kept(source, spans, translation, patterns)) < len(spans)


def guard(
    source: str,
    spans: Sequence[Span],
    translation: str,
    alignment: Alignment,
    patterns: Sequence[re.Pattern[str]],
) -> Guarded:
    """Make every protected string of the source stand in the translation, as often as in the source.

    One that is there already stays where it is. Another one takes the place of the translated words that are
    aligned with it; where there are none, or a protected string stands there, it is put after the word that
    is aligned with the word before it. Whatever the translation and the alignment are, all strings are in
    the result.

    Args:
        source: the line that the model was shown.
        spans: its `protected_spans`.
        translation: the text of the model.
        alignment: may be empty where the translation lacks nothing.
        patterns: the patterns that found the spans.

    Raises:
        ValueError: the alignment names a unit that is not there.
    """
    placing = Placing(source, translation, alignment)
    kept = _kept(source, spans, translation, patterns, placing)
    draft = Draft(placing, kept)
    for span in _joined([span for span in spans if span not in kept], source):
        draft.put(span)
    return draft.finish()


def _kept(
    source: str,
    spans: Sequence[Span],
    translation: str,
    patterns: Sequence[re.Pattern[str]],
    placing: Placing | None = None,
) -> dict[Span, Span]:
    """Protected spans of the source that the translation holds -> where. Each place serves one span."""
    wanted: dict[str, list[Span]] = defaultdict(list)
    for start, end in spans:
        wanted[source[start:end]].append((start, end))
    matches = protected_spans(translation, patterns) if spans else []
    taken = bytearray(len(translation))
    kept: dict[Span, Span] = {}
    for text in sorted(wanted, key=len, reverse=True):  # a short string may stand inside of a long one
        places = list(_places(text, translation, matches, taken))
        if placing is not None and len(places) > len(wanted[text]):
            places = _aligned_first(wanted[text], places, placing)
        for span, (start, end) in zip(wanted[text], places, strict=False):
            kept[span] = (start, end)
            taken[start:end] = b"\1" * (end - start)
    return kept


def _places(text: str, translation: str, matches: Sequence[Span], taken: bytearray) -> Iterator[Span]:
    """Where a string stands in the translation: as a match, or else not as a part of something longer."""
    start = translation.find(text)
    while start >= 0:
        end = start + len(text)
        found = not any(taken[start:end]) and (
            [matches[index] for index in overlapping(matches, start, end)] == [(start, end)]
            or _stands_apart(translation, start, end, matches)
        )
        if found:
            yield start, end
        start = translation.find(text, end if found else start + 1)


def _stands_apart(translation: str, start: int, end: int, matches: Sequence[Span]) -> bool:
    """Whether no character beside a place and no match around it makes it a part of something longer."""
    around = [
        translation[matches[index][0] : start] + translation[end : matches[index][1]]
        for index in overlapping(matches, start, end)
    ]
    return not (
        _run_on(translation[max(start - 1, 0) : start], translation[start])
        or _run_on(translation[end - 1], translation[end : end + 1])
        or any(map(str.isalnum, "".join(around)))
    )


def _run_on(left: str, right: str) -> bool:
    """Whether two characters that meet are read as one word or one number."""
    if not left or not right or needs_no_space(left) or needs_no_space(right):
        return False
    return (left.isalpha() and right.isalpha()) or (left.isdigit() and right.isdigit())


def _aligned_first(spans: Sequence[Span], places: Sequence[Span], placing: Placing) -> list[Span]:
    """One place for each span: the first that is aligned with it, else the first that is free."""
    at_unit: dict[int, list[Span]] = defaultdict(list)
    for place in places:
        for unit in overlapping(placing.target_units, *place):
            at_unit[unit].append(place)
    chosen: dict[Span, Span] = {}
    taken: set[Span] = set()
    for span in spans:
        aligned = (place for unit in placing.targets(placing.units_at(*span)) for place in at_unit[unit])
        found = next((place for place in aligned if place not in taken), None)
        if found:
            chosen[span] = found
            taken.add(found)
    free = (place for place in places if place not in taken)
    return [chosen[span] if span in chosen else next(free) for span in spans]


def _joined(spans: Sequence[Span], source: str) -> list[Span]:
    """Spans between which only signs stand, such as "10" and "30" in "10:30", are put as one."""
    joined: list[Span] = []
    for start, end in spans:
        between = source[joined[-1][1] : start] if joined else ""
        if joined and not any(sign.isalnum() or sign.isspace() or needs_no_space(sign) for sign in between):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
