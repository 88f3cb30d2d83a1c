"""A study of three variants and what `train` would leave of a run, written by hand: no training, no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformer_mt.recipe import dump_recipe
from transformer_mt.studies.study import Study, Trial, load_study

RECIPE = """\
run_dir: runs/x
data:
  train: train
  valid: valid
  test: test
  src_lang: de
  tgt_lang: en
"""
STUDY = """\
run_dir: runs/s
recipe: base.yaml
compare: false
variants:
  low: {overrides: {training.learning_rate: 1e-4}}
  mid: {}
  wide: {overrides: {training.learning_rate: 2e-3, data.train: [a, b c]}}
"""


def write_study(folder: Path) -> Path:
    """Write recipe and study into a folder; returns the study file."""
    (folder / "base.yaml").write_text(RECIPE, encoding="utf-8")
    (folder / "s.yaml").write_text(STUDY, encoding="utf-8")
    return folder / "s.yaml"


def made_up_study(folder: Path, *overrides: str) -> Study:
    """The study, resolved."""
    return load_study(write_study(folder), overrides)


def leave_run(
    trial: Trial, *, step: int = 10, best: float = 30.5, finished: bool = True, nll: float | None = 2.25
) -> None:
    """Write what a run leaves after 2 * `step` updates, the better of its two validations in the middle."""
    run_dir = trial.run_dir
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "config.yaml").write_text(dump_recipe(trial.recipe), encoding="utf-8")
    info: dict[str, Any] = {"parameters": 1234, "machine": "m", "threads": 2, "torch": "2.13.0"}
    if finished:
        info["cost"] = {"steps": 2 * step, "target_tokens": 2500, "seconds": 90.0, "peak_gib": 1.5}
    _write_json(run_dir / "run.json", info)
    _write_json(run_dir / "best.json", {"step": step, "metric": "bleu", "value": best})
    records: list[dict[str, Any]] = [
        {"kind": "train", "step": step, "tokens": 1000, "tokens_per_second": 100.0, "peak_gib": 1.0},
        {"kind": "valid", "step": step, "nll": 2.0, "bleu": best, "seconds": 12.0, "target_tokens": 1000},
        {"kind": "train", "step": 2 * step, "tokens": 1000, "tokens_per_second": 50.0, "peak_gib": 1.5},
        {"kind": "valid", "step": 2 * step, "nll": nll, "bleu": 1.0, "seconds": 42.0, "target_tokens": 2000},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (run_dir / "metrics.jsonl").write_text(lines, encoding="utf-8")


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
