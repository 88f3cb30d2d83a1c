"""How well a trained run translates its test sets, and how that depends on the length of the sentences.

Translations that stand in the run already are read, others are made and left there, as `compare` does it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated

import torch
from pydantic import BaseModel, Field, model_validator

from transformer_mt.config import Recipe
from transformer_mt.decoding.translator import Translator
from transformer_mt.evaluation.buckets import Part, bucket_scores, by_length
from transformer_mt.evaluation.comparison import Bucket
from transformer_mt.run_evaluation import evaluate_sets, open_run, read_sets
from transformer_mt.studies.values import Measured
from transformer_mt.text.tokenizer import Tokenizer, load_tokenizers


class TestScores(BaseModel):
    """Where sentences of one length end and longer ones begin."""

    __test__ = False  # its name is no test's
    model_config = Recipe.model_config

    edges: list[Annotated[float, Field(gt=0.0)]] = []
    """Source lengths in tokens, eos counted, that the parts go up to; one more has all beyond (default: the
    parts of `compare`, in words or characters)."""
    relative: bool = False
    """Edges are multiples of data.max_length, the longest that training saw."""

    @model_validator(mode="after")
    def _check_edges(self) -> TestScores:
        if any(after <= before for before, after in pairwise(self.edges)):
            raise ValueError(f"edges: must rise, but are {self.edges}")
        if self.relative and not self.edges:
            raise ValueError("relative: is about edges, but there are none; name some, or leave it out")
        return self


def measure(recipe: Recipe, settings: TestScores, device: torch.device) -> Iterator[Measured]:
    """Scores of every set, and BLEU of its sentences by their source length.

    `bleu` and the other metrics of the recipe by set; `bleu_by_length` by set and bucket; `pooled_bleu` and
    `pooled_sentences` of the sentences of all sets by bucket, and `bleu_kept`, the same BLEU as a share of
    that of the shortest bucket. Buckets come shortest first.
    """
    run = open_run(recipe.run_dir, data_root=recipe.data.root)
    sets = read_sets(run, None)
    asked = {"decoding": run.recipe.decoding.model_dump(), "shortlist": 0, "device": str(device)}
    evaluated = evaluate_sets(
        run, sets, asked, lambda: Translator.load(run.path, device=str(device), workers=None)
    )
    tokenizer, language = load_tokenizers(run.folder).src, run.recipe.data.tgt_lang
    unit = float(run.recipe.data.max_length) if settings.relative else 1.0
    rows: list[tuple[str, str, str]] = []
    for name, pairs in sets.items():
        for one in evaluated[name].scores:
            yield Measured(one.name, one.value, {"set": name})
        own = [(*pair, text) for pair, text in zip(pairs, evaluated[name].hypotheses, strict=True)]
        for bucket in _buckets(own, settings, unit, tokenizer, language):
            yield Measured("bleu_by_length", bucket.bleu[0], {"set": name, "bucket": bucket.label})
        rows += own
    buckets = _buckets(rows, settings, unit, tokenizer, language)
    shortest = buckets[0].bleu[0]
    for bucket in buckets:
        yield Measured("pooled_bleu", bucket.bleu[0], {"bucket": bucket.label})
        yield Measured("pooled_sentences", bucket.sentences, {"bucket": bucket.label})
        kept = bucket.bleu[0] / shortest if shortest else None
        yield Measured("bleu_kept", kept, {"bucket": bucket.label})


def _buckets(
    rows: Sequence[tuple[str, str, str]],
    settings: TestScores,
    unit: float,
    tokenizer: Tokenizer,
    language: str,
) -> tuple[Bucket, ...]:
    """BLEU of sources, references and outputs of one length; unit: tokens of an edge of 1."""
    sources, references, outputs = map(list, zip(*rows, strict=True))
    if settings.edges:
        lengths = [len(ids) + 1 for ids in tokenizer.encode_batch(sources)]
        parts = list(_parts(lengths, settings.edges, unit, "x" if settings.relative else ""))
    else:
        parts = by_length(sources)
    return bucket_scores(parts, [outputs], [references], language)


def _parts(lengths: Sequence[int], edges: Sequence[float], unit: float, sign: str) -> Iterator[Part]:
    """The lines up to each edge, and those beyond the last; parts without a line are left out."""
    for low, high in pairwise([0.0, *edges, math.inf]):
        lines = [line for line, length in enumerate(lengths) if low * unit < length <= high * unit]
        if lines:
            yield _label(low, high, sign), lines


def _label(low: float, high: float, sign: str) -> str:
    if not low:
        return f"up to {high:g}{sign}"
    return f"over {low:g}{sign}" if high == math.inf else f"{low:g}{sign} to {high:g}{sign}"
