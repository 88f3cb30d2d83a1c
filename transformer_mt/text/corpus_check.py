"""What is wrong with a corpus: which pairs cannot be trained on, why, and how many.

Training pairs are dropped for the first reason that holds; validation and test pairs are only counted.
Training sentences are compared by 8-byte hashes, so memory is 9 bytes a pair whatever the length of the text
(two different sentences share a hash once in 10^19). Knows token counts only as numbers it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from transformer_mt.text.lines import trimmed

Texts = Sequence[str]
"""One side of some pairs."""
Codes = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]
Lengths = npt.NDArray[np.integer]

KEPT = 0
_PARTS = 16
REASONS = (
    "kept",
    "empty side",
    "source or target also in valid or test",
    "exact duplicate",
    "longer than max_length",
    "lengths out of proportion",
)
"""A pair's code is its place in this table; smaller codes win."""
EMPTY, LEAK, DUPLICATE, TOO_LONG, OUT_OF_PROPORTION = range(1, len(REASONS))
# Short sentences vary: a ratio is called bad only beyond this many tokens more.
RATIO_ALLOWANCE = 8

_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#[0-9]{1,6}|#x[0-9a-fA-F]{1,6});")
# What is odd in a text but kept in every split -> how it is found.
_ODDITIES: dict[str, Callable[[str], bool]] = {
    "U+2581 in the text, becomes a space": lambda text: "\u2581" in text,
    "NUL in the text": lambda text: "\0" in text,
    "HTML entity in the text": lambda text: "&" in text and _ENTITY.search(text) is not None,
}


@dataclass
class Finding:
    """How often something was found, and where first (file:line)."""

    count: int = 0
    first: str = ""


class Notes:
    """What is reported without dropping anything: kind -> finding."""

    def __init__(self) -> None:
        self.findings: dict[str, Finding] = {}

    def add(self, what: str, place: Callable[[], str]) -> None:
        """Count one; `place` (file:line) is asked for the first of a kind only."""
        finding = self.findings.setdefault(what, Finding())
        finding.count += 1
        finding.first = finding.first or place()

    def look(self, src: Texts, tgt: Texts, place: Callable[[int], str]) -> None:
        """Note what is odd in some pairs but kept in every split.

        Args:
            place: index among these pairs -> file:line.
        """
        whole = "\n".join(src) + "\n" + "\n".join(tgt)
        for what, has in _ODDITIES.items():
            if not has(whole):
                continue
            for index, (src_text, tgt_text) in enumerate(zip(src, tgt, strict=True)):
                if has(src_text) or has(tgt_text):
                    self.add(what, partial(place, index))


class HeldOut:
    """The sentences of validation and test sets, which no training pair may share."""

    def __init__(self) -> None:
        self._src: set[str] = set()
        self._tgt: set[str] = set()

    def add(self, src: Texts, tgt: Texts) -> None:
        """Hold more sentences out."""
        self._src.update(map(trimmed, src))
        self._tgt.update(map(trimmed, tgt))

    def among(self, src: Texts, tgt: Texts) -> npt.NDArray[np.bool_]:
        """Which pairs hold one of the sentences, given their trimmed texts."""
        src_held = _each(self._src.__contains__, src, np.bool_)
        held: npt.NDArray[np.bool_] = src_held | _each(self._tgt.__contains__, tgt, np.bool_)
        return held


def check_text(src: Texts, tgt: Texts, held_out: HeldOut) -> tuple[Codes, Hashes]:
    """What the text alone tells: (code, hash) of each pair. Duplicates need all hashes: `mark_duplicates`."""
    src, tgt = list(map(trimmed, src)), list(map(trimmed, tgt))
    codes = np.zeros(len(src), dtype=np.uint8)
    codes[held_out.among(src, tgt)] = LEAK
    codes[~(_each(bool, src, np.bool_) & _each(bool, tgt, np.bool_))] = EMPTY
    # Python's own 64-bit hash differs from process to process, which is no matter here.
    src_hashes, tgt_hashes = (_each(hash, side, np.int64).view(np.uint64) for side in (src, tgt))
    # An odd multiplier keeps (a, b) and (b, a) apart; arithmetic is modulo 2^64.
    return codes, src_hashes * np.uint64(0x9E3779B97F4A7C15) + tgt_hashes


def mark_duplicates(codes: Codes, hashes: Hashes) -> None:
    """Give every repetition of an earlier pair its code, in place; the first one stays."""
    # Equal hashes share any of their bytes: part by part, sorting takes little memory.
    bytes_of_each = hashes.view(np.uint8)[:: hashes.itemsize]
    for part in range(_PARTS):
        rows = np.flatnonzero((bytes_of_each % _PARTS == part) & (codes == KEPT))
        order = rows[np.argsort(hashes[rows], kind="stable")]
        codes[order[1:][hashes[order[1:]] == hashes[order[:-1]]]] = DUPLICATE


def findings(codes: Codes, place: Callable[[int], str]) -> dict[str, Finding]:
    """Reason -> how many pairs were dropped for it, and where the first one stands."""
    return {
        reason: Finding(int((codes == code).sum()), place(int(np.argmax(codes == code))))
        for code, reason in enumerate(REASONS)
        if code != KEPT and np.any(codes == code)
    }


def check_lengths(
    src_lengths: Lengths, tgt_lengths: Lengths, *, max_length: int, max_length_ratio: float
) -> Codes:
    """Codes of pairs by their token counts, eos included: too long, out of proportion, or kept."""
    longer, shorter = np.maximum(src_lengths, tgt_lengths), np.minimum(src_lengths, tgt_lengths)
    codes = np.zeros(len(longer), dtype=np.uint8)
    codes[longer > RATIO_ALLOWANCE + max_length_ratio * shorter] = OUT_OF_PROPORTION
    codes[longer > max_length] = TOO_LONG
    return codes


def _each(function: Callable[[str], Any], texts: Texts, dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.fromiter(map(function, texts), dtype=dtype, count=len(texts))
