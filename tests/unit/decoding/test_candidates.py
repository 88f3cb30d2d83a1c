"""The best continuations of a sentence: exact, ordered, and the same on every tie."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transformer_mt.decoding.candidates import Candidates, mean_log_probs, rescored, top_candidates


@pytest.mark.parametrize(
    ("batch", "beams", "vocab_size", "count"),
    [(3, 2, 5, 5), (4, 3, 127, 9), (7, 1, 1000, 3), (2, 5, 8003, 10)],
)
def test_top_candidates_are_a_stable_sort(batch: int, beams: int, vocab_size: int, count: int) -> None:
    """Pins lost candidates and open ties (topk leaves their order to chance): many equal values, negative and
    positive, both zeros, and -inf, against NumPy's stable sort over beams and tokens."""
    generator = torch.Generator().manual_seed(vocab_size)
    for levels in (2, 9, 10**6):
        shape = (batch, beams, vocab_size)
        values = torch.randint(-levels, levels + 1, shape, generator=generator) / levels
        values[values == -1.0] = float("-inf")
        values[0, :, ::2] *= -1.0  # minus zero among the zeros
        values[0].clamp_(max=0.5)
        scores = torch.randint(-2, 3, (batch, beams), generator=generator) / 2
        found = top_candidates(values, scores, count)
        totals = (values + scores.unsqueeze(-1)).flatten(1)
        order = np.argsort(-totals.numpy(), axis=1, kind="stable")[:, :count]
        assert (found.beams * vocab_size + found.token_ids).tolist() == order.tolist()
        assert torch.equal(found.totals, totals.gather(1, torch.from_numpy(order)))


def test_mean_log_probs_are_logarithms_of_mean_probabilities() -> None:
    """By hand, and from half precision in fp32."""
    one = torch.tensor([[[0.0, 0.0]]])
    other = torch.tensor([[[0.0, float("-inf")]]])
    torch.testing.assert_close(mean_log_probs([one, other]).exp(), torch.tensor([[[0.75, 0.25]]]))
    assert mean_log_probs([one.bfloat16()]).dtype == torch.float32


def test_rescored_totals_are_those_of_the_corrected_logits() -> None:
    """All that is wrong is among the candidates: then the result is exact, in a new order, for every beam."""
    torch.manual_seed(0)
    logits, scores = torch.randn(4, 3, 11), torch.randn(4, 3)
    wrong = logits.clone()
    wrong[..., 2:5] += torch.randn(4, 3, 3) * 0.5
    before = wrong.log_softmax(-1)
    flat = torch.arange(11).expand(3, -1)
    picked = torch.cat([flat[beam, 2:5] + beam * 11 for beam in range(3)]).expand(4, -1)
    beams, tokens = picked // 11, picked % 11
    changes = (logits - wrong).flatten(1).gather(1, picked)
    totals = before.flatten(1).gather(1, picked) + scores.gather(1, beams)
    found = rescored(Candidates(totals, beams, tokens), before, scores, changes, 5)
    true = (logits.log_softmax(-1) + scores.unsqueeze(-1)).flatten(1).gather(1, picked)
    expected, order = true.sort(dim=-1, descending=True)
    torch.testing.assert_close(found.totals, expected[:, :5])
    assert torch.equal(found.token_ids, tokens.gather(1, order[:, :5]))
    assert torch.equal(found.beams, beams.gather(1, order[:, :5]))
