"""Draws: their distribution, what narrows it, and that seed, line, sample and step alone decide them."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
import torch
from table_model import BANNED, BOS, EOS, TableModel, random_rule, sources
from torch import Tensor

from transformer_mt.decoding.beam_search import Hypothesis
from transformer_mt.decoding.greedy import greedy_search, token_by_token
from transformer_mt.decoding.sampling import Sampling, draw, drawing
from transformer_mt.decoding.stepper import Stepper

VOCAB = 8


def _stepper(seed: int = 3, **options: Any) -> Stepper:
    settings = {"bos_id": BOS, "eos_id": EOS, "banned": BANNED, "min_length": 1, **options}
    return Stepper([TableModel(random_rule(seed, VOCAB, spread=1.0))], **settings)


def _sample(draws: list[tuple[int, int, int]], first_ids: list[int], **options: Any) -> list[Hypothesis]:
    src_ids, mask = sources(first_ids)
    values = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "seed": 1, **options}
    choice = drawing(Sampling(**values), draws)
    limits = [4] * len(draws)
    return token_by_token(_stepper(), src_ids, mask, length_penalty=1.0, limits=limits, choice=choice)


def _expected(log_probs: Tensor, temperature: float, top_k: int, top_p: float) -> dict[int, float]:
    """The distribution by its definition, token by token."""
    shares = {token: float(value) for token, value in enumerate((log_probs.double() / temperature).exp())}
    ranked = sorted(shares, key=lambda token: (-shares[token], token))
    ranked = [token for token in ranked if shares[token] > 0.0][: top_k or None]
    total = sum(shares[token] for token in ranked)
    kept, reached = [], 0.0
    for token in ranked:
        kept.append(token)
        reached += shares[token] / total
        if reached >= top_p:
            break
    total = sum(shares[token] for token in kept)
    return {token: shares[token] / total for token in kept}


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (3, 1.0), (0, 0.7), (4, 0.8), (1, 1.0), (0, 1e-9)])
def test_draws_have_the_distribution_that_was_asked_for(temperature: float, top_k: int, top_p: float) -> None:
    """4,000 draws by numbers evenly spread over [0, 1): every token within two draws of its share, and
    nothing else is drawn. No chance in it."""
    log_probs = random_rule(7, 11, spread=1.5)(4, ()).log_softmax(-1)
    log_probs[[0, 1, 2]] = float("-inf")
    count = 4000
    uniforms = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    rows = log_probs.expand(count, 1, -1)
    sampling = Sampling(temperature, top_k, top_p, seed=1)
    found = draw(rows, torch.full((count, 1), -2.0), uniforms, sampling)
    expected = _expected(log_probs, temperature, top_k, top_p)
    seen = Counter(found.token_ids[:, 0].tolist())
    assert set(seen) <= set(expected)
    for token, share in expected.items():
        assert abs(seen[token] - share * count) <= 2
    torch.testing.assert_close(found.totals[:, 0], log_probs[found.token_ids[:, 0]] - 2.0)


def test_samples_of_a_model_are_as_frequent_as_they_are_probable() -> None:
    """Chi-square over whole hypotheses of 3,000 samples of one line. The seed is fixed: no chance in it."""
    count = 3000
    found = _sample([(1, 0, number) for number in range(count)], [4] * count)
    rule = random_rule(3, VOCAB, spread=1.0)
    probable: dict[tuple[int, ...], float] = {}
    for length in range(1, 5):
        for words in itertools.product(range(4, VOCAB), repeat=length):
            probability = 1.0
            for place, token in enumerate((*words, EOS)):
                log_probs = rule(4, words[:place]).double().log_softmax(-1)
                log_probs[list(BANNED)] = float("-inf")
                if place == 0:
                    log_probs[EOS] = float("-inf")
                if place < 4:
                    probability *= float(log_probs.softmax(-1)[token])
            probable[words] = probability
    assert sum(probable.values()) == pytest.approx(1.0)
    seen = Counter(tuple(one.token_ids) for one in found)
    likely = {words: share * count for words, share in probable.items() if share * count >= 8}
    rest = count - sum(likely.values())
    observed_rest = count - sum(seen[words] for words in likely)
    chi_square = sum((seen[words] - share) ** 2 / share for words, share in likely.items())
    chi_square += (observed_rest - rest) ** 2 / rest
    freedom = len(likely)
    assert freedom > 40
    assert chi_square < freedom + 4 * (2 * freedom) ** 0.5


def test_a_draw_depends_on_seed_line_part_sample_and_step_alone() -> None:
    """Another order, other neighbours, one by one: the same; another seed, line, part or sample: another."""
    draws = [(line, part, number) for line, part in ((1, 0), (1, 1), (2, 0)) for number in range(6)]
    first_ids = [4] * 18
    found = [one.token_ids for one in _sample(draws, first_ids)]
    assert [one.token_ids for one in _sample(draws[::-1], first_ids)] == found[::-1]
    assert [_sample([one], [4])[0].token_ids for one in draws] == found
    assert [one.token_ids for one in _sample(draws, first_ids, seed=2)] != found
    assert found[:6] != found[6:12] != found[12:] != found[:6]
    assert len({tuple(one) for one in found}) > 9


def test_one_token_to_choose_from_is_greedy_search() -> None:
    """top_k 1 and a tiny top_p at any temperature, and a temperature near 0: equal tokens and scores."""
    first_ids = list(range(4, 24))
    src_ids, mask = sources(first_ids)
    greedy = greedy_search(_stepper(), src_ids, mask, length_penalty=1.0, limits=[4] * 20)
    draws = [(line, 0, 0) for line in range(20)]
    assert _sample(draws, first_ids, temperature=5.0, top_k=1) == greedy
    assert _sample(draws, first_ids, temperature=1.0, top_p=1e-9) == greedy
    assert _sample(draws, first_ids, temperature=1e-12) == greedy
    assert _sample(draws, first_ids) != greedy


def test_a_score_is_the_models_at_temperature_1() -> None:
    """Whatever was narrowed: log-probability over length, eos counted."""
    rule = random_rule(3, VOCAB, spread=1.0)
    for options in ({"temperature": 2.0}, {"temperature": 0.7, "top_k": 2}, {"top_p": 0.5}):
        for one in _sample([(1, 0, number) for number in range(5)], [4] * 5, **options):
            words = [*one.token_ids, EOS]
            total = sum(
                float(rule(4, tuple(words[:place])).log_softmax(-1)[token])
                for place, token in enumerate(words)
            )
            assert one.score == pytest.approx(total / len(words), abs=1e-5)
            assert one.at_limit == (len(one.token_ids) == 4)
