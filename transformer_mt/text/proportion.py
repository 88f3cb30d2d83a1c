"""How long a translation is for its source, in characters: learned from pairs that are known to be good.

Knows nothing of tokens, of models, or of what is done about a length that is odd.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from transformer_mt.text.split import ends_sentence

# Added to every length, so that a word more or less in a short text weighs no more than in a long one.
_ALLOWANCE = 10
# So rarely a good pair may be outside.
_RARE = 3e-4
# A translation is too long only if it is longer by this than good ones ever are, in logarithms: by half.
_SLACK = math.log(3 / 2)
# Lengths that differ less than so, in logarithms, are never odd, however regular the pairs were.
_LEAST_SHORT, _LEAST_UNFINISHED, _LEAST_LONG = -0.3, -0.15, 0.7
_OPENING, _CLOSING = "([（「『“«【《", ")]）」』”»】》"


class Proportion(NamedTuple):
    """log(target + 10) = intercept + slope * log(source + 10), and how far from it a pair may be."""

    intercept: float
    slope: float
    short: float
    """Less than this is too short."""
    unfinished: float
    """Less than this is too short where besides the end seems to be missing; see `is_unfinished`."""
    long: float
    """More than this is too long."""

    @classmethod
    def learn(cls, sources: Sequence[str], targets: Sequence[str]) -> Proportion | None:
        """The line of least squares through some thousand pairs; None if there are no two different lengths.

        The limits leave 3 of 10,000 pairs outside, each; where the end seems to be missing at least the
        shortest 3% are suspicious, and no more.
        """
        src, tgt = _logarithms(sources), _logarithms(targets)
        if len(set(src.tolist())) < 2:
            return None
        slope, intercept = np.polyfit(src, tgt, 1).tolist()
        off = tgt - intercept - slope * src
        pairs = zip(sources, targets, strict=True)
        open_ended = np.fromiter((is_unfinished(*pair) for pair in pairs), np.bool_, len(off))
        low, low_end, high = np.quantile(off, [_RARE, 0.03, 1 - _RARE]).tolist()
        # Pairs that are complete lie above all limits.
        rare = float(np.quantile(np.where(open_ended, off, np.inf), _RARE, method="lower"))
        return cls(
            intercept,
            slope,
            min(low, _LEAST_SHORT),
            min(rare, low_end, _LEAST_UNFINISHED),
            max(high + _SLACK, _LEAST_LONG),
        )

    def off(self, source: str, target: str) -> float:
        """How much longer than expected a target is, in logarithms; below 0 it is shorter."""
        expected = self.intercept + self.slope * math.log(len(source) + _ALLOWANCE)
        return math.log(len(target) + _ALLOWANCE) - expected

    def is_short(self, source: str, target: str) -> bool:
        """Whether so short a target must lack something."""
        off = self.off(source, target)
        return off < self.short or (off < self.unfinished and is_unfinished(source, target))

    def is_long(self, source: str, target: str) -> bool:
        """Whether a target is so long that it must hold what the source does not say."""
        return self.off(source, target) > self.long


def is_unfinished(source: str, target: str) -> bool:
    """Whether the source has a final mark or closes its brackets, and the target does not."""
    if ends_sentence(source) and not ends_sentence(target):
        return True
    return _leaves_open(target) and not _leaves_open(source)


def _leaves_open(text: str) -> bool:
    return any(
        text.count(opening) > text.count(closing) for opening, closing in zip(_OPENING, _CLOSING, strict=True)
    )


def _logarithms(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    lengths = np.fromiter(map(len, texts), np.float64, len(texts))
    logarithms: npt.NDArray[np.float64] = np.log(lengths + _ALLOWANCE)
    return logarithms
