"""Two texts -> what they share and where they differ, in words, or in characters where words are not spaced.

Knows neither scores nor how differences are shown.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from difflib import SequenceMatcher

# The search for differences takes time with the square of the length.
_MAX_TOKENS = 600

# Thai to Myanmar, Khmer, kana and Han with their full-width forms: scripts that put no space between words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


@dataclass(frozen=True)
class Piece:
    """A run of tokens of one kind.

    Attributes:
        kind: "same", "missing" (in the reference alone), "extra" (in the hypothesis alone), or "uncompared".
        gap: the space before it.
        text: the run, with the space inside it.
    """

    kind: str
    gap: str
    text: str


def differences(reference: str, hypothesis: str) -> list[Piece]:
    """The hypothesis with what it says otherwise than the reference.

    The pieces that are not "missing" spell the hypothesis, but for space at its end. Texts too long to be
    compared come back as one "uncompared" piece.

    Args:
        reference: what is expected.
        hypothesis: what is said instead.
    """
    ours, theirs = _tokens(hypothesis), _tokens(reference)
    if max(len(ours), len(theirs)) > _MAX_TOKENS:
        return [Piece("uncompared", "", hypothesis)]
    matcher = SequenceMatcher(None, [word for _, word in theirs], [word for _, word in ours], autojunk=False)
    pieces = []
    for operation, their_start, their_end, our_start, our_end in matcher.get_opcodes():
        if operation == "equal":
            pieces.append(_piece("same", ours[our_start:our_end]))
            continue
        if their_end > their_start:
            pieces.append(_piece("missing", theirs[their_start:their_end]))
        if our_end > our_start:
            pieces.append(_piece("extra", ours[our_start:our_end]))
    return pieces


def _piece(kind: str, tokens: list[tuple[str, str]]) -> Piece:
    text = "".join(gap + word for gap, word in tokens)
    gap = tokens[0][0]
    return Piece(kind, gap, text[len(gap) :])


def _tokens(text: str) -> list[tuple[str, str]]:
    """Words, marks of punctuation and unspaced characters, each with the space before it."""
    gaps: list[str] = []
    spans: list[tuple[int, int]] = []
    gap, previous = "", "space"
    for place, character in enumerate(text):
        kind = _kind(character)
        if kind == "space":
            gap += character
        elif spans and not gap and (kind == "mark" or kind == previous == "word"):
            spans[-1] = (spans[-1][0], place + 1)
        else:
            gaps.append(gap)
            spans.append((place, place + 1))
            gap = ""
        # A mark such as a vowel sign or an accent belongs to the character before it.
        previous = previous if kind == "mark" else kind
    return [(gap, text[start:end]) for gap, (start, end) in zip(gaps, spans, strict=True)]


def _kind(character: str) -> str:
    if character.isspace():
        return "space"
    category = unicodedata.category(character)
    if category.startswith("M"):
        return "mark"
    return "alone" if category[0] in "PS" or _UNSPACED.match(character) else "word"
