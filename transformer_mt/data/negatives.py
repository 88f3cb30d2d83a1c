"""Pairs that are no translations, made from pairs that are: what a classifier of pairs learns to tell apart.

Each is a pure function of (seed, epoch, example). Words are runs of pieces that begin with a space; where a
script has none, single pieces. Knows ids only, and no model.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from transformer_mt.data.dataset import Ids, ParallelDataset
from transformer_mt.text.presplit import SPACE_MARK
from transformer_mt.text.tokenizer import EOS_ID, Tokenizer

KINDS = ("shuffled", "truncated", "reordered", "replaced")
"""The target of another pair; its own first words, words in another order, or one word of another target."""
Indices = npt.NDArray[np.int64]

# A target of another pair is drawn from so many neighbours in the order of lengths, each way: were it longer
# or shorter than a translation is, length alone would tell.
_NEIGHBOURS = 50
_TRIES = 10
_LEFT = (0.3, 0.8)
# Pieces a word has at most, on the average, where words have spaces between them.
_PIECES_PER_WORD = 4


class Negatives:
    """Makes counter-examples of the pairs of a data set, from other targets of the same."""

    def __init__(
        self, data: ParallelDataset, indices: Indices, tokenizer: Tokenizer, *, seed: int, epoch: int
    ) -> None:
        """Args: indices, the examples that may be used; tokenizer, that of the target."""
        self._data, self._seed, self._epoch = data, seed, epoch
        self._order = indices[np.argsort(data.tgt_lengths[indices], kind="stable")]
        self._lengths = data.tgt_lengths[self._order]
        pieces = tokenizer.pieces(range(tokenizer.vocab_size))
        self._begins_word = np.array([piece.startswith(SPACE_MARK) for piece in pieces])

    def make(self, index: int, kind: str) -> Ids | None:
        """A target of this kind for the source of an example; None where it has too few words for that."""
        draw = np.random.default_rng([self._seed, self._epoch, index, KINDS.index(kind)])
        target = self._data.ids(index)[1]
        words = self._words(target)
        if kind == "truncated" and len(words) > 1:
            return _joined(words[: min(max(int(len(words) * draw.uniform(*_LEFT)), 1), len(words) - 1)])
        if kind == "reordered":
            orders = (draw.permutation(len(words)) for _ in range(_TRIES))
            others = (_joined([words[place] for place in order]) for order in orders)
            return next((other for other in others if not np.array_equal(other, target)), None)
        if kind in ("shuffled", "replaced"):
            other = self._other_target(target, draw)
            return other if kind == "shuffled" or other is None else self._replaced(words, other, draw)
        return None

    def _other_target(self, target: Ids, draw: np.random.Generator) -> Ids | None:
        """That of another pair with about as many tokens."""
        first, last = np.searchsorted(self._lengths, (len(target), len(target) + 1))
        low, high = max(int(first) - _NEIGHBOURS, 0), min(int(last) + _NEIGHBOURS, len(self._order))
        for place in draw.integers(low, high, size=_TRIES):
            other = self._data.ids(int(self._order[place]))[1]
            if not np.array_equal(other, target):
                return other
        return None

    def _replaced(self, words: list[Ids], other: Ids, draw: np.random.Generator) -> Ids | None:
        place, others = int(draw.integers(len(words))), self._words(other)
        new = others[int(draw.integers(len(others)))]
        if np.array_equal(new, words[place]):
            return None
        return _joined([*words[:place], new, *words[place + 1 :]])

    def _words(self, target: Ids) -> list[Ids]:
        """The words of a target, without eos."""
        pieces = target[:-1]
        starts = np.flatnonzero(self._begins_word[pieces])
        if len(starts) * _PIECES_PER_WORD < len(pieces):
            starts = np.arange(len(pieces))
        return np.split(pieces, starts[starts > 0])


def _joined(words: list[Ids]) -> Ids:
    return np.concatenate([*words, [EOS_ID]]).astype(np.int32)
