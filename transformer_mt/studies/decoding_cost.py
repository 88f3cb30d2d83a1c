"""How fast translations are searched, by beam and length, and what a token costs in the cache.

Every hypothesis is made to have the same number of tokens, so that neither speed nor memory depends on what
the model has learned: its weights are random, whether the study trains or not. The search is that of
`translate`, in one process.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Annotated

import torch
from pydantic import BaseModel, Field

from transformer_mt.config import Count, DecodingConfig, Recipe
from transformer_mt.decoding.searcher import Searcher, Sentence
from transformer_mt.model.build import build_model
from transformer_mt.model.cache import TransformerState
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.protocol import Seq2SeqModel
from transformer_mt.runtime.memory import refusing_memory
from transformer_mt.runtime.seeds import seed_weights
from transformer_mt.studies.meter import timed
from transformer_mt.studies.random_ids import random_sentences
from transformer_mt.studies.values import Measured
from transformer_mt.text.tokenizer import BOS_ID, PAD_ID
from transformer_mt.text.vocabulary import NUM_SPECIAL


class DecodingCost(BaseModel):
    """For which beams and lengths the search is timed."""

    model_config = Recipe.model_config

    beams: Annotated[list[Count], Field(min_length=1)] = [1, 5]
    """Hypotheses kept for every sentence."""
    lengths: Annotated[list[Count], Field(min_length=1)]
    """Tokens of every source, and of every translation before its eos."""
    rows: Count = 16
    """Sentences that are searched together."""
    repeats: Count = 1
    """Searches that are timed; their median counts."""


def measure(recipe: Recipe, settings: DecodingCost, device: torch.device) -> Iterator[Measured]:
    """`cache_bytes_per_token`, and of every beam and length `decoding_tokens_per_second`.

    cache_bytes_per_token: of one beam, keys and values of self-attention in all layers together; a model
    without such a cache has none. decoding_tokens_per_second: target tokens of the best hypotheses.

    Raises:
        ConfigError: a length beyond learned positions.
        DataError: the same, of a source.
    """
    seed_weights(recipe.training.seed)
    size = recipe.tokenizer.vocab_size
    model = build_model(recipe.model, size, size).to(device).eval()

    def searcher(beam: int, length: int) -> Searcher:
        decoding = DecodingConfig(
            beam_size=beam,
            min_length=length,
            max_len_a=0.0,
            max_len_b=length,
            batch_size=settings.rows,
            precision=recipe.decoding.precision,
        )
        return Searcher([model], decoding, device, invisible=(), follow=False)

    def sentences(length: int) -> list[Sentence]:
        ids = random_sentences(settings.rows, length, size)
        return [Sentence(src_ids, number) for number, src_ids in enumerate(ids, start=1)]

    with refusing_memory(device):
        cached = cache_bytes_per_token(searcher(1, 1).models[0], device)
        if cached is not None:
            yield Measured("cache_bytes_per_token", cached)
        shortest = min(settings.lengths)
        for beam in settings.beams:
            searcher(beam, shortest).search(sentences(shortest))  # not timed: kernels are chosen now
            for length in settings.lengths:
                speeds = [
                    _tokens_per_second(searcher(beam, length), sentences(length), length, device)
                    for _ in range(settings.repeats)
                ]
                at = {"beam": beam, "length": length}
                told = [speed for speed in speeds if speed is not None]
                median = statistics.median(told) if len(told) == len(speeds) else None
                yield Measured("decoding_tokens_per_second", median, at)


def cache_bytes_per_token(model: Seq2SeqModel, device: torch.device) -> float | None:
    """Bytes that the state of a search holds for a token of a beam, read off its tensors.

    None where the model keeps no keys and values.
    """
    sentences, beams, steps = 2, 3, 4
    src_ids = torch.tensor(random_sentences(sentences, 5, NUM_SPECIAL + 1), device=device)
    with torch.inference_mode():
        state = model.start(model.encode(src_ids, padding_mask(src_ids, PAD_ID)), beams)
        token_ids = torch.full((sentences, beams), BOS_ID, device=device)
        for _ in range(steps):
            _, state = model.decode_step(token_ids, state)
    if not isinstance(state, TransformerState):
        return None
    used = [side[:, :, : cache.used].nbytes for cache in state.caches for side in (cache.keys, cache.values)]
    return sum(used) / (sentences * beams * steps)


def _tokens_per_second(
    searcher: Searcher, sentences: list[Sentence], length: int, device: torch.device
) -> float | None:
    """None where the memory does not hold the search."""
    found, seconds = timed(lambda: searcher.search(sentences), device)
    if any(len(best[0].token_ids) != length for best in found):
        return None
    return len(sentences) * length / seconds
