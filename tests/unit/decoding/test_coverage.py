"""Coverage by hand, and with models of both architectures."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from random_run import made_up_lines
from table_model import EOS, TableModel, random_rule
from torch import Tensor

from transformer_mt.checkpoint import LoadedRun
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.beam_search import NO_ROOM, Hypothesis
from transformer_mt.decoding.coverage import by_coverage
from transformer_mt.decoding.searcher import Searcher, Sentence
from transformer_mt.runtime.device import int8_features
from transformer_mt.text.tokenizer import BOS_ID, EOS_ID

CPU = torch.device("cpu")


class Looking(TableModel):
    """Looks at source place (target place * step) mod 3, with the given weight, and elsewhere at eos."""

    def __init__(self, step: int, weight: float) -> None:
        super().__init__(random_rule(1, 9))
        self.step, self.weight = step, weight

    def cross_attention(
        self, src_ids: Tensor, src_mask: Tensor, decoder_input_ids: Tensor, layer: Any = None
    ) -> Tensor:
        assert layer == "mean"
        weights = torch.zeros(*decoder_input_ids.shape, src_ids.size(1))
        for place in range(decoder_input_ids.size(1)):
            weights[:, place, place * self.step % 3] = self.weight
            weights[:, place, 3] = 1 - self.weight
        return weights


def _by_coverage(models: list[Any], beam: list[Hypothesis], beta: float) -> list[Hypothesis]:
    return by_coverage(models, [([5, 6, 7, EOS], 1)], [beam], beta=beta, device=CPU, batch_size=1)[0]


def test_coverage_is_the_sum_of_logarithms_over_the_source_words() -> None:
    """By hand: three words and eos, of which two tokens and eos see each place 0.6, one token and eos two of
    them; attention above 1 counts no more, eos of the source and padding do not count."""
    beam = [Hypothesis([8], -1.0, False), Hypothesis([8, 4], -1.2, False), Hypothesis([4] * 8, -5.0, True)]
    found = _by_coverage([Looking(1, 0.6)], beam, 0.01)
    worst = 2 * math.log(0.6) + math.log(torch.finfo(torch.float32).tiny)
    assert [one.token_ids for one in found] == [[8, 4], [8], [4] * 8]
    assert [one.score for one in found] == pytest.approx(
        [-1.2 + 0.01 * 3 * math.log(0.6), -1.0 + 0.01 * worst, -5.0]
    )
    assert found[2].at_limit


def test_an_ensemble_looks_where_its_models_look_on_average() -> None:
    """One sees the first word alone, the other each a little."""
    found = _by_coverage([Looking(0, 0.2), Looking(1, 0.6)], [Hypothesis([8, 4], 0.0, False)], 2.0)
    expected = math.log((3 * 0.2 + 0.6) / 2) + 2 * math.log(0.3)
    assert found[0].score == pytest.approx(2.0 * expected)


def test_a_sentence_that_exceeds_the_memory_costs_itself_alone(
    loaded: LoadedRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """B055: attention of all positions at once takes more than the search. The others are what they were."""
    values = {**loaded.recipe.decoding.model_dump(), "beam_size": 3, "coverage_penalty": 0.5}
    searcher = Searcher([loaded.model], DecodingConfig.model_validate(values), CPU, invisible=())
    sentences = [Sentence([9] * length + [EOS_ID], length) for length in (2, 30, 3, 4)]
    before = searcher.search(sentences)
    look = loaded.model.cross_attention

    def fail(src_ids: Tensor, *rest: Any) -> Tensor:
        if src_ids.size(1) > 16:
            raise torch.OutOfMemoryError
        return look(src_ids, *rest)

    monkeypatch.setattr(loaded.model, "cross_attention", fail)
    found = searcher.search(sentences)
    assert found == [before[0], [NO_ROOM], *before[2:]]
    assert "line 30: its 31 tokens do not fit into the memory of the device" in caplog.text


@pytest.mark.parametrize(
    "precision",
    [
        "fp32",
        "bf16",
        pytest.param("int8", marks=pytest.mark.skipif(not int8_features(), reason="no int8 here")),
    ],
)
def test_a_beam_is_ranked_by_score_and_coverage(loaded: LoadedRun, precision: str) -> None:
    """The n-best of a search with coverage: those of the whole beam without it, in another order, each
    with the attention of the model given this source and hypothesis alone."""
    values = {**loaded.recipe.decoding.model_dump(), "beam_size": 5, "precision": precision}
    encoded = loaded.tokenizers.src.encode_batch(made_up_lines(8, seed=6))
    sentences = [Sentence([*ids, EOS_ID], number) for number, ids in enumerate(encoded)]

    def search(**options: Any) -> list[list[Hypothesis]]:
        decoding = DecodingConfig.model_validate({**values, **options})
        return Searcher([loaded.model], decoding, CPU, invisible=()).search(sentences)

    plain, covered = search(nbest=5), search(coverage_penalty=0.5)
    moved = 0
    for sentence, before, after in zip(sentences, plain, covered, strict=True):
        src_ids = torch.tensor([sentence.src_ids])
        mask = torch.ones(1, 1, 1, src_ids.size(1), dtype=torch.bool)
        expected = {}
        for one in before:
            inputs = torch.tensor([[BOS_ID, *one.token_ids]])
            with torch.no_grad():
                attention = loaded.model.cross_attention(src_ids, mask, inputs, "mean")[0].sum(0)[:-1]
            coverage = float(attention.clamp(max=1.0).log().sum())
            expected[tuple(one.token_ids)] = one.score + 0.5 * coverage
        assert {tuple(one.token_ids) for one in after} == set(expected)
        scores = [one.score for one in after]
        tolerance = 1e-4 if precision == "fp32" else 0.2
        assert scores == pytest.approx([expected[tuple(one.token_ids)] for one in after], abs=tolerance)
        assert scores == sorted(scores, reverse=True)
        moved += after[0].token_ids != before[0].token_ids
    assert moved
