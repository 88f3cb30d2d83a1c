"""The best continuations of a beam: exact, ordered, and the same on every tie."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from table_model import BANNED, BOS, EOS, TableModel, random_rule, sources

from transformer_mt.decoding.stepper import MIN_ROWS, Stepper, num_rows, top_candidates


@pytest.mark.parametrize(
    ("rows", "vocab_size", "count"), [(3, 5, 5), (4, 127, 9), (7, 1000, 3), (2, 8003, 10)]
)
def test_top_candidates_are_a_stable_sort(rows: int, vocab_size: int, count: int) -> None:
    """Pins lost candidates and open ties (topk leaves their order to chance): many equal values, negative and
    positive, both zeros, and -inf, against NumPy's stable sort."""
    generator = torch.Generator().manual_seed(vocab_size)
    for levels in (2, 9, 10**6):
        values = torch.randint(-levels, levels + 1, (rows, vocab_size), generator=generator) / levels
        values[values == -1.0] = float("-inf")
        values[0, ::2] *= -1.0  # minus zero among the zeros
        values[0].clamp_(max=0.5)
        found, ids = top_candidates(values, count)
        order = np.argsort(-values.numpy(), axis=1, kind="stable")[:, :count]
        assert ids.tolist() == order.tolist()
        assert torch.equal(found, values.gather(1, ids))


def test_more_candidates_than_words_are_cut_to_the_vocabulary() -> None:
    """topk fails when asked for more than there is (B063); every id comes once, banned ones at -inf."""
    stepper = Stepper([TableModel(random_rule(1, 6))], bos_id=BOS, eos_id=EOS, banned=BANNED)
    src_ids, mask = sources([4, 5])
    states = stepper.start(src_ids, mask, 20)
    zeros = torch.zeros(2, 20, dtype=torch.long)
    found, _ = stepper.step(zeros + BOS, states, count=40, visible=zeros, room=torch.tensor([5, 5]))
    assert found.token_ids.shape == (2, 20, 6)
    assert sorted(found.token_ids[0, 0].tolist()) == list(range(6))
    banned = torch.isin(found.token_ids, torch.tensor(BANNED))
    assert torch.isneginf(found.log_probs[banned]).all()
    assert torch.isfinite(found.log_probs[~banned]).all()


def test_log_probs_are_those_of_the_whole_vocabulary() -> None:
    """Top-2K before softmax must not change the values: banned ids keep their share; eos is told even
    where it may not come."""
    rule = random_rule(2, 9)
    stepper = Stepper([TableModel(rule)], bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=1)
    src_ids, mask = sources([5])
    states = stepper.start(src_ids, mask, 16)
    zeros = torch.zeros(1, 16, dtype=torch.long)
    found, _ = stepper.step(zeros + BOS, states, count=4, visible=zeros, room=torch.tensor([5]))
    expected = rule(5, ()).log_softmax(-1)
    torch.testing.assert_close(found.log_probs[0, 0], expected[found.token_ids[0, 0]])
    torch.testing.assert_close(found.eos[0, 0], expected[EOS])
    assert EOS not in found.token_ids[0].tolist()[0]


def test_invisible_tokens_may_not_use_up_the_last_room() -> None:
    """With room for one token and none visible yet, a lone space may not come (an empty line would)."""
    stepper = Stepper(
        [TableModel(random_rule(2, 9))], bos_id=BOS, eos_id=EOS, banned=BANNED, invisible=[4, 6], min_length=1
    )
    visible = torch.tensor([[0, 1], [0, 1]])
    logits = torch.zeros(2, 2, 9)
    stepper.restrict(logits, visible, torch.tensor([1, 2]))
    ruled_out = [[torch.isneginf(row).nonzero().flatten().tolist() for row in beams] for beams in logits]
    assert ruled_out == [[[0, 1, 2, 3, 4, 6], [0, 1, 2]], [[0, 1, 2, 3], [0, 1, 2]]]
    assert stepper.shows(torch.tensor([4, 5])).tolist() == [False, True]


@pytest.mark.parametrize(
    ("sentences", "width", "expected"), [(1, 5, 4), (1, 1, 16), (7, 5, 7), (3, 8, 3), (1, 40, 1)]
)
def test_there_are_always_enough_rows(sentences: int, width: int, expected: int) -> None:
    """Few rows round differently; the smallest number of sentences with at least MIN_ROWS rows."""
    assert num_rows(sentences, width) == expected
    assert num_rows(sentences, width) * width >= MIN_ROWS
