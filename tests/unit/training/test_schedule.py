"""Schedules against hand-made tables."""

import pytest
from pydantic import ValidationError

from transformer_mt.config import TrainingConfig
from transformer_mt.training.schedule import learning_rate

TABLES = {
    "inverse_sqrt": {1: 0.25, 2: 0.5, 4: 1.0, 16: 0.5, 64: 0.25, 400: 0.1},
    "cosine": {1: 0.25, 4: 1.0, 12: 0.6, 20: 0.2, 30: 0.2},
    "wsd": {1: 0.25, 4: 1.0, 12: 1.0, 16: 0.6, 20: 0.2, 30: 0.2},
    "constant": {1: 0.25, 4: 1.0, 20: 1.0},
}


@pytest.mark.parametrize("schedule", TABLES)
def test_table(schedule):
    """Warm-up of 4 steps to 1.0, floor 0.2, end at 20, decay over the last 8."""
    config = TrainingConfig(
        schedule=schedule,
        learning_rate=1.0,
        min_learning_rate=0.2,
        warmup_steps=4,
        decay_steps=8,
        max_steps=20,
    )
    table = {step: learning_rate(step, config) for step in TABLES[schedule]}
    assert table == pytest.approx(TABLES[schedule])


@pytest.mark.parametrize("schedule", TABLES)
@pytest.mark.parametrize("warmup", [0, 1])
def test_no_warmup_is_finite_and_positive(schedule, warmup):
    """Pins the division by warmup_steps = 0 (B095)."""
    config = TrainingConfig(schedule=schedule, warmup_steps=warmup, max_steps=11, learning_rate=0.5)
    assert learning_rate(1, config) == pytest.approx(0.5, rel=0.05)
    assert all(0.0 < learning_rate(step, config) <= 0.5 for step in range(1, 11))
    assert all(0.0 <= learning_rate(step, config) <= 0.5 for step in range(11, 40))


@pytest.mark.parametrize("warmup", [-1, 1.5, "2", True])
def test_a_warmup_that_is_no_number_of_steps_is_refused(warmup):
    """B095: below zero, in part, or not a number."""
    with pytest.raises(ValidationError, match="warmup_steps"):
        TrainingConfig(warmup_steps=warmup)


def test_raised_max_steps_raises_the_rate_again():
    """Pins a finished run that goes on with rate 0 for ever (B099)."""
    short = TrainingConfig(schedule="cosine", warmup_steps=0, max_steps=10)
    long = TrainingConfig(schedule="cosine", warmup_steps=0, max_steps=100)
    assert learning_rate(11, short) == 0.0
    assert learning_rate(11, long) > 0.9 * long.learning_rate
