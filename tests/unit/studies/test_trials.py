"""The table of a study: every number from a run written by hand; which old runs may stay."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from tests.made_up_study import leave_run, made_up_study
from transformer_mt.errors import CheckpointError, ConfigError
from transformer_mt.studies.study import Study
from transformer_mt.studies.trials import (
    as_table,
    check_old_runs,
    has_diverged,
    read_exit_codes,
    read_results,
    write_results,
)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """low has come to its end, mid has not, wide has not begun."""
    monkeypatch.chdir(tmp_path)
    study = made_up_study(tmp_path)
    low, mid, _ = study.trials
    leave_run(low)
    leave_run(mid, best=41.0, finished=False)
    return study


def test_every_number_comes_from_its_file(study: Study) -> None:
    """Pins best validation and its step, the last nll, 2000 tokens in 10 + 20 seconds, and the cost."""
    low, mid, wide = read_results(study, {})
    assert (low.state, mid.state, wide.state) == ("finished", "begun", "not begun")
    assert (low.metric, low.best, low.best_step, low.nll) == ("bleu", 30.5, 10, 2.25)
    assert (low.parameters, low.updates, low.target_tokens) == (1234, 20, 2500)
    assert (low.seconds, low.peak_gib) == (90.0, 1.5)
    assert low.tokens_per_second == pytest.approx(2000 / 30)
    assert (mid.updates, mid.seconds) == (20, 42.0)
    assert (wide.best, wide.nll, wide.parameters, wide.peak_gib) == (None, None, None, None)


@pytest.mark.parametrize(
    ("nll", "state"),
    [(21.0, "finished"), (5e12, "diverged"), (None, "diverged"), (math.nan, "diverged")],
)
def test_a_model_that_is_worse_than_guessing_has_diverged(
    study: Study, nll: float | None, state: str
) -> None:
    """Pins `finished` beside an nll of 5e12; null is what is written of an nll that is not finite."""
    leave_run(study.trials[0], nll=nll)
    assert read_results(study, {})[0].state == state
    leave_run(study.trials[0], nll=nll, finished=False)
    assert read_results(study, {})[0].state == "begun"


def test_the_table_for_people(study: Study) -> None:
    """Pins rounding, minutes, and that words stand left and numbers right."""
    lines = as_table(read_results(study, {})).split("\n")
    assert [" ".join(line.split()) for line in lines[:2]] == [
        "variant seed state metric best at step nll parameters updates target tokens minutes tokens/s "
        "peak GiB special",
        "low - finished bleu 30.50 10 2.2500 1,234 20 2,500 1.5 67 1.50 training.learning_rate=0.0001",
    ]
    assert lines[2].split()[:5] == ["mid", "-", "begun", "bleu", "41.00"]
    assert lines[3].endswith('-  training.learning_rate=0.002 data.train=["a", "b c"]')
    for line, cell in zip(lines, ("minutes", "1.5", "0.7", "-"), strict=True):
        assert line[: lines[0].index("minutes") + len("minutes")].endswith(cell)
        assert line.index(line.split()[2]) == lines[0].index("state")


def test_both_files_hold_every_row(study: Study) -> None:
    """Pins a row for each trial in trials.tsv and study.json, unrounded, with all overrides in the latter."""
    write_results(study, read_results(study, {"runs/s/low": 0, "runs/s/mid": 4}))
    head, *rows = (study.run_dir / "trials.tsv").read_text(encoding="utf-8").rstrip("\n").split("\n")
    table = [dict(zip(head.split("\t"), row.split("\t"), strict=True)) for row in rows]
    assert [row["variant"] for row in table] == ["low", "mid", "wide"]
    assert [row["exit_code"] for row in table] == ["0", "4", ""]
    assert (table[0]["nll"], table[0]["seconds"], table[1]["state"]) == ("2.25", "90.0", "diverged")
    facts = json.loads((study.run_dir / "study.json").read_text(encoding="utf-8"))
    assert facts["trials"][0]["overrides"] == {"training.learning_rate": 1e-4, "run_dir": "runs/s/low"}
    assert facts["trials"][0]["tokens_per_second"] == pytest.approx(2000 / 30)
    assert read_exit_codes(study) == {"runs/s/low": 0, "runs/s/mid": 4, "runs/s/wide": None}


@pytest.mark.parametrize("text", ["[]]", "[1]", '{"trials": 1}', '{"trials": [1]}', '{"trials": [{}]}'])
def test_a_study_json_that_is_none_is_told(study: Study, text: str) -> None:
    (study.run_dir / "study.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"study\.json: .*; delete it to go on without it"):
        read_exit_codes(study)


def test_the_directory_of_another_study_is_refused(study: Study) -> None:
    """Pins that two study files with one run_dir do not overwrite each other's table."""
    (study.run_dir / "study.json").write_text('{"study": "old/other.yaml", "trials": []}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"run_dir runs/s: belongs to the study other\.yaml; name another"):
        read_exit_codes(study)
    (study.run_dir / "study.json").write_text('{"study": "moved/s.yaml", "trials": []}', encoding="utf-8")
    assert read_exit_codes(study) == {}


def test_a_run_that_diverged_is_tried_again_only_with_other_settings(study: Study, tmp_path: Path) -> None:
    """Pins that the same divergence is not paid for twice, and that a changed setting is another try."""
    codes: dict[str, int | None] = {"runs/s/low": 4, "runs/s/mid": 2}
    low, mid, _ = study.trials
    assert has_diverged(low, codes)
    assert not has_diverged(mid, codes)
    longer = made_up_study(tmp_path, "training.max_steps=7").trials[0]
    assert not has_diverged(longer, codes)
    shutil.rmtree(low.run_dir)
    assert not has_diverged(low, codes)


def test_folders_that_hold_something_else_are_told_before_training(study: Study, tmp_path: Path) -> None:
    """Pins one line for each, with the settings that differ; more updates are no difference."""
    check_old_runs(study.trials)
    check_old_runs(made_up_study(tmp_path, "training.max_steps=7").trials)
    (tmp_path / "runs" / "s" / "wide").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="was trained with other settings") as caught:
        check_old_runs(made_up_study(tmp_path, "training.dropout=0.3").trials)
    low, mid, wide = str(caught.value).split("\n")
    assert low == (
        "runs/s/low: was trained with other settings (training.dropout: 0.1 -> 0.3); use the old ones or "
        "another run_dir, or remove this folder to train it anew"
    )
    assert mid.startswith("runs/s/mid: ") and wide == "run_dir runs/s/wide: is a file; name a folder"
