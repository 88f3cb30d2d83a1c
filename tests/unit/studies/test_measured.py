"""What was measured of a trial is kept, used again, and made anew when anything it depends on changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.made_up_study import leave_run, made_up_study
from transformer_mt.config import Recipe
from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import read_json, write_json
from transformer_mt.studies import measured
from transformer_mt.studies.measures import MeasureSection
from transformer_mt.studies.study import Study
from transformer_mt.studies.values import Measured
from transformer_mt.studies.verdicts import Value

CPU = torch.device("cpu")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Three variants; a measure yields the learning rate, and whether training is said to be finished."""
    monkeypatch.chdir(tmp_path)

    def measure(
        recipe: Recipe, section: MeasureSection, device: torch.device, *, finished: bool
    ) -> Iterator[Measured]:
        yield Measured("rate", recipe.training.learning_rate, {"device": device.type})
        yield Measured("finished", float(finished))
        yield Measured("nothing", None)

    monkeypatch.setattr(measured, "measure", measure)
    return made_up_study(tmp_path)


def test_numbers_come_back_with_their_variant(study: Study) -> None:
    low, mid, _ = study.trials
    measured.measure_trial(study, low, CPU, finished=True)
    measured.measure_trial(study, mid, CPU, finished=False)
    assert list(measured.read_values(study)) == [
        Value("low", None, Measured("rate", 1e-4, {"device": "cpu"})),
        Value("low", None, Measured("finished", 1.0)),
        Value("low", None, Measured("nothing", None)),
        Value("mid", None, Measured("rate", 1e-3, {"device": "cpu"})),
        Value("mid", None, Measured("finished", 0.0)),
        Value("mid", None, Measured("nothing", None)),
    ]
    (facts,) = measured.made_on(study)
    assert facts.torch == torch.__version__ and facts.threads == torch.get_num_threads()


def test_a_trial_is_measured_anew_when_recipe_or_weights_change(study: Study) -> None:
    low = study.trials[0]
    assert not measured.is_measured(study, low)
    measured.measure_trial(study, low, CPU, finished=True)
    assert measured.is_measured(study, low)
    other = replace(low, recipe=low.recipe.model_copy(update={"run_dir": "runs/s/elsewhere"}))
    assert not measured.is_measured(study, replace(other, seed=None))
    leave_run(low)
    assert not measured.is_measured(study, low), "best.json is a part of what was measured"


def test_numbers_of_an_earlier_training_are_none(study: Study) -> None:
    """Pins a trial that is trained anew and cannot be measured: nothing is judged by what it was."""
    low = study.trials[0]
    measured.measure_trial(study, low, CPU, finished=True)
    leave_run(low)
    assert list(measured.read_values(study)) == [] and measured.made_on(study) == []


@pytest.mark.parametrize(
    "damage",
    [
        {"values": None},
        {"values": [{"metric": "rate"}]},
        {"values": [{"metric": "rate", "values": ["x"], "at": {}}]},
        {"values": [{"metric": "rate", "values": [1.0], "at": None}]},
        {"values": [{"metric": "rate", "values": [1.0, 2.0], "at": {"step": [1]}}]},
        {"made_on": {"machine": "m"}},
    ],
)
def test_a_file_that_no_study_wrote_is_told(study: Study, damage: dict[str, Any]) -> None:
    measured.measure_trial(study, study.trials[0], CPU, finished=True)
    path = study.run_dir / "measured" / "low.json"
    write_json(path, {**(read_json(path) or {}), **damage})
    with pytest.raises(CheckpointError, match=r"low\.json: is not what a study wrote; delete it to measure"):
        list(measured.read_values(study))


def test_a_place_comes_back_as_it_was(study: Study) -> None:
    """Pins whole numbers, which pages show as such."""
    measured.measure_trial(study, study.trials[0], CPU, finished=True)
    path = study.run_dir / "measured" / "low.json"
    at = {"length": 8, "edge": 1.5, "set": "8"}
    write_json(
        path,
        {
            **(read_json(path) or {}),
            "values": [{"metric": "m", "values": [1.0], "at": {k: [v] for k, v in at.items()}}],
        },
    )
    (value,) = measured.read_values(study)
    assert repr(dict(value.measured.at)) == repr(at)
