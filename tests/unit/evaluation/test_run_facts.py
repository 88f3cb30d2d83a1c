"""Cost, curve and times of a run from its files, by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import hand_made_comparison as made
from transformer_mt.config import Recipe
from transformer_mt.errors import CheckpointError
from transformer_mt.evaluation.comparison import CurvePoint, System
from transformer_mt.evaluation.run_facts import (
    cost_warnings,
    differing,
    read_cost,
    read_curve,
    time_to_bleu,
)

RECIPE = Recipe.model_validate(
    {
        "run_dir": "run",
        "data": {"train": "t", "valid": "v", "src_lang": "de", "tgt_lang": "en"},
        "training": {"precision": "bf16"},
    }
)
RECORDS: list[dict[str, Any]] = [
    {"kind": "train", "step": 10, "tokens": 1000, "tokens_per_second": 100.0, "peak_gib": 1.5},
    {"kind": "valid", "step": 10, "nll": 3.0, "bleu": 11.0, "seconds": 12.0, "target_tokens": 1000},
    {"kind": "train", "step": 20, "tokens": 1000, "tokens_per_second": 50.0, "peak_gib": 2.5},
    {"kind": "valid", "step": 20, "nll": 2.0, "bleu": 29.9, "seconds": 34.0, "target_tokens": 2000},
]
INFO: dict[str, Any] = {"parameters": 77, "machine": "m", "threads": 2, "torch": "2.13.0"}
COST = {"steps": 25, "target_tokens": 2500, "seconds": 41.5, "peak_gib": 3.25}


def write_run(folder: Path, info: dict[str, Any], records: list[dict[str, Any]], tail: str = "") -> Path:
    (folder / "run.json").write_text(json.dumps(info), encoding="utf-8")
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "metrics.jsonl").write_text(lines + tail, encoding="utf-8")
    return folder


def test_the_cost_of_a_finished_run(tmp_path: Path) -> None:
    """Pins tokens per second as all tokens over all seconds of updates: 2000 / (10 + 20)."""
    cost = read_cost(write_run(tmp_path, {**INFO, "cost": COST}, RECORDS), RECIPE, step=20)
    assert (cost.finished, cost.parameters, cost.updates, cost.target_tokens) == (True, 77, 25, 2500)
    assert (cost.seconds, cost.peak_gib, cost.step) == (41.5, 3.25, 20)
    assert cost.tokens_per_second == pytest.approx(2000 / 30)
    assert (cost.machine, cost.threads, cost.torch, cost.precision) == ("m", 2, "2.13.0", "bf16")


def test_the_peak_of_a_continued_run_is_that_of_all_its_processes(tmp_path: Path) -> None:
    """Pins the number in run.json, which only the last process knows."""
    info = {**INFO, "cost": {**COST, "peak_gib": 0.5}}
    assert read_cost(write_run(tmp_path, info, RECORDS), RECIPE, step=20).peak_gib == 2.5


def test_a_run_that_is_still_training_costs_what_it_has_so_far(tmp_path: Path) -> None:
    """Pins the numbers of the last validation, and that half a record at the end is no error."""
    run = write_run(tmp_path, INFO, RECORDS, tail='{"kind": "tra')
    cost = read_cost(run, RECIPE, step=None)
    assert (cost.finished, cost.updates, cost.target_tokens, cost.seconds) == (False, 20, 2000, 34.0)
    assert (cost.peak_gib, cost.step) == (2.5, None)


def test_a_checkpoint_alone_tells_nothing(tmp_path: Path) -> None:
    cost = read_cost(tmp_path, RECIPE, step=3)
    assert (cost.finished, cost.step, cost.precision) == (False, 3, "bf16")
    facts = (cost.parameters, cost.updates, cost.seconds, cost.tokens_per_second, cost.peak_gib, cost.machine)
    assert facts == (None,) * 6
    assert read_curve(tmp_path) == ()


def test_the_curve_is_the_validations(tmp_path: Path) -> None:
    diverged = {"kind": "valid", "step": 30, "nll": float("nan"), "seconds": 50.0}
    assert read_curve(write_run(tmp_path, INFO, [*RECORDS, diverged])) == (
        CurvePoint(10, 12.0, 1000, 11.0, 3.0),
        CurvePoint(20, 34.0, 2000, 29.9, 2.0),
        CurvePoint(30, 50.0, None, None, None),
    )


def test_damaged_metrics_are_named(tmp_path: Path) -> None:
    run = write_run(tmp_path, INFO, RECORDS[:1], tail="nonsense\n")
    with pytest.raises(CheckpointError, match=r"metrics.jsonl:2: is no record of training; remove the line"):
        read_curve(run)


def system(name: str, *points: tuple[float, float | None]) -> System:
    curve = tuple(CurvePoint(1, seconds, None, bleu, None) for seconds, bleu in points)
    return System(name, "run", (name,), (), (curve,))


def test_time_to_bleu_is_that_of_the_first_validation_at_least_as_good() -> None:
    """Pins levels up to the best of all systems, no interpolation, and None where one never gets there."""
    systems = [
        system("a", (10, 11.0), (20, 9.0), (30, 21.0)),
        system("b", (5, None), (15, 12.0)),
        System("c", "text", ("c",)),
    ]
    found = {one.bleu: one.seconds for one in time_to_bleu(systems)}
    assert list(found) == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0]
    assert found[10.0] == (10, 15, None)
    assert found[12.0] == (30, 15, None)
    assert found[14.0] == (30, None, None)


@pytest.mark.parametrize(
    ("best", "levels"),
    [(0.5, []), (3.2, [1, 2, 3]), (42.0, [5, 10, 15, 20, 25, 30, 35, 40]), (95.0, list(range(10, 91, 10)))],
)
def test_levels_are_round_and_few(best: float, levels: list[int]) -> None:
    assert [one.bleu for one in time_to_bleu([system("a", (1, best))])] == levels


def test_costs_that_cannot_be_compared_are_told() -> None:
    """Pins each aspect, with the values of every system, and silence where all is alike or not known."""
    one = made.cost(10.0)
    alike = [System("a", "run", ("runs/a",), (one,)), System("b", "run", ("runs/b",), (one,))]
    text = System("c", "text", ("c.txt",))
    assert cost_warnings([*alike, text]) == []
    other = replace(one, machine="other", threads=4, precision=None, torch="2.14.0", finished=False)
    found = cost_warnings([alike[0], System("b", "run", ("runs/b", "runs/b2"), (one, other)), text])
    assert found == [
        "runs/b2: training has not come to its end; its costs are those until its last validation",
        "trained on different machines, so times, rates and memory are not comparable: "
        "a a machine; b a machine and other",
        "trained with different numbers of threads, so times and rates are not comparable: a 2; b 2 and 4",
        "trained by different versions of torch, so times and rates are not comparable: "
        "a 2.13.0; b 2.13.0 and 2.14.0",
    ]


def test_unknown_values_do_not_differ() -> None:
    assert differing([("a", [2]), ("b", [None]), ("c", [])]) == ""
    assert differing([("a", ["x", "x"]), ("b", ["y"]), ("c", [None])]) == "a x; b y"
