"""Parts of lines -> translations of them; what looks wrong is searched for once more, safe from loops.

What looks wrong is known to `text/oddities.py`; here comes only whether the length limit ended a translation.
Of lines it only knows what looks wrong in one that was translated in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from transformer_mt.decoding.beam_search import NO_ROOM, Hypothesis
from transformer_mt.decoding.parts import Part
from transformer_mt.decoding.searcher import SAFE_NGRAM, Searcher
from transformer_mt.decoding.translation import LIMIT, MEMORY, NOTHING, Candidate, Translation
from transformer_mt.text.lines import one_line
from transformer_mt.text.oddities import oddities
from transformer_mt.text.tokenizer import Tokenizers
from transformer_mt.text.trained_on import TrainedOn


class WatchedSearch:
    """Searches, and looks at what it found."""

    def __init__(self, searcher: Searcher, tokenizers: Tokenizers, trained_on: TrainedOn | None) -> None:
        """Without facts of a training text no length is odd."""
        self._searcher, self._tokenizers = searcher, tokenizers
        without_lengths = None if trained_on is None else replace(trained_on, proportion=None)
        self._oddities = oddities if trained_on is None else trained_on.oddities
        self._oddities_of_line = oddities if without_lengths is None else without_lengths.oddities
        decoding = searcher.decoding
        self._nbest = decoding.nbest
        self._retry = decoding.retry and not 0 < decoding.no_repeat_ngram <= SAFE_NGRAM

    def search(self, parts: Sequence[Part]) -> list[Translation]:
        """The translation of every part, in order."""
        found = self._found(parts, loop_safe=False)
        if not self._retry:
            return found
        doubtful = [place for place, one in enumerate(found) if one.flags and MEMORY not in one.flags]
        again = self._found([parts[place] for place in doubtful], loop_safe=True)
        for place, second in zip(doubtful, again, strict=True):
            found[place] = replace(better(found[place], second), retried=True)
        return found

    def of_line(self, line: str, translation: Translation) -> Translation:
        """With what looks wrong in a line in parts as a whole, as where all parts say the same.

        A line all of whose parts are in proportion is in proportion too. Proportions say nothing about it
        directly: they were learned from lines of the size of its parts.
        """
        if translation.num_parts == 1 or MEMORY in translation.flags:
            return translation
        signs = self._oddities_of_line(line, translation.text)
        return replace(translation, flags=tuple(dict.fromkeys([*translation.flags, *signs])))

    def _found(self, parts: Sequence[Part], *, loop_safe: bool) -> list[Translation]:
        hypotheses = self._searcher.search([part.sentence for part in parts], loop_safe=loop_safe)
        return [self._judged(part, ones) for part, ones in zip(parts, hypotheses, strict=True)]

    def _judged(self, part: Part, hypotheses: list[Hypothesis]) -> Translation:
        """Distinct texts, and what looks wrong in the best."""
        num_src_tokens = len(part.sentence.src_ids) - 1
        if hypotheses == [NO_ROOM]:
            return Translation([NOTHING], num_src_tokens, flags=(MEMORY,))
        distinct: dict[str, Candidate] = {}
        for one in hypotheses:
            text = one_line(self._tokenizers.tgt.decode(one.token_ids))
            distinct.setdefault(text, Candidate(text, one.score, one.token_ids, one.at_limit))
        nbest = list(distinct.values())[: self._nbest]
        flags = self._oddities(part.shown, nbest[0].text) + (LIMIT,) * nbest[0].at_limit
        return Translation(nbest, num_src_tokens, flags=flags)


def better(first: Translation, second: Translation) -> Translation:
    """The one with fewer flags; of equals the one with the higher score, or the first."""

    def rank(one: Translation) -> tuple[bool, int, float]:
        return MEMORY in one.flags, len(one.flags), -one.score

    return min(first, second, key=rank)
