"""Greedy search on a model whose probabilities are written down here, and against beam search."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from random_run import made_up_lines
from table_model import BANNED, BOS, EOS, Script, TableModel, scripted_rule, sources

from transformer_mt.checkpoint import LoadedRun
from transformer_mt.decoding.beam_search import beam_search
from transformer_mt.decoding.greedy import greedy_search
from transformer_mt.decoding.stepper import Stepper
from transformer_mt.model.masks import padding_mask

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


@torch.inference_mode()
def test_beam_size_1_is_greedy_with_a_real_model(loaded: LoadedRun) -> None:
    """Pins a state that only one of the two searches moves or cuts as the model wants it."""
    rows = [[*loaded.tokenizers.src.encode(line)[:12], EOS] for line in made_up_lines(20, seed=2)]
    width = max(map(len, rows))
    src_ids = torch.tensor([ids + [0] * (width - len(ids)) for ids in rows])
    mask = padding_mask(src_ids, 0)
    stepper = Stepper([loaded.model], bos_id=BOS, eos_id=EOS, banned=BANNED)
    limits = [number % 7 + 1 for number in range(20)]  # sentences leave the batch at different steps
    given: dict[str, Any] = {"length_penalty": 1.0, "limits": limits}
    greedy = greedy_search(stepper, src_ids, mask, **given)
    beam = beam_search(stepper, src_ids, mask, beam_size=1, num_finished=1, **given)
    assert [found[0].token_ids for found in beam] == [item.token_ids for item in greedy]
    assert [found[0].score for found in beam] == pytest.approx([item.score for item in greedy], abs=1e-5)
    assert len({tuple(item.token_ids) for item in greedy}) >= 7
