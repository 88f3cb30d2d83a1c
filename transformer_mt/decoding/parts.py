"""Lines -> what is searched for: each line as a whole, or in parts where it is more than the models know.

A line is more than they know if it has more tokens than the sources they were trained on, or more
sentences. Both matter: a model that was trained on single sentences ends after the first one, however short
they are. A single sentence, on the other hand, loses where it is cut for no need. So sentences are parted
wherever fewer than one in twenty sources had as many, and a sentence is cut beyond the length of all but one
in a hundred sources.

Knows nothing of what is found for the parts.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from transformer_mt.decoding.searcher import Sentence
from transformer_mt.text.lines import is_blank
from transformer_mt.text.split import sentences, split
from transformer_mt.text.tokenizer import EOS_ID, NUM_BYTES, NUM_SPECIAL, Tokenizers

_log = logging.getLogger("transformer_mt")
# A search takes steps as long as the line, each over all of it: this many tokens take some seconds.
_SLOW_TOKENS = 1000


class Part(NamedTuple):
    """A line, or a part of one, that is searched for by itself.

    text stands at `start` of the line; shown is what the model sees of it: of a part, all but the white space
    behind it.
    """

    text: str
    start: int
    shown: str
    sentence: Sentence


def mostly_unknown(parts: Sequence[Part]) -> bool:
    """Whether most characters of a line have no piece of their own: a script that the models hardly know."""
    bytes_of = (token - NUM_SPECIAL for part in parts for token in part.sentence.src_ids)
    # The first byte of a character stands for it.
    spelled = sum(0 <= byte < NUM_BYTES and byte & 0xC0 != 0x80 for byte in bytes_of)
    return 2 * spelled > sum(len(word) for part in parts for word in part.shown.split())


class PartMaker:
    """Tokenises lines, and cuts those that are too long."""

    def __init__(
        self, tokenizers: Tokenizers, *, limit: int | None = None, most_sentences: int | None = None
    ) -> None:
        """Say what the models know.

        Args:
            tokenizers: of the models.
            limit: source tokens with eos; None is no limit.
            most_sentences: of a line; None is no limit.
        """
        self._tokenizers = tokenizers
        self._limit, self._most = limit, most_sentences

    def parts(
        self, lines: Sequence[str], numbers: Sequence[int], prefixes: Sequence[str]
    ) -> list[list[Part]]:
        """The parts of every line that show something; of most lines one, which is the line.

        Args:
            lines: N lines, none blank.
            numbers: of the lines, N.
            prefixes: text that their translations begin with, N; of a line in parts the first one has it.
        """
        encoded = self._tokenizers.src.encode_batch(lines)
        ids_of_prefixes = [tuple(self._tokenizers.tgt.encode_exactly(prefix)) for prefix in prefixes]
        for ids, number in zip(encoded, numbers, strict=True):
            if self._limit is self._most is None and len(ids) > _SLOW_TOKENS:
                _log.info(
                    "transformer-mt: note: line %d has %d tokens and is searched as a whole, which takes "
                    "long; see --split-long",
                    number,
                    len(ids),
                )
        return [
            self._cut(line, number, prefix)
            if self._is_long(line, ids)
            else [Part(line, 0, line, Sentence([*ids, EOS_ID], number, prefix))]
            for line, ids, number, prefix in zip(lines, encoded, numbers, ids_of_prefixes, strict=True)
        ]

    def _is_long(self, line: str, ids: Sequence[int]) -> bool:
        if self._limit is not None and len(ids) >= self._limit:
            return True
        return self._most is not None and len(sentences(line)) > self._most

    def _cut(self, line: str, number: int, prefix: tuple[int, ...]) -> list[Part]:
        texts = split(line, self._count, limit=self._longest(line), most_sentences=self._most)
        starts = accumulate(map(len, texts), initial=0)
        seen = [(text, start) for text, start in zip(texts, starts, strict=False) if not is_blank(text)]
        shown = [text.rstrip() for text, _ in seen]
        encoded = self._tokenizers.src.encode_batch(shown)
        return [
            Part(text, start, bare, Sentence([*ids, EOS_ID], number, () if part else prefix, part))
            for part, ((text, start), bare, ids) in enumerate(zip(seen, shown, encoded, strict=True))
        ]

    def _longest(self, line: str) -> int:
        """Tokens of a part, without eos."""
        return max(self._limit - 1, 1) if self._limit is not None else self._count([line])[0]

    def _count(self, texts: Sequence[str]) -> list[int]:
        return list(map(len, self._tokenizers.src.encode_batch(texts)))
