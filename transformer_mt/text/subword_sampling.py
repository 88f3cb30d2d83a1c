"""Random segmentations of text over the pieces of a SentencePiece model.

SentencePiece draws segmentations itself, but from a generator that cannot be seeded reliably (docs/design.md,
section 10), so that no run could be repeated or continued. Here a draw is a pure function of text, rate and
seed, in every process. Knows nothing of files, of languages, or of where seeds come from.
"""

from __future__ import annotations

import functools
import math
import random
import re
from collections.abc import Callable, Mapping
from itertools import pairwise

import sentencepiece

_NUM_VARIANTS = 64
_CACHE_SIZE = 200_000


class SubwordSampler:
    """Draws segmentations for one model.

    An approximation: a word, which is what starts at a space, has 64 segmentations, drawn when first needed,
    and a text takes one of the 64 for each of its words. So for a given word a segmentation of probability p
    has a share of p ± sqrt(p(1 - p) / 64), and most of those rarer than one in 100 are never seen.
    """

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        self._processor = processor
        self._ids = {
            str(processor.id_to_piece(token)): token
            for token in range(processor.get_piece_size())
            if not (processor.is_control(token) or processor.is_unknown(token) or processor.is_byte(token))
        }
        self._byte_ids = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        scores = {piece: float(processor.get_score(token)) for piece, token in self._ids.items()}
        # The model's type cannot be asked for; but BPE's scores are ranks, unigram's are logarithms.
        if all(score.is_integer() for score in scores.values()):
            self._draw = functools.partial(drop_merges, scores=scores)
        else:
            self._draw = functools.partial(draw_from_lattice, scores=scores, longest=max(map(len, scores)))
        crossing = any("\u2581" in piece[1:] for piece in self._ids)
        self._word = re.compile(r"(?s).+" if crossing else "\u2581[^\u2581]*|[^\u2581]+")
        self._segment: Callable[[str, int, float], tuple[int, ...]] = functools.lru_cache(_CACHE_SIZE)(
            self._draw_word
        )

    def sample(self, text: str, rate: float, seed: int) -> list[int]:
        """Ids of one random segmentation; see `Tokenizer.sample`."""
        words = self._word.findall(self._processor.normalize(text))
        # Seeding with numbers and strings gives the same stream in every process; hash() does not.
        variants = random.Random(seed).choices(range(_NUM_VARIANTS), k=len(words))
        ids: list[int] = []
        for word, variant in zip(words, variants, strict=True):
            ids.extend(self._segment(word, variant, rate))
        return ids

    def _draw_word(self, word: str, variant: int, rate: float) -> tuple[int, ...]:
        """Ids of one segmentation of a word; characters without a piece are spelled in bytes."""
        ids: list[int] = []
        for piece in self._draw(word, rate, random.Random(f"{variant} {word}")):
            if piece in self._ids:
                ids.append(self._ids[piece])
            else:
                ids.extend(self._byte_ids[byte] for byte in piece.encode())
        return tuple(ids)


def drop_merges(
    word: str, rate: float, generator: random.Random, *, scores: Mapping[str, float]
) -> list[str]:
    """BPE-dropout (Provilkov et al. 2020, algorithm 1); with rate 0, plain BPE.

    Args:
        rate: probability that a possible merge is left out at one step, each by itself.
        scores: of each piece; the merge into the highest one comes first, the leftmost of equal ones.
    """
    symbols = list(word)
    # Score of the piece that each symbol makes with the next one, if it is a piece.
    ranks = [scores.get(left + right) for left, right in pairwise(symbols)]
    while True:
        merges = [
            (-rank, place)
            for place, rank in enumerate(ranks)
            if rank is not None and generator.random() >= rate
        ]
        if not merges:
            return symbols
        place = min(merges)[1]
        symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
        del ranks[place]
        if place > 0:
            ranks[place - 1] = scores.get(symbols[place - 1] + symbols[place])
        if place < len(ranks):
            ranks[place] = scores.get(symbols[place] + symbols[place + 1])


def draw_from_lattice(
    word: str,
    alpha: float,
    generator: random.Random,
    *,
    scores: Mapping[str, float],
    longest: int,
) -> list[str]:
    """One of all segmentations, each with probability ∝ exp(alpha · sum of its scores) (Kudo 2018).

    Forward filtering, backward sampling: log-weights summed from the left, pieces drawn from the right.

    A character that is no piece counts as certain: a learned vocabulary has no other way past it.

    Args:
        scores: logarithm of each piece's probability.
        longest: characters of the longest piece.
    """
    totals = [0.0]
    starts: list[list[int]] = [[]]
    weights: list[list[float]] = [[]]
    for end in range(1, len(word) + 1):
        arrivals = [
            (start, totals[start] + alpha * scores[piece])
            for start in range(max(0, end - longest), end)
            if (piece := word[start:end]) in scores
        ]
        if word[end - 1] not in scores:
            arrivals.append((end - 1, totals[end - 1]))
        top = max(total for _, total in arrivals)
        starts.append([start for start, _ in arrivals])
        weights.append([math.exp(total - top) for _, total in arrivals])
        totals.append(top + math.log(sum(weights[end])))
    pieces = []
    end = len(word)
    while end:
        start = generator.choices(starts[end], weights[end])[0]
        pieces.append(word[start:end])
        end = start
    return pieces[::-1]
