"""Beam search with room for every hypothesis against enumeration of all; beam 1 against greedy."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from table_model import BANNED, BOS, EOS, Rule, TableModel, random_rule, sources

from transformer_mt.decoding.beam_search import Hypothesis, beam_search
from transformer_mt.decoding.greedy import greedy_search
from transformer_mt.decoding.stepper import Stepper

Scored = tuple[float, list[int]]

VOCAB = 7  # three words besides the special ids


def _stepper(*rules: Rule, min_length: int = 1, **options: Any) -> Stepper:
    models = [TableModel(rule) for rule in rules]
    return Stepper(models, bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=min_length, **options)


def _enumerate(rule: Rule, source: int, limit: int, min_length: int, alpha: float) -> list[Scored]:
    """All hypotheses with their scores, best first, by nothing but sums of log-softmax."""
    found = []
    for length in range(min_length, limit + 1):
        for words in itertools.product(range(4, VOCAB), repeat=length):
            total = 0.0
            for place, token in enumerate((*words, EOS)):
                total += float(rule(source, words[:place]).double().log_softmax(-1)[token])
            found.append((total / (length + 1) ** alpha, list(words)))
    return sorted(found, reverse=True)


def _check(found: list[Hypothesis], expected: list[Scored]) -> None:
    assert [hypothesis.token_ids for hypothesis in found] == [words for _, words in expected]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([s for s, _ in expected], abs=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("min_length", [0, 1, 2])
def test_a_beam_with_room_for_all_finds_the_n_best_of_all(alpha: float, min_length: int) -> None:
    """Pins early stopping, length counting, loss of hypotheses at the limit, and beams larger than the
    vocabulary (B063, B065, B067, B072); the limits differ within the batch. False alarm only on scores
    that tie within 1e-6."""
    limits = [1, 2, 3]
    src_ids, mask = sources([4, 5, 6])
    for seed in range(4):
        rule = random_rule(seed, VOCAB)
        results = beam_search(
            _stepper(rule, min_length=min_length),
            src_ids,
            mask,
            beam_size=3**3,
            num_finished=5,
            length_penalty=alpha,
            limits=limits,
        )
        for source, limit, found in zip([4, 5, 6], limits, results, strict=True):
            floor = min(min_length, limit)  # a hypothesis is closed at its limit whatever its length
            _check(found, _enumerate(rule, source, limit, floor, alpha)[:5])


def _enumerate_with_rules(
    rule: Rule, source: int, limit: int, *, size: int, penalty: float, prefix: tuple[int, ...]
) -> list[Scored]:
    """All hypotheses that begin with the prefix and then complete no n-gram for the second time; a token
    counts `penalty` times where it came before. Alpha is 1, and at least one word is said."""
    found = []
    for length in range(max(1, len(prefix)), limit + 1):
        for words in itertools.product(range(4, VOCAB), repeat=length):
            ngrams = [words[max(place - size, 0) : place] for place in range(1, length + 1)] if size else []
            repeats = any(
                len(ngram) == size and ngram in ngrams[size - 1 : place]
                for place, ngram in enumerate(ngrams)
                if place >= len(prefix)
            )
            if words[: len(prefix)] != prefix or repeats:
                continue
            total = 0.0
            for place, token in enumerate((*words, EOS)):
                value = float(rule(source, words[:place]).double().log_softmax(-1)[token])
                total += value * (penalty if token in words[:place] else 1.0)
            found.append((total / (length + 1), list(words)))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("size", [0, 1, 2])
@pytest.mark.parametrize("penalty", [1.0, 1.5])
@pytest.mark.parametrize("prefix", [(), (4,), (5, 5, 5)])
def test_repeats_and_prefixes_by_enumeration(size: int, penalty: float, prefix: tuple[int, ...]) -> None:
    """B059, B073: with room for all, the n-best of all that are allowed, with their scores; a neighbour has
    another prefix or none, and a prefix may itself hold what could not come after it."""
    limits = [4, 4, 3]
    prefixes = [prefix, (), (6,)]
    src_ids, mask = sources([4, 5, 6])
    rule = random_rule(8, VOCAB)
    asked: dict[str, Any] = {"size": size, "penalty": penalty}
    results = beam_search(
        _stepper(rule, no_repeat_ngram=size, repetition_penalty=penalty),
        src_ids,
        mask,
        beam_size=3**4,
        num_finished=5,
        length_penalty=1.0,
        limits=limits,
        prefixes=torch.tensor([[*one, *[-1] * (3 - len(one))] for one in prefixes]),
    )
    for source, limit, own, found in zip([4, 5, 6], limits, prefixes, results, strict=True):
        _check(found, _enumerate_with_rules(rule, source, limit, **asked, prefix=own)[:5])


GREEDY_OPTIONS: list[dict[str, Any]] = [
    {},
    {"no_repeat_ngram": 1},
    {"no_repeat_ngram": 2, "repetition_penalty": 1.3},
]


@pytest.mark.parametrize("options", GREEDY_OPTIONS)
@pytest.mark.parametrize("vocab_size", [VOCAB, 300])
def test_beam_size_1_is_greedy(vocab_size: int, options: dict[str, Any]) -> None:
    """Two searches that share only the stepper; 23 sentences of different lengths, every third with a prefix,
    leave the batch at different steps. 300 ids take the narrowed choice of candidates."""
    first_ids = list(range(4, 27))
    limits = [index % 9 + 1 for index in range(len(first_ids))]
    src_ids, mask = sources(first_ids)
    for seed in range(3):
        # Wide enough a spread that eos comes first often.
        base = random_rule(seed, vocab_size)

        def rule(source: int, history: tuple[int, ...], base: Rule = base) -> torch.Tensor:
            logits = base(source, history).clone()
            logits[EOS] += len(history)
            return logits

        stepper = _stepper(rule, **options)
        prefixes = [[5] if limit > 1 and limit % 3 == 0 else [-1] for limit in limits]
        settings: dict[str, Any] = {
            "length_penalty": 0.7,
            "limits": limits,
            "prefixes": torch.tensor(prefixes),
        }
        beam = beam_search(stepper, src_ids, mask, beam_size=1, num_finished=1, **settings)
        greedy = greedy_search(stepper, src_ids, mask, **settings)
        assert [hypotheses[0].token_ids for hypotheses in beam] == [item.token_ids for item in greedy]
        assert [hypotheses[0].at_limit for hypotheses in beam] == [item.at_limit for item in greedy]
        assert [h[0].score for h in beam] == pytest.approx([item.score for item in greedy], abs=1e-5)
        assert len({len(item.token_ids) for item in greedy}) > 2


def test_an_ensemble_averages_probabilities() -> None:
    """The best hypothesis under the mean of two models' probabilities, by enumeration; averaging
    log-probabilities instead gives another score."""
    rules = [random_rule(seed, VOCAB) for seed in (11, 12)]

    def mean(source: int, history: tuple[int, ...]) -> torch.Tensor:
        return torch.stack([rule(source, history).double().softmax(-1) for rule in rules]).mean(0).log()

    src_ids, mask = sources([4, 5])
    results = beam_search(
        _stepper(*rules),
        src_ids,
        mask,
        beam_size=27,
        num_finished=3,
        length_penalty=1.0,
        limits=[3, 2],
    )
    for source, limit, found in zip([4, 5], [3, 2], results, strict=True):
        _check(found, _enumerate(mean, source, limit, 1, 1.0)[:3])
