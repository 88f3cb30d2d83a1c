"""A long line -> parts that a model can hold, and what became of them -> one line again.

A line is cut where its sentences end; where a sentence is too long by itself at the marks inside it, then at
white space, then between any two characters that a person would cut between. The parts joined are the line,
exactly: white space belongs to the part before it. The rules are few and know no language: where they are in
doubt a sentence goes on. Lengths are whatever the caller counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import chain

from transformer_mt.text.words import WITHOUT_SPACES, needs_no_space

Count = Callable[[Sequence[str]], list[int]]
"""Texts -> the length of each."""

# Marks that end a sentence if white space follows, and marks of scripts that put none behind them.
_SPACED = ".!?…\u0589\u061f\u06d4\u203c\u2047-\u2049"
_WIDE = "\u3002\uff01\uff1f\uff0e\uff61\u0964\u0965\u104b\u1362\u17d4\u17d5"
_CLOSING = "\"'”’»›)\\]}』」）】》〉］"
_OPENING = "\"'“‘„‚«‹([{『「（【《〈［¿¡"
# Every run of marks is looked at once, and as a whole: a line of nothing but marks takes no time squared.
_END = re.compile(
    rf"(?<![{_SPACED}])(?P<spaced>[{_SPACED}]++)(?:[{_CLOSING}“‘«‹]*+\s++|(?<=[{WITHOUT_SPACES}].)(?=[{WITHOUT_SPACES}]))"
    rf"|(?<![{_WIDE}])[{_WIDE}]++(?P<closed>[{_CLOSING}]*+)(?P<space>\s*+)"
)
_CLAUSE = re.compile(
    rf"(?:[,;:\u060c\u061b{_SPACED}][{_CLOSING}“‘«‹]*+|(?<=\s)[-–—])\s++"
    rf"|[\u3001\uff0c\uff1b\uff1a—…{_WIDE}]++[{_CLOSING}]*+\s*+"
)
_SPACE = re.compile(r"\s++")
_WORD = re.compile(r"[^\W_]")
_FINAL = re.compile(f"[{_SPACED}{_WIDE}]")
_BEHIND_FINAL = _CLOSING.replace("\\", "") + "“‘«‹ \t\u00a0\u3000"
_LAST_WORD = re.compile(r"[^\s\"'“‘„‚«‹(\[{]{1,20}\Z")
_AFTER = re.compile(rf"[{_OPENING.replace('[', chr(92) + '[')}]*+(.?)", re.DOTALL)
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_]{1,2})*|\d{1,2}")
# What is shortened by a full stop and stands before a name or goes on; and before a number.
_SHORT = re.compile(
    "dr|prof|mrs?|ms|mme|mlle|ste?|sra?|dra|jr|hr|fr|gen|col|capt|lt|sgt|rev|hon|gov|sen|rep|sig|dott|str|bzw|ca|"
    "vgl|evtl|ggf|inkl|sog|geb|vs|cf|approx|ул|им"
)
_SHORT_BEFORE_NUMBER = re.compile(
    "nos?|nrs?|vol|figs?|abb|bd|pp|art|kap|chap|sec|abs|tel|jan|feb|apr|jun|jul|aug|sept?|oct|okt|nov|dec|dez|"
    "núm|стр"
)
_JOINER = "\u200d"
# Code points of a character that a person may still take for one.
_LONGEST_CHARACTER = 32


def ends_sentence(text: str) -> bool:
    """Whether a text ends with a mark that ends sentences, closing quotes and brackets behind it apart."""
    return _FINAL.match(text.rstrip(_BEHIND_FINAL)[-1:]) is not None


def sentences(text: str) -> list[str]:
    """The sentences of a line, each with the white space behind it; a blank line is one too."""
    one_case = text.lower() == text or text.upper() == text
    places, word = list[int](), _WORD.search(text)
    for found in _END.finditer(text):
        place = found.end()
        if word is None or word.start() >= place or place == len(text):
            continue  # stray marks are no sentence
        if _ends(text, found, letter_case=not one_case):
            places.append(place)
            word = _WORD.search(text, place)
    return _pieces(text, places)


def split(text: str, count: Count, *, limit: int, most_sentences: int | None = None) -> list[str]:
    """Cut a line into parts of at most this length.

    Args:
        text: one line.
        count: how long texts are.
        limit: the longest part; one character is never cut.
        most_sentences: whole sentences that share a part; None is as many as fit.

    Returns:
        Parts that give the line when joined by nothing.
    """
    return _split(text, count, limit, (sentences, _clauses, _words), most_sentences)


def joined(parts: Sequence[str], translations: Sequence[str]) -> tuple[str, list[int]]:
    """One line of the translations of parts: what stands between two is what suits their scripts.

    That is a space, and nothing in a script without spaces, beside nothing, or where a word was cut.

    Returns:
        The line, and where in it each translation begins.
    """
    line, starts, before = "", list[int](), ""
    for part, text in zip(parts, translations, strict=True):
        if line and text:
            close = needs_no_space(line[-1]) or needs_no_space(text[0])
            cut_word = not before[-1].isspace() and not needs_no_space(before[-1])
            line += "" if close or cut_word else " "
        starts.append(len(line))
        line += text
        before = part if text else before
    return line, starts


def _ends(text: str, found: re.Match[str], *, letter_case: bool) -> bool:
    """Whether a sentence ends at the mark, so that another begins behind it."""
    after = _AFTER.match(text, found.end())
    following = after[1] if after else ""
    if found["spaced"] is None:
        if found[0].startswith("\uff0e") and following.isdecimal():
            return False
        return not found["closed"] or bool(found["space"]) or text[found.end()] in _OPENING
    if letter_case and following.islower():
        return False
    if found["spaced"] != ".":
        return True
    last = _LAST_WORD.search(text, max(found.start() - 20, 0), found.start())
    word = last[0].lower() if last else ""
    if _INITIALS.fullmatch(word) and not needs_no_space(word):
        return False
    if following.isdecimal() and _SHORT_BEFORE_NUMBER.fullmatch(word):
        return False
    return _SHORT.fullmatch(word) is None


def _pieces(text: str, places: Sequence[int]) -> list[str]:
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def _clauses(text: str) -> list[str]:
    return _pieces(text, [found.end() for found in _CLAUSE.finditer(text) if found.end() < len(text)])


def _words(text: str) -> list[str]:
    return _pieces(text, [found.end() for found in _SPACE.finditer(text) if found.end() < len(text)])


def _split(
    text: str,
    count: Count,
    limit: int,
    ways: Sequence[Callable[[str], list[str]]],
    most: int | None,
) -> list[str]:
    """Pieces of the first way, packed; those that are too long by themselves go the next way."""
    if not ways:
        return _split_anywhere(text, count, limit)
    pieces = ways[0](text)
    parts = list[str]()
    for group in _packed(count(pieces), limit, most):
        part = "".join(pieces[group.start : group.stop])
        # The whole may be longer than the sum of its pieces, if only a little.
        if count([part])[0] <= limit:
            parts.append(part)
        elif len(group) > 1:
            parts += _split(part, count, max(limit * 9 // 10, 1), ways, most)
        else:
            parts += _split(part, count, limit, ways[1:], None)
    return parts


def _packed(sizes: Sequence[int], limit: int, most: int | None) -> list[range]:
    """Neighbours that together keep to the limit, in groups of about the same size."""
    groups = max(-(-sum(sizes) // limit), 1)
    aim = sum(sizes) / groups
    packed, start, size = list[range](), 0, 0
    for place, more in enumerate(sizes):
        full = size + more > limit or size + more / 2 > aim or place - start == most
        if place > start and full:
            packed.append(range(start, place))
            start, size = place, 0
        size += more
    packed.append(range(start, len(sizes)))
    return packed


def _split_anywhere(text: str, count: Count, limit: int) -> list[str]:
    size = count([text])[0]
    if size <= limit or len(text) == 1:
        return [text]
    number = min(-(-size // limit), len(text))
    places = sorted({_safe_place(text, len(text) * part // number) for part in range(1, number)})
    return [part for piece in _pieces(text, places) for part in _split_anywhere(piece, count, limit)]


def _safe_place(text: str, place: int) -> int:
    """A place near by where a cut takes no character apart; this one if there is none."""
    before, behind = max(place - _LONGEST_CHARACTER, 0), min(place + _LONGEST_CHARACTER, len(text))
    for candidate in chain(range(place, before, -1), range(place + 1, behind)):
        if not _binds(text[candidate - 1], text[candidate]):
            return candidate
    return place


def _binds(left: str, right: str) -> bool:
    """Whether two code points belong to one character: marks, joined emoji, flags, Korean letters."""
    if unicodedata.category(right)[0] == "M" or _JOINER in (left, right):
        return True
    if "\U0001f3fb" <= right <= "\U0001f3ff" or "\u1160" <= right <= "\u11ff":
        return True
    return all("\U0001f1e6" <= sign <= "\U0001f1ff" for sign in (left, right))
