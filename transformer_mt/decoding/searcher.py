"""Source ids in, hypotheses out: batches, searches, shares the work out, and lives with little memory.

In fp32 the hypotheses of a sentence depend on nothing but the sentence: see `batches.py`, and the stepper for
batches never so small that matrix products round differently. Knows no text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.batches import padded, same_length_batches
from transformer_mt.decoding.beam_search import Hypothesis, beam_search
from transformer_mt.decoding.greedy import greedy_search
from transformer_mt.decoding.shortlist import Shortlist
from transformer_mt.decoding.stepper import Stepper
from transformer_mt.decoding.workers import Workers, pick_workers
from transformer_mt.errors import CheckpointError, DataError
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.narrow_linear import (
    HalfLinear,
    Int8Linear,
    narrow_linear,
    take_up_weights,
    with_narrow_products,
)
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.runtime.device import autocast_dtype, is_out_of_memory, pick_precision
from transformer_mt.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID

# Any character can be spelled in bytes: unk is never needed.
BANNED_IDS = (PAD_ID, UNK_ID, BOS_ID)


@dataclass(frozen=True)
class Sentence:
    """What is searched for: source ids ending in eos, and the number of its line for error messages."""

    src_ids: list[int]
    number: int


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
        """
        self.device = device
        self.decoding = decoding
        dtype = autocast_dtype(pick_precision(decoding.precision, device))
        self.models = [_with_products(model, dtype) for model in models]
        self._originals = list(models) if follow else []
        self._rough_output = _rough_output(self.models, dtype)
        self._stepper = Stepper(
            self.models,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            banned=BANNED_IDS,
            invisible=invisible,
            min_length=decoding.min_length,
            rough_output=self._rough_output,
            shortlist=shortlist,
        )
        limits = [model.max_length for model in self.models if model.max_length is not None]
        self.max_length = min(limits) if limits else None
        self.num_workers = pick_workers(workers, device)
        self._workers: Workers[list[Sentence], list[list[Hypothesis]]] | None = None

    def search(self, sentences: Sequence[Sentence]) -> list[list[Hypothesis]]:
        """The best hypotheses of every sentence, in order, best first.

        Raises:
            DataError: a sentence that is too long for learned positions or for the memory.
            CheckpointError: a model without finite probabilities.
        """
        self._check_lengths(sentences)
        self._take_up_weights()
        batches = list(same_length_batches([one.src_ids for one in sentences], self.decoding.batch_size))
        found = self._search_batches([[sentences[place] for place in batch] for batch in batches])
        results: list[list[Hypothesis]] = [[]] * len(sentences)
        for batch, hypotheses in zip(batches, found, strict=True):
            for place, best in zip(batch, hypotheses, strict=True):
                results[place] = best
        if not all(results):
            raise CheckpointError(
                f"the model gives no finite probabilities in {self.decoding.precision}; use another "
                "checkpoint, or precision fp32"
            )
        return results

    def _search_batches(self, batches: Sequence[list[Sentence]]) -> list[list[list[Hypothesis]]]:
        """By the workers; a single batch has all threads of this process instead."""
        if self.num_workers == 1 or len(batches) < 2:
            return [self._search_in_evaluation_mode(batch) for batch in batches]
        if self._workers is None:
            self._workers = Workers(self._search_in_evaluation_mode, self.num_workers)
        try:
            return self._workers.map(batches)
        except BaseException:
            self._workers = None
            raise

    def _search_in_evaluation_mode(self, batch: list[Sentence]) -> list[list[Hypothesis]]:
        with torch.inference_mode(), evaluating(self.models):
            return self._search(batch)

    def _take_up_weights(self) -> None:
        if not self._originals:
            return
        for original, model in zip(self._originals, self.models, strict=True):
            if model is not original and isinstance(original, nn.Module) and isinstance(model, nn.Module):
                take_up_weights(model, original)
        if self._rough_output is not None:
            self._rough_output.take_up(self.models[0].output_weight.detach(), None)

    def _check_lengths(self, sentences: Sequence[Sentence]) -> None:
        for sentence in sentences:
            if self.max_length is not None and len(sentence.src_ids) > self.max_length:
                raise DataError(
                    f"line {sentence.number}: has {len(sentence.src_ids)} tokens with eos, but this model's "
                    f"learned positions end at {self.max_length}; split the line, or train with another "
                    "model.positions"
                )

    def _search(self, batch: list[Sentence]) -> list[list[Hypothesis]]:
        """Hypotheses of every sentence of a batch; a batch that does not fit into memory is halved."""
        try:
            return self._search_batch(batch)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise DataError(
                    f"line {batch[0].number}: its {len(batch[0].src_ids)} tokens do not fit into the "
                    "memory of the device; split the line, or lower --beam-size"
                ) from None
        half = len(batch) // 2
        first = self._search(batch[:half])
        return first + self._search(batch[half:])

    def _search_batch(self, batch: list[Sentence]) -> list[list[Hypothesis]]:
        decoding = self.decoding
        src_ids = padded([sentence.src_ids for sentence in batch]).to(self.device)  # (B, S)
        src_mask = padding_mask(src_ids, PAD_ID)
        limits = [self._limit(len(sentence.src_ids) - 1) for sentence in batch]
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
        if self.max_length is not None:
            limit = min(limit, self.max_length - 1)  # bos takes a position too
        return max(limit, 1)


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


@contextmanager
def evaluating(models: Sequence[TrainableModel]) -> Iterator[None]:
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
