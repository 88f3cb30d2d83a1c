"""Texts in, translations out: tokenise, search, and put everything back in order.

In fp32 the translation of a line depends on nothing but the line. Files, line formats and scores are not
known here; models and batches are the searcher's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from transformer_mt.checkpoint import load_run
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.beam_search import Hypothesis
from transformer_mt.decoding.lexical_table import LINKS, lexical_table
from transformer_mt.decoding.searcher import BANNED_IDS, Searcher, Sentence
from transformer_mt.decoding.shortlist import Shortlist
from transformer_mt.decoding.workers import pick_workers
from transformer_mt.errors import CheckpointError, ConfigError
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.recipe import parse_section
from transformer_mt.runtime.device import pick_device
from transformer_mt.text.lines import is_blank, one_line
from transformer_mt.text.tokenizer import EOS_ID, NUM_SPECIAL, Tokenizers


@dataclass(frozen=True)
class Candidate:
    """One translation of a line.

    text has no line ends; score is log-probability / length^alpha, the length counting eos; ids are target
    ids without eos; at_limit says whether the length limit closed it. When asked for, token_scores are the
    log-probabilities of every id and of eos, and alignment holds pairs of source and target word, from 0.
    """

    text: str
    score: float
    ids: list[int]
    at_limit: bool
    token_scores: list[float] | None = None
    alignment: list[tuple[int, int]] | None = None


@dataclass(frozen=True)
class Translation:
    """What became of one line: its best translation, and the `nbest` ones with distinct texts.

    num_src_tokens counts the source tokens without eos; 0 for a blank line, whose translation is empty.
    num_parts counts the parts that a long line was split into; flags name what looks wrong, and retried says
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


class Translator:
    """Translates lines with one model or an ensemble."""

    def __init__(
        self,
        models: Sequence[TrainableModel],
        tokenizers: Tokenizers,
        decoding: DecodingConfig,
        device: torch.device | str = "cpu",
        *,
        workers: int | None = 1,
        shortlist: Shortlist | None = None,
        follow: bool = True,
    ) -> None:
        """Take models that are in memory.

        Args:
            models: as in `Searcher`, like device, workers, shortlist and follow.
            tokenizers: of all models.
            decoding: how to search.
        """
        self.tokenizers = tokenizers
        self.decoding = decoding
        self.device = torch.device(device)
        self._searcher = Searcher(
            models,
            decoding,
            self.device,
            invisible=_invisible_ids(tokenizers),
            workers=workers,
            shortlist=shortlist,
            follow=follow,
        )
        self.shortlist_size = 0 if shortlist is None else shortlist.size

    @property
    def num_workers(self) -> int:
        """Processes that share the batches of a call."""
        return self._searcher.num_workers

    @classmethod
    def load(
        cls,
        run: str | Path,
        *others: str | Path,
        checkpoint: str | int = "best",
        device: str | None = None,
        workers: int | None = 1,
        shortlist: int = 0,
        **overrides: Any,
    ) -> Translator:
        """Build a translator from a run directory, or an ensemble from several.

        Args:
            run: the run whose recipe says how to search.
            others: further runs with the same tokenizers.
            checkpoint: best, latest, averaged or a step.
            device: cpu, cuda, …; by default a GPU where there is one.
            workers: as in `Searcher`.
            shortlist: likeliest target tokens considered for every source token, besides the most frequent
                ones; learned from the training data at the first use in a run. 0 considers all tokens.
            overrides: keys of the recipe's `decoding` section, such as beam_size=1.

        Raises:
            CheckpointError: no such checkpoint, a damaged one, or tokenizers that differ.
            ConfigError: an override that cannot be used.
            DataError: a shortlist has to be learned, but the training data are gone.
        """
        target = pick_device(device)
        pick_workers(workers, target)  # refused before anything is read
        if not 0 <= shortlist <= LINKS:
            raise ConfigError(f"--shortlist {shortlist}: must be 0 (off) or at most {LINKS}")
        loaded = [load_run(folder, checkpoint, target) for folder in (run, *others)]
        first = loaded[0]
        for folder, other in zip(others, loaded[1:], strict=True):
            if _fingerprints(other.tokenizers) != _fingerprints(first.tokenizers):
                raise CheckpointError(
                    f"{folder}: has another tokenizer than {run}; only runs with equal tokenizers can "
                    "translate together (train with tokenizer.from)"
                )
        decoding = parse_section(overrides, first.recipe.decoding)
        return cls(
            [one.model for one in loaded],
            first.tokenizers,
            decoding,
            target,
            workers=workers,
            shortlist=_shortlist(run, checkpoint, first.tokenizers, shortlist, target) if shortlist else None,
            follow=False,
        )

    def translate(self, lines: Sequence[str], first_line: int = 1) -> list[Translation]:
        """One translation per line, in order. A blank line gives an empty text and is not shown to the model.

        Args:
            lines: raw text.
            first_line: number of the first line, for error messages.

        Raises:
            DataError: a line that is too long for learned positions or for the memory.
        """
        if isinstance(lines, str):
            raise TypeError("translate takes a list of lines, but was given one str")
        full = [index for index, line in enumerate(lines) if not is_blank(line)]
        encoded = self.tokenizers.src.encode_batch([lines[index] for index in full])
        sentences = [
            Sentence([*ids, EOS_ID], first_line + index) for index, ids in zip(full, encoded, strict=True)
        ]
        results = [Translation([Candidate("", 0.0, [], False)], 0)] * len(lines)
        for index, ids, hypotheses in zip(full, encoded, self._searcher.search(sentences), strict=True):
            results[index] = self._translation(hypotheses, len(ids))
        return results

    def _translation(self, hypotheses: list[Hypothesis], num_src_tokens: int) -> Translation:
        distinct: dict[str, Candidate] = {}
        for found in hypotheses:
            text = one_line(self.tokenizers.tgt.decode(found.token_ids))
            distinct.setdefault(text, Candidate(text, found.score, found.token_ids, found.at_limit))
        return Translation(list(distinct.values())[: self.decoding.nbest], num_src_tokens)


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


def _fingerprints(tokenizers: Tokenizers) -> tuple[str, str]:
    return tokenizers.src.fingerprint, tokenizers.tgt.fingerprint
