"""Greedy search on a model whose probabilities are written down here."""

from __future__ import annotations

import pytest
from table_model import BANNED, BOS, EOS, Script, TableModel, scripted_rule, sources

from transformer_mt.decoding.greedy import greedy_search
from transformer_mt.decoding.stepper import Stepper

X, Y = 4, 5


def test_greedy_takes_the_best_token_at_every_step() -> None:
    """Not the best hypothesis: x first although y leads further; score and length with eos."""
    script: Script = {(): {X: -0.6, Y: -0.9}, (X,): {X: -2.0}, (X, X): {EOS: -1.0}, (Y,): {EOS: -0.1}}
    stepper = Stepper([TableModel(scripted_rule(7, script))], bos_id=BOS, eos_id=EOS, banned=BANNED)
    src_ids, mask = sources([4, 5, 6])
    found = greedy_search(stepper, src_ids, mask, length_penalty=1.0, limits=[3, 1, 5])
    assert [item.token_ids for item in found] == [[X, X], [X], [X, X]]
    assert [item.score for item in found] == pytest.approx([-3.6 / 3, (-0.6 - 20.0) / 2, -3.6 / 3])
    assert [item.at_limit for item in found] == [False, True, False]
