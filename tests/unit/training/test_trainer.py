"""Decisions of the loop that need no training."""

import math

import pytest

from transformer_mt.training.trainer import _is_better


@pytest.mark.parametrize(
    ("metric", "value", "best", "better"),
    [
        ("bleu", 30.0, None, True),
        ("bleu", 30.0, 30.0, False),
        ("bleu", 31.0, 30.0, True),
        ("nll", 1.9, 2.0, True),
        ("nll", 2.1, 2.0, False),
        ("ppl", math.inf, None, False),
        ("nll", math.nan, None, False),
    ],
)
def test_the_best_is_strictly_better_and_finite(metric, value, best, better):
    """Pins an infinite perplexity as the best so far: JSON cannot keep it for the run that continues."""
    assert _is_better(metric, value, best) is better
