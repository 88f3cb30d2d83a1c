"""What is wrong with a corpus: which pairs cannot be trained on, why, and how many.

Training pairs are dropped for the first reason that holds; validation and test pairs are only counted.
Sentences are compared by 8-byte hashes, so memory is 9 bytes a pair whatever the length of the text (two
different sentences share a hash once in 10^19). Knows token counts only as numbers it is given.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transformer_mt.text.lines import is_blank, trimmed

Pair = tuple[str, str]
Codes = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]
Lengths = npt.NDArray[np.integer]

KEPT = 0
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

    def look(self, pair: Pair, place: Callable[[], str]) -> None:
        """Note what is odd in a pair but kept in every split."""
        src, tgt = pair
        if "\u2581" in src or "\u2581" in tgt:
            self.add("U+2581 in the text, becomes a space", place)
        if "\0" in src or "\0" in tgt:
            self.add("NUL in the text", place)
        if ("&" in src and _ENTITY.search(src)) or ("&" in tgt and _ENTITY.search(tgt)):
            self.add("HTML entity in the text", place)


class HeldOut:
    """The sentences of validation and test sets, which no training pair may share."""

    def __init__(self) -> None:
        self._src: set[int] = set()
        self._tgt: set[int] = set()

    def add(self, pairs: Iterable[Pair]) -> None:
        """Hold more sentences out."""
        for src, tgt in pairs:
            self._src.add(_hash(src))
            self._tgt.add(_hash(tgt))

    def holds(self, src_hash: int, tgt_hash: int) -> bool:
        """Whether one of the sentences is held out."""
        return src_hash in self._src or tgt_hash in self._tgt


def check_text(pairs: Sequence[Pair], held_out: HeldOut) -> tuple[Codes, Hashes]:
    """What the text alone tells: (code, hash) of each pair. Duplicates need all hashes: `mark_duplicates`."""
    codes = np.zeros(len(pairs), dtype=np.uint8)
    hashes = np.zeros((len(pairs), 2), dtype=np.uint64)
    for index, (src, tgt) in enumerate(pairs):
        if is_blank(src) or is_blank(tgt):
            codes[index] = EMPTY
            continue
        src_hash, tgt_hash = _hash(src), _hash(tgt)
        hashes[index] = src_hash, tgt_hash
        if held_out.holds(src_hash, tgt_hash):
            codes[index] = LEAK
    # An odd multiplier keeps (a, b) and (b, a) apart; arithmetic is modulo 2^64.
    return codes, hashes[:, 0] * np.uint64(0x9E3779B97F4A7C15) + hashes[:, 1]


def mark_duplicates(codes: Codes, hashes: Hashes) -> None:
    """Give every repetition of an earlier pair its code, in place; the first one stays."""
    kept = np.flatnonzero(codes == KEPT)
    order = kept[np.argsort(hashes[kept], kind="stable")]
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


def _hash(text: str) -> int:
    key = trimmed(text).encode("utf-8")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
