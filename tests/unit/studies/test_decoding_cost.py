"""Speed of decoding by beam and length, and bytes of the cache, against numbers computed by hand."""

from __future__ import annotations

import pytest
import torch

from transformer_mt.config import Recipe
from transformer_mt.decoding.beam_search import NO_ROOM, Hypothesis
from transformer_mt.decoding.searcher import Searcher, Sentence
from transformer_mt.errors import ConfigError
from transformer_mt.studies import decoding_cost
from transformer_mt.studies.decoding_cost import DecodingCost, measure

CPU = torch.device("cpu")


def recipe(**model: object) -> Recipe:
    sizes = {"d_model": 24, "num_encoder_layers": 1, "num_decoder_layers": 3}
    return Recipe.model_validate(
        {
            "run_dir": "runs/none",
            "data": {"train": "train", "valid": "valid", "src_lang": "de", "tgt_lang": "en"},
            "tokenizer": {"vocab_size": 300},
            "model": {**sizes, **model},
        }
    )


def transformer(**model: object) -> Recipe:
    return recipe(d_ff=16, num_heads=4, **model)


def found(recipe: Recipe, **settings: object) -> dict[tuple[str, object, object], float | None]:
    values = measure(recipe, DecodingCost.model_validate(settings), CPU)
    return {(one.metric, one.at.get("beam"), one.at.get("length")): one.value for one in values}


def test_every_hypothesis_has_the_wanted_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens per second are rows times length by the median of the times; sources are as long."""
    searched, times = [], iter([4.0, 1.0, 2.0] * 4)
    search = Searcher.search

    def watched(self: Searcher, sentences: list[Sentence]) -> list[list[Hypothesis]]:
        hypotheses = search(self, sentences)
        lengths = {len(best[0].token_ids) for best in hypotheses}
        sources = {len(sentence.src_ids) for sentence in sentences}
        searched.append((self.decoding.beam_size, len(sentences), sources, lengths))
        return hypotheses

    monkeypatch.setattr(Searcher, "search", watched)
    monkeypatch.setattr(decoding_cost, "timed", lambda work, device: (work(), next(times)))
    values = found(transformer(), beams=[1, 3], lengths=[5, 9], rows=2, repeats=3)
    expected = []
    for beam in (1, 3):
        expected += [(beam, 2, {length}, {length}) for length in (5, 5, 5, 5, 9, 9, 9)]
    assert searched == expected
    speeds = {key[1:]: value for key, value in values.items() if key[0] == "decoding_tokens_per_second"}
    assert speeds == {(1, 5): 5.0, (1, 9): 9.0, (3, 5): 5.0, (3, 9): 9.0}


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_cache_is_keys_and_values_of_all_layers(kv_heads: int) -> None:
    """2 (keys, values) x layers x key heads x head size x bytes of a number: what grouping saves."""
    values = found(transformer(num_kv_heads=kv_heads), beams=[1], lengths=[2], rows=1)
    assert values["cache_bytes_per_token", None, None] == 2 * 3 * kv_heads * (24 // 4) * 4


def test_a_model_without_keys_and_values_has_no_cache_to_measure() -> None:
    values = found(recipe(architecture="lstm"), beams=[2], lengths=[3], rows=2)
    assert [key[0] for key in values] == ["decoding_tokens_per_second"]
    assert values["decoding_tokens_per_second", 2, 3] is not None


def test_what_does_not_fit_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Searcher, "search", lambda self, sentences: [[NO_ROOM] for _ in sentences])
    assert found(transformer(), beams=[1], lengths=[3], rows=2)["decoding_tokens_per_second", 1, 3] is None


def test_lengths_beyond_learned_positions_are_refused() -> None:
    short = transformer(positions="learned", max_positions=256)
    with pytest.raises(ConfigError, match=r"min_length 256: .* positions end a translation at 255 tokens"):
        found(short, beams=[1], lengths=[256], rows=1)
