"""Finished translations -> the same with token scores or alignments, by one more pass of the models.

The searches stay lean this way: they keep nothing but what they need to choose. What does not fit into the
memory here has no translation, as what does not fit in a search. Knows no lines, only parts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

import torch

from transformer_mt.decoding.alignment import Layer, align
from transformer_mt.decoding.parts import Part
from transformer_mt.decoding.scorer import token_scores
from transformer_mt.decoding.teacher_forcing import Pair
from transformer_mt.decoding.translation import MEMORY, NOTHING, Candidate, Translation
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.text.tokenizer import Tokenizers

_log = logging.getLogger("transformer_mt")


class SecondPass:
    """Gives the candidates of parts what the search does not."""

    def __init__(
        self, models: Sequence[TrainableModel], tokenizers: Tokenizers, device: torch.device, batch_size: int
    ) -> None:
        """Take what the search used; batch_size is the most candidates at a time."""
        self._models, self._tokenizers = models, tokenizers
        self._device, self._batch_size = device, batch_size

    def with_token_scores(self, parts: Sequence[Part], found: Sequence[Translation]) -> list[Translation]:
        """The log-probabilities of all tokens of all candidates.

        Raises:
            DataError: as `token_scores`.
        """
        pairs = [_pair(*row) for row in _rows(parts, found)]
        scores = token_scores(self._models, pairs, device=self._device, batch_size=self._batch_size)
        return _changed(parts, found, "token_scores", scores)

    def with_alignments(
        self, parts: Sequence[Part], found: Sequence[Translation], layer: Layer
    ) -> list[Translation]:
        """Which words of the parts and of all candidates belong together, by the attention of a layer.

        Raises:
            DataError: as `align`.
        """
        rows = _rows(parts, found)
        links = align(
            self._models,
            self._tokenizers,
            [_pair(*row) for row in rows],
            [(part.shown, one.text) for part, one in rows],
            layer=layer,
            device=self._device,
            batch_size=self._batch_size,
        )
        return _changed(parts, found, "alignment", links)


def _rows(parts: Sequence[Part], found: Sequence[Translation]) -> list[tuple[Part, Candidate]]:
    """All candidates that were found, each with its part."""
    return [
        (part, one)
        for part, translation in zip(parts, found, strict=True)
        if MEMORY not in translation.flags
        for one in translation.nbest
    ]


def _pair(part: Part, one: Candidate) -> Pair:
    return Pair(part.sentence.src_ids, one.ids, part.sentence.number)


def _changed(
    parts: Sequence[Part], found: Sequence[Translation], field: str, values: Iterable[object]
) -> list[Translation]:
    """The translations with a value for each candidate of `_rows`; None: there was no room for it."""
    rest = iter(values)
    changed = []
    for part, one in zip(parts, found, strict=True):
        if MEMORY in one.flags:
            changed.append(one)
            continue
        own = list(islice(rest, len(one.nbest)))
        if None in own:
            _log.warning(
                "transformer-mt: warning: line %d: a second pass over its %d source tokens does not fit into "
                "the memory of the device; its translation is left empty: split the line",
                part.sentence.number,
                len(part.sentence.src_ids),
            )
            changed.append(replace(one, nbest=[NOTHING], flags=(MEMORY,)))
            continue
        pairs = zip(one.nbest, own, strict=True)
        nbest = [replace(candidate, **{field: value}) for candidate, value in pairs]  # type: ignore[arg-type]
        changed.append(replace(one, nbest=nbest))
    return changed
