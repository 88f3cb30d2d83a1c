"""Texts in, translations out: tokenise, sort, batch, search, and put everything back in order.

In fp32 the translation of a line depends on nothing but the line: sentences share a batch only with others of
the same padded length, and batches are never so small that matrix products round differently. Files, line
formats and scores are not known here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer_mt.checkpoint import load_run
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.beam_search import Hypothesis, beam_search
from transformer_mt.decoding.greedy import greedy_search
from transformer_mt.decoding.lexical_table import LINKS, lexical_table
from transformer_mt.decoding.shortlist import Shortlist
from transformer_mt.decoding.stepper import Stepper
from transformer_mt.decoding.workers import Workers, pick_workers
from transformer_mt.errors import CheckpointError, ConfigError, DataError
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.narrow_linear import (
    HalfLinear,
    Int8Linear,
    narrow_linear,
    take_up_weights,
    with_narrow_products,
)
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.recipe import parse_section
from transformer_mt.runtime.device import autocast_dtype, is_out_of_memory, pick_device, pick_precision
from transformer_mt.text.lines import is_blank, one_line
from transformer_mt.text.tokenizer import BOS_ID, EOS_ID, NUM_SPECIAL, PAD_ID, UNK_ID, Tokenizers

# Source lengths are padded up to a multiple of this: a function of the sentence alone.
_LENGTH_STEP = 8
# Padded source tokens in one batch, so that a long line gets a batch to itself.
_MAX_BATCH_TOKENS = 8192

# Any character can be spelled in bytes: unk is never needed.
_BANNED = (PAD_ID, UNK_ID, BOS_ID)

_Task = tuple[dict[int, list[int]], int]
"""A batch: place of a line -> its source ids, and the number of the first place for error messages."""


@dataclass(frozen=True)
class Candidate:
    """One translation of a line: text without line ends, score, target ids without eos, and whether the
    length limit closed it."""

    text: str
    score: float
    ids: list[int]
    at_limit: bool


@dataclass(frozen=True)
class Translation:
    """What became of one line: its best translation, and the `nbest` ones with distinct texts.

    num_src_tokens counts the source tokens without eos; 0 for a blank line, whose translation is empty.
    """

    nbest: list[Candidate]
    num_src_tokens: int

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
            models: fp32, on `device`. In another precision twins of them multiply.
            tokenizers: of all models.
            decoding: how to search.
            device: where to compute.
            workers: processes that share the batches of a call; None is one per thread of a CPU. They start
                at the first call that has several batches, and from then on keep the weights of that moment.
            shortlist: which target tokens may come in a translation; None is all.
            follow: each call of `translate` takes up what the weights have become; False: they never change.
        """
        self.device = torch.device(device)
        self.tokenizers = tokenizers
        self.decoding = decoding
        dtype = _dtype(decoding, self.device)
        self.models = [_with_products(model, dtype) for model in models]
        self._originals = list(models) if follow else []
        self._rough_output = _rough_output(self.models, dtype)
        self._stepper = Stepper(
            self.models,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            banned=_BANNED,
            invisible=_invisible_ids(tokenizers),
            min_length=decoding.min_length,
            rough_output=self._rough_output,
            shortlist=shortlist,
        )
        limits = [model.max_length for model in self.models if model.max_length is not None]
        self._max_length = min(limits) if limits else None
        self.shortlist_size = 0 if shortlist is None else shortlist.size
        self.num_workers = pick_workers(workers, self.device)
        self._workers: Workers[_Task, list[Translation]] | None = None

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
            workers: as in `Translator`.
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
        sources = {index: [*ids, EOS_ID] for index, ids in zip(full, encoded, strict=True)}
        self._check_lengths(sources, first_line)
        results: list[Translation] = [Translation([Candidate("", 0.0, [], False)], 0)] * len(lines)
        self._take_up_weights()
        batches = list(_batches(sources, self.decoding.batch_size))
        tasks: list[_Task] = [({index: sources[index] for index in batch}, first_line) for batch in batches]
        for batch, found in zip(batches, self._translate_batches(tasks), strict=True):
            for index, translation in zip(batch, found, strict=True):
                results[index] = translation
        return results

    def _translate_batches(self, tasks: Sequence[_Task]) -> list[list[Translation]]:
        """By the workers; a single batch has all threads of this process instead."""
        if self.num_workers == 1 or len(tasks) < 2:
            return [self._translate_batch(task) for task in tasks]
        if self._workers is None:
            self._workers = Workers(self._translate_batch, self.num_workers)
        try:
            return self._workers.map(tasks)
        except BaseException:
            self._workers = None
            raise

    def _translate_batch(self, task: _Task) -> list[Translation]:
        sources, first_line = task
        with torch.inference_mode(), _evaluating(self.models):
            found = self._search(list(sources), sources, first_line)
        return [
            self._translation(hypotheses, len(ids) - 1)
            for hypotheses, ids in zip(found, sources.values(), strict=True)
        ]

    def _take_up_weights(self) -> None:
        if not self._originals:
            return
        for original, model in zip(self._originals, self.models, strict=True):
            if model is not original and isinstance(original, nn.Module) and isinstance(model, nn.Module):
                take_up_weights(model, original)
        if self._rough_output is not None:
            self._rough_output.take_up(self.models[0].output_weight.detach(), None)

    def _check_lengths(self, sources: dict[int, list[int]], first_line: int) -> None:
        for index, ids in sources.items():
            if self._max_length is not None and len(ids) > self._max_length:
                raise DataError(
                    f"line {index + first_line}: has {len(ids)} tokens with eos, but this model's learned "
                    f"positions end at {self._max_length}; split the line, or train with another "
                    "model.positions"
                )

    def _search(
        self, batch: list[int], sources: dict[int, list[int]], first_line: int
    ) -> list[list[Hypothesis]]:
        """Hypotheses of every line of a batch; a batch that does not fit into memory is halved."""
        try:
            return self._search_batch([sources[index] for index in batch])
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise DataError(
                    f"line {batch[0] + first_line}: its {len(sources[batch[0]])} tokens do not fit into the "
                    "memory of the device; split the line, or lower --beam-size"
                ) from None
        half = len(batch) // 2
        first = self._search(batch[:half], sources, first_line)
        return first + self._search(batch[half:], sources, first_line)

    def _search_batch(self, sources: list[list[int]]) -> list[list[Hypothesis]]:
        decoding = self.decoding
        src_ids = _pad(sources).to(self.device)  # (B, S)
        src_mask = padding_mask(src_ids, PAD_ID)
        limits = [self._limit(len(ids) - 1) for ids in sources]
        if decoding.beam_size == 1:
            best = greedy_search(
                self._stepper,
                src_ids,
                src_mask,
                length_penalty=decoding.length_penalty,
                limits=limits,
            )
            return [[hypothesis] if math.isfinite(hypothesis.score) else [] for hypothesis in best]
        return beam_search(
            self._stepper,
            src_ids,
            src_mask,
            beam_size=decoding.beam_size,
            # Several hypotheses may spell the same text; the spare ones take the places of copies.
            num_finished=1 if decoding.nbest == 1 else decoding.beam_size,
            length_penalty=decoding.length_penalty,
            limits=limits,
        )

    def _limit(self, num_src_tokens: int) -> int:
        """Most tokens of a translation before eos, at least one."""
        limit = int(self.decoding.max_len_a * num_src_tokens) + self.decoding.max_len_b
        if self._max_length is not None:
            limit = min(limit, self._max_length - 1)  # bos takes a position too
        return max(limit, 1)

    def _translation(self, hypotheses: list[Hypothesis], num_src_tokens: int) -> Translation:
        if not hypotheses:
            raise CheckpointError(
                f"the model gives no finite probabilities in {self.decoding.precision}; use another "
                "checkpoint, or precision fp32"
            )
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


def _dtype(decoding: DecodingConfig, device: torch.device) -> torch.dtype:
    return autocast_dtype(pick_precision(decoding.precision, device))


def _with_products(model: TrainableModel, dtype: torch.dtype) -> TrainableModel:
    """The model itself, or its twin that multiplies in narrower numbers."""
    if dtype == torch.float32 or not isinstance(model, nn.Module):
        return model
    return with_narrow_products(model, dtype, model.output_weight)


def _rough_output(models: Sequence[TrainableModel], dtype: torch.dtype) -> HalfLinear | Int8Linear | None:
    """The output matrix in narrower numbers; an ensemble has no logits that could be corrected by it."""
    if dtype == torch.float32 or len(models) > 1:
        return None
    return narrow_linear(models[0].output_weight, None, dtype)


def _shortlist(
    run: str | Path, checkpoint: str | int, tokenizers: Tokenizers, size: int, device: torch.device
) -> Shortlist:
    return Shortlist(
        lexical_table(run, checkpoint, tokenizers),
        size,
        shared=tokenizers.shared,
        eos_id=EOS_ID,
        banned=_BANNED,
        device=device,
    )


def _fingerprints(tokenizers: Tokenizers) -> tuple[str, str]:
    return tokenizers.src.fingerprint, tokenizers.tgt.fingerprint


def _padded_length(ids: Sequence[int]) -> int:
    return -(-len(ids) // _LENGTH_STEP) * _LENGTH_STEP


def _pad(sources: list[list[int]]) -> Tensor:
    """Sentences of one padded length -> (B, S) ids."""
    padded = torch.full((len(sources), _padded_length(sources[0])), PAD_ID, dtype=torch.long)
    for row, ids in enumerate(sources):
        padded[row, : len(ids)] = torch.tensor(ids)
    return padded


def _batches(sources: dict[int, list[int]], batch_size: int) -> Iterator[list[int]]:
    """Line indices in batches of one padded length each, longest first, within both bounds of size."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, ids in sources.items():
        by_length[_padded_length(ids)].append(index)
    for length in sorted(by_length, reverse=True):
        # Neighbours of like length end at about the same step.
        indices = sorted(by_length[length], key=lambda index: (len(sources[index]), index))
        size = min(batch_size, max(_MAX_BATCH_TOKENS // length, 1))
        for start in range(0, len(indices), size):
            yield indices[start : start + size]


@contextmanager
def _evaluating(models: Sequence[TrainableModel]) -> Iterator[None]:
    """Dropout off, and afterwards as it was: the models may be in the middle of training."""
    modules = [model for model in models if isinstance(model, nn.Module)]
    modes = [module.training for module in modules]
    try:
        for module in modules:
            module.eval()
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.train(mode)
