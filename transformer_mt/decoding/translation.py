"""What became of a line: candidates, flags, and how those of its parts become those of the line.

Plain data; searches nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from transformer_mt.decoding.parts import Part
from transformer_mt.text.split import joined
from transformer_mt.text.tokenizer import EOS_ID
from transformer_mt.text.words import unit_spans

MEMORY, LIMIT, UNKNOWN = "memory", "limit", "unknown"
"""Flags besides the signs of `text/oddities.py`: no room for the line; closed by the length limit; most
characters of the source are not in the vocabulary."""

Links = list[tuple[int, int]]
"""Source word and target word, from 0, in order."""


@dataclass(frozen=True)
class Candidate:
    """One translation of a line.

    text has no line ends; score is log-probability / length^alpha, the length counting eos; ids are target
    ids without eos; at_limit says whether the length limit closed it. When asked for, token_scores are the
    log-probabilities of every id and of eos, and alignment holds pairs of source and target word, from 0. Of
    a line in parts, eos stands between the ids of the parts too, and each counts.
    """

    text: str
    score: float
    ids: list[int]
    at_limit: bool
    token_scores: list[float] | None = None
    alignment: Links | None = None


NOTHING = Candidate("", 0.0, [], False)
"""The translation of a line that shows nothing, or for which there is no room."""


@dataclass(frozen=True)
class Translation:
    """What became of one line: its best translation, and the `nbest` ones with distinct texts.

    num_src_tokens counts the source tokens without eos; 0 for a blank line, whose translation is empty.
    num_parts counts the parts that a line was split into; flags name what looks wrong, and retried says
    whether a second search was made because of it.
    """

    nbest: list[Candidate]
    num_src_tokens: int
    num_parts: int = 1
    flags: tuple[str, ...] = ()
    retried: bool = False

    @property
    def text(self) -> str:
        """The best translation."""
        return self.nbest[0].text

    @property
    def score(self) -> float:
        """Log-probability / length^alpha of the best translation, the length counting eos."""
        return self.nbest[0].score

    @property
    def ids(self) -> list[int]:
        """Target ids of the best translation."""
        return self.nbest[0].ids

    @property
    def at_limit(self) -> bool:
        """Whether the best translation was closed by the length limit."""
        return self.nbest[0].at_limit


def together(
    line: str, parts: Sequence[Part], found: Sequence[Translation], length_penalty: float
) -> Translation:
    """The translation of a line from those of its parts.

    The i-th candidate of the line consists of the i-th ones of the parts, of the last one where a part has
    fewer. The first is the best; the others may have scores in any order. A line with a part that there is no
    room for has no translation at all: half a line would look like a whole one.
    """
    num_src_tokens = sum(one.num_src_tokens for one in found)
    flags = tuple(dict.fromkeys(flag for one in found for flag in one.flags))
    retried = any(one.retried for one in found)
    if MEMORY in flags:
        return Translation([NOTHING], num_src_tokens, len(parts), (MEMORY,), retried)
    if len(parts) == 1:
        return found[0]
    candidates: dict[str, Candidate] = {}
    for rank in range(max(len(one.nbest) for one in found)):
        chosen = [one.nbest[min(rank, len(one.nbest) - 1)] for one in found]
        candidate = _joined(line, parts, chosen, length_penalty)
        candidates.setdefault(candidate.text, candidate)
    return Translation(list(candidates.values()), num_src_tokens, len(parts), flags, retried)


def _joined(
    line: str, parts: Sequence[Part], chosen: Sequence[Candidate], length_penalty: float
) -> Candidate:
    text, starts = joined([part.text for part in parts], [one.text for one in chosen])
    ids = chosen[0].ids + [token for one in chosen[1:] for token in (EOS_ID, *one.ids)]
    total = sum(one.score * (len(one.ids) + 1) ** length_penalty for one in chosen)
    scores = [score for one in chosen for score in one.token_scores or ()]
    links: Links | None = None
    if all(one.alignment is not None for one in chosen):
        links = _links(line, text, parts, chosen, starts)
    return Candidate(
        text,
        total / (len(ids) + 1) ** length_penalty,
        ids,
        any(one.at_limit for one in chosen),
        scores if chosen[0].token_scores is not None else None,
        links,
    )


def _links(
    line: str, text: str, parts: Sequence[Part], chosen: Sequence[Candidate], starts: Sequence[int]
) -> Links:
    """The alignments of the parts, with words counted in the line; a word that was cut is one again."""
    words = [[start for start, _ in unit_spans(side)] for side in (line, text)]
    found: set[tuple[int, int]] = set()
    for part, one, start in zip(parts, chosen, starts, strict=True):
        own = [unit_spans(part.shown), unit_spans(one.text)]
        for src, tgt in one.alignment or ():
            src_place, tgt_place = part.start + own[0][src][0], start + own[1][tgt][0]
            found.add((bisect_right(words[0], src_place) - 1, bisect_right(words[1], tgt_place) - 1))
    return sorted(found)
