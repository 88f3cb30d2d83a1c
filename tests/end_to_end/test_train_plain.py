"""Training with every fast path replaced by its plain twin: the same losses, up to rounding."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.conftest import LSTM
from transformer_mt.cli.main import main

ROOT = Path(__file__).parents[2]


def losses(run_dir: Path) -> list[float]:
    lines = (run_dir / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
    return [record["loss"] for record in map(json.loads, filter(None, lines)) if record["kind"] == "train"]


@pytest.mark.parametrize("model", [{}, LSTM], ids=["transformer", "lstm"])
def test_fast_and_plain_training_agree_without_dropout(copy_task, model):
    """Pins a fast path whose loss or gradients are another function than the plain one's."""
    recipe = copy_task({**model, "dropout: 0.1": "dropout: 0.0"})
    plain, fast = recipe.parent / "plain", recipe.parent / "fast"
    command = [ROOT / "tools" / "train_plain", recipe, f"run_dir={plain}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert main(["train", str(recipe), f"run_dir={fast}"]) == 0
    assert losses(plain) == pytest.approx(losses(fast), rel=1e-5)
