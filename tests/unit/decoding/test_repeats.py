"""What may not be said again, and what is said again at a price; through the rules, steps and searches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from table_model import BANNED, BOS, EOS, Rule, TableModel, random_rule, scripted_rule, sources

from transformer_mt.decoding.beam_search import beam_search
from transformer_mt.decoding.candidates import Candidates
from transformer_mt.decoding.greedy import greedy_search
from transformer_mt.decoding.repeats import ban_repeated_ngrams, penalise_repeats, repeat_factors
from transformer_mt.decoding.stepper import Stepper

X, Y = 4, 5


def _completes_a_repeat(said: list[int], token: int, size: int) -> bool:
    ngram = [*said, token][-size:]
    return len(ngram) == size and any(said[i : i + size] == ngram for i in range(len(said) - size + 1))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_exactly_the_tokens_that_repeat_an_ngram_are_banned(size: int) -> None:
    """B059: against the definition, token by token, for histories of every length; eos keeps its value."""
    generator = torch.Generator().manual_seed(size)
    for length in range(9):
        history = torch.randint(4, 8, (3, 5, length), generator=generator)
        log_probs = torch.randn(3, 5, 9, generator=generator)
        before = log_probs.clone()
        ban_repeated_ngrams(log_probs, history, size, EOS)
        for sentence in range(3):
            for beam in range(5):
                said = history[sentence, beam].tolist()
                for token in range(9):
                    banned = token != EOS and _completes_a_repeat(said, token, size)
                    expected = float("-inf") if banned else float(before[sentence, beam, token])
                    assert float(log_probs[sentence, beam, token]) == expected


def test_a_penalty_never_raises_a_repeated_token() -> None:
    """B073: what came before is multiplied once, however often it came; nothing else changes, eos neither."""
    log_probs = torch.log_softmax(torch.tensor([[[3.0, -2.0, 0.5, 1.0, 4.0, -1.0]]]), -1)
    before = log_probs.clone()
    penalise_repeats(log_probs, torch.tensor([[[4, 5, 4]]]), 1.2)
    assert torch.equal(log_probs[..., :4], before[..., :4])
    torch.testing.assert_close(log_probs[..., 4:], before[..., 4:] * 1.2)
    assert (log_probs[..., 4:] < before[..., 4:]).all()


def test_factors_are_those_of_the_penalty() -> None:
    """Candidates are looked up in the history of the beam that they continue."""
    history = torch.tensor([[[4, 5], [6, 6]]])
    candidates = Candidates(torch.zeros(1, 4), torch.tensor([[0, 1, 1, 0]]), torch.tensor([[5, 5, 6, EOS]]))
    assert repeat_factors(candidates, history, 3.0).tolist() == [[3.0, 1.0, 3.0, 1.0]]


def _stepper(model: TableModel, **options: Any) -> Stepper:
    return Stepper([model], bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=1, **options)


def test_a_loop_ends_where_its_ngram_would_come_again() -> None:
    """B059: x y x y … for ever without, and with 2-grams forbidden x y and then the best of the rest."""
    rule = scripted_rule(8, {history: {X if len(history) % 2 == 0 else Y: -0.1} for history in _loops(9)})
    assert _both(rule, limit=8, no_repeat_ngram=0) == [[X, Y] * 4] * 4
    for found in _both(rule, limit=8, no_repeat_ngram=2):
        assert found[:3] == [X, Y, X]
        assert found[3:4] != [Y]


def _loops(length: int) -> list[tuple[int, ...]]:
    return [tuple(X if place % 2 == 0 else Y for place in range(size)) for size in range(length)]


def _both(rule: Rule, limit: int, no_repeat_ngram: int) -> list[list[int]]:
    """What greedy search says of two sources, and what beam search says."""
    src_ids, mask = sources([4, 5])
    stepper = _stepper(TableModel(rule), no_repeat_ngram=no_repeat_ngram)
    given: dict[str, Any] = {"length_penalty": 1.0, "limits": [limit] * 2}
    greedy = greedy_search(stepper, src_ids, mask, **given)
    beams = beam_search(stepper, src_ids, mask, beam_size=3, num_finished=1, **given)
    return [one.token_ids for one in (*greedy, *(beam[0] for beam in beams))]


def test_eos_comes_where_nothing_else_may() -> None:
    """Three words and none twice: what must have at least five ends after three, at the true value of eos."""
    rule = random_rule(3, 7)
    stepper = Stepper(
        [TableModel(rule)], bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=5, no_repeat_ngram=1
    )
    src_ids, mask = sources([4])
    found = beam_search(stepper, src_ids, mask, beam_size=6, num_finished=6, length_penalty=0.0, limits=[9])[
        0
    ]
    assert len(found) == 6
    for one in found:
        assert sorted(one.token_ids) == [4, 5, 6]
        words = [*one.token_ids, EOS]
        total = sum(
            float(rule(4, tuple(words[:place])).log_softmax(-1)[token]) for place, token in enumerate(words)
        )
        assert one.score == pytest.approx(total, abs=1e-5)
        assert not one.at_limit


def test_scores_are_the_penalised_ones() -> None:
    """B073: x x eos at -0.5 a token: the second x counts 1.4 times, eos once."""
    rule = scripted_rule(8, {(): {X: -0.5}, (X,): {X: -0.5}, (X, X): {EOS: -0.5}})
    stepper = _stepper(TableModel(rule), repetition_penalty=1.4)
    src_ids, mask = sources([4])
    found = beam_search(stepper, src_ids, mask, beam_size=2, num_finished=1, length_penalty=0.0, limits=[3])[
        0
    ][0]
    assert found.token_ids == [X, X]
    assert found.score == pytest.approx(-0.5 - 0.7 - 0.5)
    greedy = greedy_search(stepper, src_ids, mask, length_penalty=0.0, limits=[3])[0]
    assert greedy.score == pytest.approx(found.score)
