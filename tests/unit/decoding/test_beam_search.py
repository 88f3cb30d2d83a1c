"""Beam search on models whose probabilities are written down here."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from table_model import BANNED, BOS, EOS, Script, TableModel, random_rule, scripted_rule, sources

from transformer_mt.decoding.beam_search import Hypothesis, beam_search
from transformer_mt.decoding.stepper import MIN_ROWS, Stepper

X, Y, Z = 4, 5, 6


def _search(
    script: Script, *, limit: int, beam_size: int, min_length: int = 0, **options: Any
) -> list[Hypothesis]:
    rule = scripted_rule(8, script)
    stepper = Stepper([TableModel(rule)], bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=min_length)
    src_ids, mask = sources([4])
    settings = {"num_finished": 1, "length_penalty": 0.0, **options}
    return beam_search(stepper, src_ids, mask, beam_size=beam_size, limits=[limit], **settings)[0]


def test_a_better_hypothesis_that_is_still_open_is_waited_for() -> None:
    """B065: eos at once scores -2.0, but x y eos reaches -1.5."""
    script = {(): {EOS: -2.0, X: -0.5}, (X,): {Y: -0.5}, (X, Y): {EOS: -0.5}}
    found = _search(script, limit=4, beam_size=2)
    assert [item.token_ids for item in found] == [[X, Y]]
    assert found[0].score == pytest.approx(-1.5)
    assert not found[0].at_limit


@pytest.mark.parametrize(("alpha", "expected"), [(1.0, [X]), (0.0, [X])])
def test_the_length_of_a_score_counts_eos_and_not_bos(alpha: float, expected: list[int]) -> None:
    """B067 in small: one word and eos, log-probability -1.5, is two tokens long."""
    script = {(): {X: -1.0}, (X,): {EOS: -0.5}}
    found = _search(script, limit=1, beam_size=2, length_penalty=alpha)
    assert found[0].token_ids == expected
    assert found[0].score == pytest.approx(-1.5 / 2**alpha)


def test_length_decides_the_ranking_as_documented() -> None:
    """B067: A of 2 tokens with sum -3.0 beats B of 5 with sum -6.3 when eos counts (-1.00 against -1.05);
    without it B would win (-1.50 against -1.26)."""
    script: Script = {(): {X: -1.0, Y: -1.05}, (X,): {X: -1.0}, (X, X): {EOS: -1.0}}
    script |= {(Y,) * n: {Y: -1.05} for n in range(1, 5)} | {(Y,) * 5: {EOS: -1.05}}
    found = _search(script, limit=6, beam_size=2, num_finished=2, length_penalty=1.0)
    assert [item.token_ids for item in found] == [[X, X], [Y] * 5]
    assert [item.score for item in found] == pytest.approx([-1.0, -1.05])


def test_an_early_eos_does_not_win_by_its_length() -> None:
    """B061: eos first at -1.0 against five tokens at -2.0 in all: -0.33 per token wins; and min_length 1
    never gives an empty hypothesis even where it would win."""
    script: Script = {(): {EOS: -1.0, X: -0.5}}
    script |= {(X,) * n: {X: -0.3} for n in range(1, 5)} | {(X,) * 5: {EOS: -0.3}}
    found = _search(script, limit=6, beam_size=4, length_penalty=1.0)
    assert found[0].token_ids == [X] * 5
    assert found[0].score == pytest.approx(-2.0 / 6)
    tempting: Script = {(): {EOS: -0.1, X: -3.0}, (X,): {EOS: -3.0, X: -0.5}}
    assert _search(tempting, limit=2, beam_size=3)[0].token_ids == []
    assert _search(tempting, limit=2, beam_size=3, min_length=1)[0].token_ids != []


def test_what_is_unfinished_at_the_limit_is_closed_and_kept() -> None:
    """B072: a model that never ends gives `limit` tokens, said to be cut off, with the true score of eos."""
    script: Script = {(X,) * n: {X: -0.1, Y: -2.5} for n in range(6)}
    found = _search(script, limit=5, beam_size=3, num_finished=2, length_penalty=1.0)
    assert found[0].token_ids == [X] * 5
    assert all(len(item.token_ids) == 5 and item.at_limit for item in found)
    assert len(found) == 2
    assert found[0].score == pytest.approx((5 * -0.1 - 20.0) / 6)


def test_n_best_hypotheses_are_distinct_and_in_order() -> None:
    """B069: no list holds one hypothesis twice."""
    stepper = Stepper([TableModel(random_rule(5, 12))], bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=1)
    src_ids, mask = sources(range(4, 24))
    limits = [4] * 20
    results = beam_search(
        stepper, src_ids, mask, beam_size=8, num_finished=8, length_penalty=0.5, limits=limits
    )
    for found in results:
        assert len(found) == 8
        assert len({tuple(item.token_ids) for item in found}) == 8
        assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)


def test_ties_go_to_the_lowest_beam_and_token() -> None:
    """Equal probabilities everywhere: beam 0 and its lowest ids are chosen, alone and among neighbours."""

    def flat(source: int, history: tuple[int, ...]) -> torch.Tensor:
        return torch.zeros(9)

    stepper = Stepper([TableModel(flat)], bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=2)
    for count in (1, 6):
        src_ids, mask = sources([4] * count)
        results = beam_search(
            stepper, src_ids, mask, beam_size=2, num_finished=2, length_penalty=0.0, limits=[3] * count
        )
        for found in results:
            assert [item.token_ids for item in found] == [[4, 4], [4, 4, 4]]


def test_finished_sentences_leave_the_batch_but_never_too_many() -> None:
    """Rows fall as sentences end (else a long one holds up all), not below MIN_ROWS; results keep place."""

    def ends_after(source: int, history: tuple[int, ...]) -> torch.Tensor:
        logits = torch.full((60,), -9.0)
        logits[EOS if len(history) >= source else source] = 9.0
        return logits

    model = TableModel(ends_after)
    stepper = Stepper([model], bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=1)
    lengths = [4, 30, 5, 6, 4, 29, 7, 8, 9, 10, 11, 5]
    src_ids, mask = sources(lengths)
    results = beam_search(
        stepper, src_ids, mask, beam_size=3, num_finished=1, length_penalty=0.0, limits=[40] * len(lengths)
    )
    assert [found[0].token_ids for found in results] == [[length] * length for length in lengths]
    assert model.rows_per_step[:2] == [16, 36]  # one beam at first, and some rows that fill the batch
    assert model.rows_per_step[-1] == 18
    assert min(model.rows_per_step) >= MIN_ROWS
    assert len(model.rows_per_step) <= 32


def test_a_prefix_may_outlast_the_neighbours() -> None:
    """Rows leave the batch while others still follow their prefixes, each its own."""

    def ends_after(source: int, history: tuple[int, ...]) -> torch.Tensor:
        logits = torch.full((60,), -9.0)
        logits[EOS if len(history) >= source else source] = 9.0
        return logits

    stepper = Stepper([TableModel(ends_after)], bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=1)
    lengths = [4] * 10 + [14, 15]
    prefixes = [[]] * 10 + [list(range(30, 42)), list(range(42, 54))]
    src_ids, mask = sources(lengths)
    results = beam_search(
        stepper,
        src_ids,
        mask,
        beam_size=3,
        num_finished=1,
        length_penalty=0.0,
        limits=[20] * 12,
        prefixes=torch.tensor([[*prefix, *[-1] * (12 - len(prefix))] for prefix in prefixes]),
    )
    expected = [
        prefix + [length] * (length - len(prefix)) for length, prefix in zip(lengths, prefixes, strict=True)
    ]
    assert [found[0].token_ids for found in results] == expected


def test_a_limit_of_zero_tokens_gives_only_the_empty_hypothesis() -> None:
    """The edge of the length bound: closed before the first token."""
    found = _search({(): {X: -0.1, EOS: -4.0}}, limit=0, beam_size=2)
    assert [(item.token_ids, item.at_limit) for item in found] == [([], True)]
    assert found[0].score == pytest.approx(-4.0)


def test_the_bound_counts_the_longest_length_that_may_come() -> None:
    """B065 with a length penalty: x eos scores -0.60 when y stands at -1.41 over two tokens; judged
    by its length now y has lost, but it ends at -0.25 over six."""
    script: Script = {(): {X: -0.6, Y: -1.4}, (X,): {EOS: -0.6}, (Y,) * 5: {EOS: -0.05}}
    script |= {(Y,) * n: {Y: -0.01} for n in range(1, 5)}
    found = _search(script, limit=6, beam_size=2, length_penalty=1.0)
    assert found[0].token_ids == [Y] * 5
    assert found[0].score == pytest.approx((-1.4 - 0.04 - 0.05) / 6)
