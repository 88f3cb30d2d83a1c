"""Texts in, translations out: tokenise, split, search, look at what came out, and put all back in order.

In fp32 the translation of a line depends on nothing but the line. Files, line formats and scores are not
known here; models and batches are the searcher's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.alignment import Layer, check_layer
from transformer_mt.decoding.lexical_table import LINKS, lexical_table
from transformer_mt.decoding.models import load_runs
from transformer_mt.decoding.parts import Part, PartMaker, mostly_unknown
from transformer_mt.decoding.searcher import BANNED_IDS, Searcher
from transformer_mt.decoding.second_pass import SecondPass
from transformer_mt.decoding.shortlist import Shortlist
from transformer_mt.decoding.translation import (
    MEMORY,
    NOTHING,
    UNKNOWN,
    Candidate,
    Translation,
    together,
)
from transformer_mt.decoding.watched_search import WatchedSearch
from transformer_mt.decoding.workers import pick_workers
from transformer_mt.errors import ConfigError
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.recipe import parse_section
from transformer_mt.runtime.device import pick_device
from transformer_mt.text.lines import is_blank
from transformer_mt.text.tokenizer import EOS_ID, NUM_SPECIAL, Tokenizers
from transformer_mt.text.trained_on import TrainedOn
from transformer_mt.text.verbatim import Source, Verbatim

__all__ = ["Candidate", "Translation", "Translator"]


class Translator:
    """Translates lines with one model or an ensemble."""

    def __init__(
        self,
        models: Sequence[TrainableModel],
        tokenizers: Tokenizers,
        decoding: DecodingConfig,
        device: torch.device | str = "cpu",
        *,
        trained_on: TrainedOn | None = None,
        token_scores: bool = False,
        alignment: Layer | None = None,
        protect: Sequence[str] = (),
        tags: bool = False,
        workers: int | None = 1,
        shortlist: Shortlist | None = None,
        follow: bool = True,
    ) -> None:
        """Take models that are in memory.

        Args:
            models: as in `Searcher`, like device, workers, shortlist and follow.
            tokenizers: of all models.
            decoding: how to search.
            trained_on: what lines the models know. Without it a line is long only for learned positions, and
                no length is odd.
            token_scores: whether candidates get the log-probability of each token.
            alignment: the decoder layer, from 1, or "mean" of all, by which candidates get an alignment.
            protect: as in `Verbatim`, like tags.

        Raises:
            ConfigError: no such layer; a pattern that cannot be used.
        """
        self.tokenizers = tokenizers
        self.decoding = decoding
        self.device = torch.device(device)
        self._trained_on = trained_on
        self._token_scores, self._alignment = token_scores, alignment
        self._verbatim = Verbatim(protect, tags=tags)
        self._searcher = Searcher(
            models,
            decoding,
            self.device,
            invisible=_invisible_ids(tokenizers),
            workers=workers,
            shortlist=shortlist,
            follow=follow,
        )
        self._search = WatchedSearch(self._searcher, tokenizers, trained_on)
        self._second_pass = SecondPass(self._searcher.models, tokenizers, self.device, decoding.batch_size)
        if alignment is not None:
            check_layer(self._searcher.models, alignment)
        self._part_maker = self._new_part_maker() if decoding.split_long else PartMaker(tokenizers)
        self.shortlist_size = 0 if shortlist is None else shortlist.size

    def _new_part_maker(self) -> PartMaker:
        facts = self._trained_on
        known = (self._searcher.max_length, None if facts is None else facts.src_tokens)
        return PartMaker(
            self.tokenizers,
            limit=min((one for one in known if one is not None), default=None),
            most_sentences=None if facts is None else facts.sentences,
        )

    @property
    def num_workers(self) -> int:
        """Processes that share the batches of a call."""
        return self._searcher.num_workers

    @property
    def counts_sentences(self) -> bool:
        """Whether it is known with how many sentences a line is too long: a run of an earlier version has
        not noted it."""
        return self._trained_on is not None and self._trained_on.sentences is not None

    @classmethod
    def load(
        cls,
        run: str | Path,
        *others: str | Path,
        checkpoint: str | int = "best",
        device: str | None = None,
        token_scores: bool = False,
        alignment: Layer | None = None,
        protect: Sequence[str] = (),
        tags: bool = False,
        workers: int | None = 1,
        shortlist: int = 0,
        **overrides: Any,
    ) -> Translator:
        """Build a translator from a run directory, or an ensemble from several.

        Args:
            run: the run whose recipe says how to search, and whose training text says which lines are long.
            others: further runs with the same tokenizers.
            checkpoint: best, latest, averaged or a step.
            device: cpu, cuda, …; by default a GPU where there is one.
            token_scores: as in `__init__`, like alignment, protect and tags.
            workers: as in `Searcher`.
            shortlist: likeliest target tokens considered for every source token, besides the most frequent
                ones; learned from the training data at the first use in a run. 0 considers all tokens.
            overrides: keys of the recipe's `decoding` section, such as beam_size=1.

        Raises:
            CheckpointError: no such checkpoint, a damaged one, or tokenizers that differ.
            ConfigError: an override, a layer or a pattern that cannot be used.
            DataError: a shortlist has to be learned, but the training data are gone.
        """
        target = pick_device(device)
        pick_workers(workers, target)  # refused before anything is read
        if not 0 <= shortlist <= LINKS:
            raise ConfigError(f"--shortlist {shortlist}: must be 0 (off) or at most {LINKS}")
        loaded = load_runs(run, *others, checkpoint=checkpoint, device=target)
        first = loaded[0]
        decoding = parse_section(overrides, first.recipe.decoding)
        return cls(
            [one.model for one in loaded],
            first.tokenizers,
            decoding,
            target,
            trained_on=first.trained_on,
            token_scores=token_scores,
            alignment=alignment,
            protect=protect,
            tags=tags,
            workers=workers,
            shortlist=_shortlist(run, checkpoint, first.tokenizers, shortlist, target) if shortlist else None,
            follow=False,
        )

    def translate(
        self, lines: Sequence[str], first_line: int = 1, *, prefixes: Sequence[str] | None = None
    ) -> list[Translation]:
        """One translation per line, in order. A blank line gives an empty text and is not shown to the model.

        A line that does not fit into the memory gets an empty text too, and the flag "memory".

        Args:
            lines: raw text.
            first_line: number of the first line, for messages and for what is drawn.
            prefixes: text that the translation of each line begins with; of a line in parts, that of the
                first one. They are no part of what protects and tags see.

        Raises:
            DataError: a line that is too long for learned positions, when none may be split; a prefix that
                no translation can have.
        """
        if isinstance(lines, str):
            raise TypeError("translate takes a list of lines, but was given one str")
        sources = [self._verbatim.source(line) for line in lines]
        prefixes = prefixes or [""] * len(lines)
        parts = self._parts(sources, first_line, prefixes)
        flat = [part for row in parts for part in row]
        found = self._search.search(flat)
        if self._token_scores:
            found = self._second_pass.with_token_scores(flat, found)
        ones = iter(found)
        rows = self._aligned(sources, parts, [list(islice(ones, len(row))) for row in parts])
        return [self._finished(*line) for line in zip(sources, prefixes, parts, rows, strict=True)]

    def _parts(self, sources: Sequence[Source], first_line: int, prefixes: Sequence[str]) -> list[list[Part]]:
        """What is searched for, line by line: nothing for one that is blank or stays as it is."""
        full = [
            place for place, one in enumerate(sources) if one.untouched is None and not is_blank(one.text)
        ]
        made = self._part_maker.parts(
            [sources[place].text for place in full],
            [first_line + place for place in full],
            [prefixes[place] for place in full],
        )
        parts: list[list[Part]] = [[] for _ in sources]
        for place, row in zip(full, made, strict=True):
            parts[place] = row
        return parts

    def _aligned(
        self, sources: Sequence[Source], parts: Sequence[list[Part]], found: list[list[Translation]]
    ) -> list[list[Translation]]:
        """With alignments where somebody asks for them, or something has to be put into a translation."""
        wanted = [
            place
            for place, (source, row) in enumerate(zip(sources, parts, strict=True))
            if row and self._wants_alignment(source, self._together(source, row, found[place]))
        ]
        if not wanted:
            return found
        flat = self._second_pass.with_alignments(
            [part for place in wanted for part in parts[place]],
            [one for place in wanted for one in found[place]],
            self._alignment or "mean",
        )
        aligned = iter(flat)
        found = list(found)
        for place in wanted:
            found[place] = list(islice(aligned, len(parts[place])))
        return found

    def _wants_alignment(self, source: Source, translation: Translation) -> bool:
        return self._alignment is not None or any(
            self._verbatim.needs_alignment(source, one.text) for one in translation.nbest
        )

    def _together(self, source: Source, parts: list[Part], found: list[Translation]) -> Translation:
        return together(source.text, parts, found, self.decoding.length_penalty)

    def _finished(
        self, source: Source, prefix: str, parts: list[Part], found: list[Translation]
    ) -> Translation:
        """The translation of a line, with all in it that must stay as it is."""
        if source.untouched is not None:
            as_it_is = Candidate(source.untouched, 0.0, [], False)
            return Translation([as_it_is], len(self.tokenizers.src.encode(source.text)))
        if not parts:
            return Translation([NOTHING], 0)
        translation = self._search.of_line(source.text, self._together(source, parts, found))
        if mostly_unknown(parts):
            translation = replace(translation, flags=(*translation.flags, UNKNOWN))
        if source.is_plain or MEMORY in translation.flags:
            return translation
        candidates: dict[str, Candidate] = {}
        for one in translation.nbest:
            text, links = self._verbatim.finish(source, one.text, one.alignment or [], prefix=prefix)
            alignment = None if self._alignment is None else links
            candidates.setdefault(text, replace(one, text=text, alignment=alignment))
        return replace(translation, nbest=list(candidates.values()))


def _invisible_ids(tokenizers: Tokenizers) -> list[int]:
    """Target ids that leave no trace in text, such as a lone space; they do not count as translation."""
    tokenizer = tokenizers.tgt
    return [
        token for token in range(NUM_SPECIAL, tokenizer.vocab_size) if is_blank(tokenizer.decode([token]))
    ]


def _shortlist(
    run: str | Path, checkpoint: str | int, tokenizers: Tokenizers, size: int, device: torch.device
) -> Shortlist:
    return Shortlist(
        lexical_table(run, checkpoint, tokenizers),
        size,
        shared=tokenizers.shared,
        eos_id=EOS_ID,
        banned=BANNED_IDS,
        device=device,
    )
