"""Decisions of the loop that need no training."""

import math
from types import SimpleNamespace

import pytest

from transformer_mt.errors import ConfigError
from transformer_mt.runtime.distributed import Ranks
from transformer_mt.training import trainer
from transformer_mt.training.state import Progress
from transformer_mt.training.trainer import Trainer, _is_better


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


def test_processes_do_not_go_back_to_different_checkpoints(monkeypatch, tmp_path):
    """A folder that is shared by two machines may show one of them the newest checkpoint late."""
    monkeypatch.setattr(trainer, "newest_valid", lambda folder: SimpleNamespace(step=20))
    ranks = Ranks(0, 2)
    monkeypatch.setattr(ranks, "gathered", lambda value: [value, 10])
    standing = SimpleNamespace(
        run_dir=tmp_path, progress=Progress(), config=SimpleNamespace(max_rollbacks=1), _ranks=ranks
    )
    with pytest.raises(ConfigError, match="process 1 of 2 has 10, process 0 20: both are said to be the new"):
        Trainer.go_back(standing)
