"""With every option of a search, what a sentence gets depends on the sentence alone, bit for bit in fp32."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_models import ARCHITECTURES, small_config

from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.beam_search import Hypothesis
from transformer_mt.decoding.searcher import Searcher, Sentence
from transformer_mt.model.build import Model, build_model
from transformer_mt.text.tokenizer import EOS_ID

VOCAB = 150
OPTIONS: dict[str, dict[str, Any]] = {
    "repeats": {"no_repeat_ngram": 2, "repetition_penalty": 1.4, "nbest": 3},
    "repeats_greedy": {"no_repeat_ngram": 1, "repetition_penalty": 1.4, "beam_size": 1},
    "coverage": {"coverage_penalty": 0.7, "nbest": 3},
    "drawn": {"temperature": 1.2, "nbest": 2},
    "drawn_from_few": {"temperature": 0.9, "top_k": 40, "top_p": 0.9, "repetition_penalty": 1.2},
}


def _model(architecture: str, seed: int) -> Model:
    torch.manual_seed(seed)
    config = small_config(architecture, d_model=96, num_encoder_layers=1, tied_embeddings="decoder")
    return build_model(config, VOCAB, VOCAB).eval()


def _sentences(count: int) -> list[Sentence]:
    """Of 2 to 21 tokens; every third has a prefix, some of which are longer than what may follow."""
    generator = torch.Generator().manual_seed(5)

    def ids(length: int) -> list[int]:
        return torch.randint(4, VOCAB, (length,), generator=generator).tolist()

    return [
        Sentence([*ids(number % 20 + 1), EOS_ID], number, tuple(ids(number % 11 if number % 3 == 0 else 0)))
        for number in range(count)
    ]


def _search(
    models: list[Model],
    sentences: list[Sentence],
    *,
    workers: int = 1,
    loop_safe: bool = False,
    **options: Any,
) -> list[list[Hypothesis]]:
    decoding = DecodingConfig.model_validate({"beam_size": 4, "max_len_a": 0.3, "max_len_b": 4, **options})
    searcher = Searcher(models, decoding, torch.device("cpu"), invisible=(7, 8), workers=workers)
    return searcher.search(sentences, loop_safe=loop_safe)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_neighbours_order_and_workers_do_not_matter(architecture: str, options: dict[str, Any]) -> None:
    """B074 for every option: one by one, in sevens backwards, and in two processes."""
    models = [_model(architecture, 3)]
    sentences = _sentences(16)
    found = _search(models, sentences, **options)
    assert len({tuple(best[0].token_ids) for best in found}) > 8
    assert _search(models, sentences, batch_size=1, **options) == found
    assert _search(models, sentences[::-1], batch_size=7, **options) == found[::-1]
    assert _search(models, sentences, batch_size=5, workers=2, **options) == found


def test_a_loop_safe_search_depends_on_the_sentence_alone() -> None:
    """The same, and workers are told which search it is, one call after another."""
    models = [_model("transformer", 3)]
    sentences = _sentences(9)
    decoding = DecodingConfig.model_validate({"beam_size": 2, "batch_size": 4, "min_length": 20})
    alone, shared = (
        Searcher(models, decoding, torch.device("cpu"), invisible=(), workers=workers) for workers in (1, 2)
    )
    safe = alone.search(sentences, loop_safe=True)
    plain = alone.search(sentences)
    assert plain != safe
    assert shared.search(sentences) == plain
    assert shared.search(sentences, loop_safe=True) == safe
    assert [alone.search([one], loop_safe=True)[0] for one in sentences] == safe


def test_options_off_change_no_bit() -> None:
    """Penalty 1 and n-grams of 0, or longer than anything said, are as if the options did not exist."""
    models = [_model("transformer", 4)]
    sentences = [Sentence(one.src_ids, one.number) for one in _sentences(12)]
    plain = _search(models, sentences, nbest=4)
    explicit = _search(models, sentences, nbest=4, repetition_penalty=1.0, no_repeat_ngram=0)
    longer = _search(models, sentences, nbest=4, no_repeat_ngram=40)
    assert plain == explicit == longer


@pytest.mark.parametrize("options", [OPTIONS[key] for key in ("repeats", "coverage", "drawn")])
def test_a_model_twice_is_the_model(options: dict[str, Any]) -> None:
    """An ensemble of a model with itself finds the same ids, and scores that differ by rounding alone."""
    model = _model("transformer", 6)
    sentences = _sentences(12)
    once, twice = (_search([model] * count, sentences, **options) for count in (1, 2))
    for one, other in zip(once, twice, strict=True):
        assert [found.token_ids for found in one] == [found.token_ids for found in other]
        assert [found.score for found in one] == pytest.approx([found.score for found in other], abs=1e-4)
