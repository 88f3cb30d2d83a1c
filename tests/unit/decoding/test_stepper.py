"""One step of decoding: what may come next, and with which log-probability."""

from __future__ import annotations

import pytest
import torch
from table_model import BANNED, BOS, EOS, TableModel, TableState, random_rule, sources
from torch import Tensor

from transformer_mt.decoding.stepper import MIN_ROWS, Stepper, num_rows
from transformer_mt.model.embedding import output_logits
from transformer_mt.model.narrow_linear import narrow_linear
from transformer_mt.model.protocol import DecoderState


def test_more_candidates_than_words_are_cut_to_the_vocabulary() -> None:
    """topk fails when asked for more than there is (B063); every continuation comes once, banned ones at
    -inf."""
    stepper = Stepper([TableModel(random_rule(1, 6))], bos_id=BOS, eos_id=EOS, banned=BANNED)
    src_ids, mask = sources([4, 5] * 8)
    states = stepper.start(src_ids, mask, 20)
    zeros = torch.zeros(16, 20, dtype=torch.long)
    found, _ = stepper.step(
        zeros + BOS,
        states,
        scores=torch.zeros(16, 20),
        count=150,
        visible=zeros,
        room=torch.full((16,), 5),
    )
    assert found.token_ids.shape == (16, 20 * 6)
    every = [(beam, token) for beam in range(20) for token in range(6)]
    pairs = zip(found.beams[0].tolist(), found.token_ids[0].tolist(), strict=True)
    assert sorted(pairs) == every
    banned = torch.isin(found.token_ids, torch.tensor(BANNED))
    assert torch.isneginf(found.totals[banned]).all()
    assert torch.isfinite(found.totals[~banned]).all()


def test_log_probs_are_those_of_the_whole_vocabulary() -> None:
    """Banned ids keep their share of the probability; scores of the beams are added."""
    rule = random_rule(2, 9)
    stepper = Stepper([TableModel(rule)], bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=1)
    src_ids, mask = sources([5] * 16)
    states = stepper.start(src_ids, mask, 3)
    zeros = torch.zeros(16, 3, dtype=torch.long)
    scores = torch.full((16, 3), float("-inf"))
    scores[0, 1] = -3.0
    found, _ = stepper.step(zeros + BOS, states, scores=scores, count=4, visible=zeros, room=zeros[:, 0] + 5)
    expected = rule(5, ()).log_softmax(-1) - 3.0
    torch.testing.assert_close(found.totals[0], expected[found.token_ids[0]])
    assert found.beams[0].tolist() == [1] * 4
    assert EOS not in found.token_ids[0].tolist()


def test_a_full_hypothesis_can_only_end() -> None:
    """With no room left eos comes with its true log-probability even where min_length still forbids it;
    neighbours with room go on."""
    rule = random_rule(4, 9)
    stepper = Stepper([TableModel(rule)], bos_id=BOS, eos_id=EOS, banned=BANNED, min_length=1)
    log_probs = rule(5, ()).log_softmax(-1).expand(2, 3, -1).clone()
    expected = log_probs.clone()
    stepper.restrict(log_probs, torch.zeros(2, 3, dtype=torch.long), torch.tensor([0, 4]))
    assert torch.isfinite(log_probs[0]).nonzero()[:, 1].tolist() == [EOS] * 3
    assert torch.equal(log_probs[0, :, EOS], expected[0, :, EOS])
    assert torch.isfinite(log_probs[1, 0]).nonzero().flatten().tolist() == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("penalty", [1.0, 1.3])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8])
def test_a_rough_output_matrix_only_proposes(dtype: torch.dtype, penalty: float) -> None:
    """In narrow numbers the output matrix rounds log-probabilities by hundredths; the totals are those of the
    exact matrix all the same, in order, up to what the unlikely tokens of a beam lack in its normaliser. Also
    with a price on the likeliest tokens."""
    torch.manual_seed(3)
    matrix = torch.randn(700, 24)
    hidden = torch.randn(2, 20, 3, 24)  # (steps, B, K, D), peaked like a trained model's

    class Linear(TableModel):
        """Hidden states that are given, and an output matrix."""

        def decode_step(self, token_ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
            return hidden[0], state

        def project(self, states: Tensor, vocabulary: Tensor | None = None) -> Tensor:
            return output_logits(states, matrix, vocabulary)

    scores = torch.randn(20, 3)
    inputs = torch.zeros(20, 3, dtype=torch.long)
    history = output_logits(hidden[0], matrix).topk(3).indices[..., 1:]  # (B, K, 2)
    results = []
    narrow = narrow_linear(matrix, None, dtype)
    for rough in (None, narrow):
        stepper = Stepper(
            [Linear(random_rule(1, 9))],
            bos_id=BOS,
            eos_id=EOS,
            banned=BANNED,
            rough_output=rough,
            repetition_penalty=penalty,
        )
        found, _ = stepper.step(
            inputs,
            [TableState(inputs, inputs)],
            scores=scores,
            count=6,
            visible=inputs,
            room=inputs[:, 0] + 9,
            history=history,
        )
        results.append(found)
    exact, corrected = results
    rounded = narrow(hidden[0]).log_softmax(-1)
    true = output_logits(hidden[0], matrix).log_softmax(-1)
    assert (rounded - true).abs().max() > 0.03
    assert torch.equal(exact.token_ids, corrected.token_ids)
    assert torch.equal(exact.beams, corrected.beams)
    assert (exact.totals - corrected.totals).abs().max() < 0.02
    assert (exact.totals - corrected.totals).abs().mean() < 2e-3


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
