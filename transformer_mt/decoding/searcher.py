"""Source ids in, hypotheses out: batches, searches, shares the work out, and lives with little memory.

In fp32 the hypotheses of a sentence depend on nothing but the sentence: see `batches.py`, and the stepper for
batches never so small that matrix products round differently. Knows no text.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import torch
from torch import Tensor, nn

from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.batches import padded, padded_prefixes, same_length_batches
from transformer_mt.decoding.beam_search import NO_ROOM, Hypothesis, beam_search
from transformer_mt.decoding.coverage import by_coverage
from transformer_mt.decoding.greedy import greedy_search, token_by_token
from transformer_mt.decoding.models import evaluating, rough_output, with_products
from transformer_mt.decoding.sampling import Sampling, drawing
from transformer_mt.decoding.shortlist import Shortlist
from transformer_mt.decoding.stepper import Stepper
from transformer_mt.decoding.workers import Workers, pick_workers
from transformer_mt.errors import CheckpointError, ConfigError, DataError
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.narrow_linear import take_up_weights
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.runtime.device import autocast_dtype, is_out_of_memory, pick_precision
from transformer_mt.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID

_log = logging.getLogger("transformer_mt")
# Any character can be spelled in bytes: unk is never needed.
BANNED_IDS = (PAD_ID, UNK_ID, BOS_ID)
# No n-gram of this size comes twice in a loop-safe search.
SAFE_NGRAM = 3


@dataclass(frozen=True)
class Sentence:
    """What is searched for.

    src_ids end in eos; number is that of the line, for error messages and, with that of the part of the line,
    for what is drawn; every hypothesis begins with the target ids of the prefix.
    """

    src_ids: list[int]
    number: int
    prefix: tuple[int, ...] = ()
    part: int = 0


class _Task(NamedTuple):
    """What a worker is given."""

    sentences: list[Sentence]
    loop_safe: bool


class _Inputs(TypedDict):
    """What all searches are given."""

    src_ids: Tensor
    src_mask: Tensor
    length_penalty: float
    limits: list[int]
    prefixes: Tensor | None


class Searcher:
    """Searches with one model or an ensemble."""

    def __init__(
        self,
        models: Sequence[TrainableModel],
        decoding: DecodingConfig,
        device: torch.device,
        *,
        invisible: Sequence[int],
        workers: int | None = 1,
        shortlist: Shortlist | None = None,
        follow: bool = True,
    ) -> None:
        """Take models that are in memory.

        Args:
            models: fp32, on `device`. In another precision twins of them multiply.
            decoding: how to search.
            device: where to compute.
            invisible: target ids that leave no trace in text; they do not count as translation.
            workers: processes that share the batches of a call; None is one per thread of a CPU. They start
                at the first call that has several batches, and from then on keep the weights of that moment.
            shortlist: which target tokens may come in a translation; None is all.
            follow: each call takes up what the weights have become; False: they never change.

        Raises:
            ConfigError: a shortest length beyond the models' learned positions.
        """
        self.device = device
        self.decoding = decoding
        dtype = autocast_dtype(pick_precision(decoding.precision, device))
        self.models = [with_products(model, dtype) for model in models]
        self._originals = list(models) if follow else []
        # Draws are from all of the distribution, which a rough matrix knows only roughly.
        self._rough_output = None if decoding.temperature else rough_output(self.models, dtype)

        def stepper(no_repeat_ngram: int) -> Stepper:
            return Stepper(
                self.models,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                banned=BANNED_IDS,
                invisible=invisible,
                min_length=decoding.min_length,
                no_repeat_ngram=no_repeat_ngram,
                repetition_penalty=decoding.repetition_penalty,
                rough_output=self._rough_output,
                shortlist=shortlist,
            )

        self._stepper = stepper(decoding.no_repeat_ngram)
        self._safe_stepper = stepper(min(decoding.no_repeat_ngram or SAFE_NGRAM, SAFE_NGRAM))
        limits = [model.max_length for model in self.models if model.max_length is not None]
        self.max_length = min(limits) if limits else None
        if self.max_length is not None and decoding.min_length > self.max_length - 1:  # bos takes a position
            raise ConfigError(
                f"min_length {decoding.min_length}: this model's learned positions end a translation at "
                f"{self.max_length - 1} tokens; lower it"
            )
        self.num_workers = pick_workers(workers, device)
        self._workers: Workers[_Task, list[list[Hypothesis]]] | None = None

    def search(self, sentences: Sequence[Sentence], *, loop_safe: bool = False) -> list[list[Hypothesis]]:
        """The best hypotheses of every sentence, in order, best first; samples in the order they are drawn.

        A sentence that does not fit into the memory even by itself gets `NO_ROOM` and a warning.

        Args:
            sentences: in any order.
            loop_safe: search with no_repeat_ngram 3, or with what is set where that is less.

        Raises:
            DataError: a sentence that is too long for learned positions, or a prefix that no translation can
                have.
            CheckpointError: a model without finite probabilities.
        """
        self._check(sentences)
        self._take_up_weights()
        batches = list(
            same_length_batches(
                [one.src_ids for one in sentences],
                [one.prefix for one in sentences],
                batch_size=self.decoding.batch_size,
            )
        )
        tasks = [_Task([sentences[place] for place in batch], loop_safe) for batch in batches]
        found = self._search_batches(tasks)
        results: list[list[Hypothesis]] = [[]] * len(sentences)
        for batch, hypotheses in zip(batches, found, strict=True):
            for place, best in zip(batch, hypotheses, strict=True):
                results[place] = best
        if not all(results):
            raise CheckpointError(
                f"the model gives no finite probabilities in {self.decoding.precision}; use another "
                "checkpoint, or precision fp32"
            )
        for sentence, best in zip(sentences, results, strict=True):
            if best == [NO_ROOM] and not loop_safe:  # of a second search it has been said
                _log.warning(
                    "transformer-mt: warning: line %d: its %d tokens do not fit into the memory of the "
                    "device; its translation is left empty: split the line, or lower --beam-size",
                    sentence.number,
                    len(sentence.src_ids),
                )
        return results

    def _search_batches(self, tasks: Sequence[_Task]) -> list[list[list[Hypothesis]]]:
        """By the workers; a single batch has all threads of this process instead."""
        if self.num_workers == 1 or len(tasks) < 2:
            return [self._search_in_evaluation_mode(task) for task in tasks]
        if self._workers is None:
            self._workers = Workers(self._search_in_evaluation_mode, self.num_workers)
        try:
            return self._workers.map(tasks)
        except BaseException:
            self._workers = None
            raise

    def _search_in_evaluation_mode(self, task: _Task) -> list[list[Hypothesis]]:
        with torch.inference_mode(), evaluating(self.models):
            return self._search(task.sentences, self._safe_stepper if task.loop_safe else self._stepper)

    def _take_up_weights(self) -> None:
        if not self._originals:
            return
        for original, model in zip(self._originals, self.models, strict=True):
            if model is not original and isinstance(original, nn.Module) and isinstance(model, nn.Module):
                take_up_weights(model, original)
        if self._rough_output is not None:
            self._rough_output.take_up(self.models[0].output_weight.detach(), None)

    def _check(self, sentences: Sequence[Sentence]) -> None:
        for sentence in sentences:
            if self.max_length is not None and len(sentence.src_ids) > self.max_length:
                raise DataError(
                    f"line {sentence.number}: has {len(sentence.src_ids)} tokens with eos, but this model's "
                    f"learned positions end at {self.max_length}; split the line, or train with another "
                    "model.positions"
                )
            # bos before it, and at least one token after it.
            if self.max_length is not None and len(sentence.prefix) + 2 > self.max_length:
                raise DataError(
                    f"line {sentence.number}: its prefix has {len(sentence.prefix)} tokens, but this model's "
                    f"learned positions end at {self.max_length}; shorten the prefix"
                )
            for token in sentence.prefix:
                if token in (*BANNED_IDS, EOS_ID):
                    raise DataError(
                        f"line {sentence.number}: its prefix has the token {token}, which no translation can "
                        "have; write the prefix as text"
                    )

    def _search(self, batch: list[Sentence], stepper: Stepper) -> list[list[Hypothesis]]:
        """Hypotheses of every sentence of a batch; a batch that does not fit into memory is halved."""
        try:
            return self._search_batch(batch, stepper)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                return [[NO_ROOM]]
        half = len(batch) // 2
        first = self._search(batch[:half], stepper)
        return first + self._search(batch[half:], stepper)

    def _search_batch(self, batch: list[Sentence], stepper: Stepper) -> list[list[Hypothesis]]:
        decoding = self.decoding
        if decoding.temperature:
            return self._draw_batch(batch, stepper)
        inputs = self._inputs(batch)
        if decoding.beam_size == 1:
            return _finite(greedy_search(stepper, **inputs), 1)
        found = beam_search(
            stepper,
            **inputs,
            beam_size=decoding.beam_size,
            # Several hypotheses may spell the same text; the spare ones take the places of copies.
            num_finished=1 if decoding.nbest == 1 and not decoding.coverage_penalty else decoding.beam_size,
        )
        if not decoding.coverage_penalty:
            return found
        return by_coverage(
            self.models,
            [(sentence.src_ids, sentence.number) for sentence in batch],
            found,
            beta=decoding.coverage_penalty,
            device=self.device,
            batch_size=decoding.batch_size,
        )

    def _draw_batch(self, batch: list[Sentence], stepper: Stepper) -> list[list[Hypothesis]]:
        """`nbest` samples of every sentence, `batch_size` of all of them at a time."""
        decoding = self.decoding
        sampling = Sampling(decoding.temperature, decoding.top_k, decoding.top_p, decoding.seed)
        rows = [(sentence, number) for sentence in batch for number in range(decoding.nbest)]
        drawn: list[Hypothesis] = []
        for start in range(0, len(rows), decoding.batch_size):
            part = rows[start : start + decoding.batch_size]
            draws = [(sentence.number, sentence.part, number) for sentence, number in part]
            inputs = self._inputs([sentence for sentence, _ in part])
            drawn += token_by_token(stepper, **inputs, choice=drawing(sampling, draws))
        return _finite(drawn, decoding.nbest)

    def _inputs(self, batch: Sequence[Sentence]) -> _Inputs:
        """What all searches are given of a batch."""
        src_ids = padded([sentence.src_ids for sentence in batch], self.max_length).to(self.device)  # (B, S)
        prefixes = padded_prefixes([sentence.prefix for sentence in batch])
        return {
            "src_ids": src_ids,
            "src_mask": padding_mask(src_ids, PAD_ID),
            "length_penalty": self.decoding.length_penalty,
            "limits": [self._limit(sentence) for sentence in batch],
            "prefixes": None if prefixes is None else prefixes.to(self.device),
        }

    def _limit(self, sentence: Sentence) -> int:
        """Most tokens of a translation before eos, its prefix and at least one more."""
        limit = int(self.decoding.max_len_a * (len(sentence.src_ids) - 1)) + self.decoding.max_len_b
        if self.max_length is not None:
            limit = min(limit, self.max_length - 1)  # bos takes a position too
        return max(limit, len(sentence.prefix) + 1)


def _finite(hypotheses: Sequence[Hypothesis], size: int) -> list[list[Hypothesis]]:
    """In lists of `size`, without those whose probabilities are not finite."""
    return [
        [one for one in hypotheses[start : start + size] if math.isfinite(one.score)]
        for start in range(0, len(hypotheses), size)
    ]
