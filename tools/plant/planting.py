"""Pairs of a corpus made worse in ways that real corpora are: the kind is known, so a filter can be judged.

Everything is drawn from a generator that is handed in. Knows no filter and no files.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from transformer_mt.text.words import counts_characters

Pair = tuple[str, str]
KINDS = ("shuffled", "truncated", "reordered", "replaced", "copied")
"""The target of another pair; its own first words, words in another order, or one word of another target; the
source itself."""
CLEAN = "clean"
_LEFT = (0.3, 0.8)
_TRIES = 10


def plant(pairs: Sequence[Pair], share: float, seed: int) -> Iterator[tuple[Pair, str]]:
    """Every pair in order, as it is or with a target that is made worse, and which of both.

    Args:
        pairs: a corpus.
        share: of the pairs that are made worse, as many of each kind.
        seed: the same gives the same.
    """
    draw = random.Random(seed)
    chosen = draw.sample(range(len(pairs)), round(share * len(pairs)))
    kinds = {place: KINDS[number % len(KINDS)] for number, place in enumerate(chosen)}
    for place, (source, target) in enumerate(pairs):
        kind = kinds.get(place, CLEAN)
        other = draw.choice(pairs)[1]
        worse = target if kind == CLEAN else _worse(kind, source, target, other, draw)
        # A target of one word cannot be reordered: it stays, and counts as clean.
        yield (source, worse), kind if worse != target else CLEAN


def _worse(kind: str, source: str, target: str, other: str, draw: random.Random) -> str:
    if kind == "copied":
        return source
    if kind == "shuffled":
        return other
    characters = counts_characters([target])
    words, others = (list(text) if characters else text.split() for text in (target, other))
    glue = "" if characters else " "
    if len(words) < 2 or not others:
        return target
    if kind == "truncated":
        return glue.join(words[: min(max(int(len(words) * draw.uniform(*_LEFT)), 1), len(words) - 1)])
    if kind == "reordered":
        orders = (draw.sample(words, len(words)) for _ in range(_TRIES))
        return next((text for text in map(glue.join, orders) if text != target), target)
    words[draw.randrange(len(words))] = draw.choice(others)
    return glue.join(words)
