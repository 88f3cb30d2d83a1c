"""`study` through the command, with a stand-in for the processes that prepare and train."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.made_up_study import leave_run, made_up_study, write_study
from tests.small_runs import held
from transformer_mt.cli import compare
from transformer_mt.cli.main import main
from transformer_mt.studies import child

Capture = pytest.CaptureFixture[str]


class Verbs:
    """Stands in for `run_verb`: notes the words; training leaves a run unless `outcomes` says otherwise."""

    def __init__(self, folder: Path) -> None:
        self.calls: list[list[str]] = []
        self.measured: list[str] = []
        self.outcomes: dict[str, int] = {}
        self.nll: dict[str, float] = {}
        self.trials = {trial.name: trial for trial in made_up_study(folder).trials}

    def __call__(self, words: Sequence[str]) -> int:
        self.calls.append(list(words))
        if words[0] == "study":
            name = words[words.index("--measure") + 1]
            self.measured.append(name)
            return self.outcomes.get(f"measure {name}", 0)
        name = next(word for word in words if word.startswith("run_dir=")).rpartition("/")[2]
        code = self.outcomes.get(words[0], 0) or (words[0] == "train" and self.outcomes.get(name, 0))
        if words[0] == "train" and code != 2:
            leave_run(self.trials[name], finished=not code, nll=self.nll.get(name, 2.25))
        if code == 143:
            raise child.Stopped(143)
        return int(code)

    @property
    def trained(self) -> list[str]:
        """Names of the trials that were trained, in order; the list starts anew."""
        names = [call[-1].rpartition("/")[2] for call in self.calls if call[0] == "train"]
        self.calls.clear()
        return names


@pytest.fixture
def verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verbs:
    monkeypatch.chdir(tmp_path)
    stand_in = Verbs(tmp_path)
    monkeypatch.setattr(child, "run_verb", stand_in)
    return stand_in


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The systems of each comparison."""
    calls: list[list[str]] = []

    def run(args: object) -> int:
        calls.append(vars(args)["runs"])
        assert vars(args)["output"] == "runs/s"
        return 0

    monkeypatch.setattr(compare, "run", run)
    return calls


def test_data_are_prepared_once_and_then_each_variant_is_trained(verbs: Verbs, capsys: Capture) -> None:
    """Pins the order, one `prepare` for all that share data options, and the table on stdout."""
    assert main(["study", "s.yaml", "--device", "cpu"]) == 0
    verb = [call[0] for call in verbs.calls]
    assert verb == ["prepare", "prepare", "train", "train", "train"]
    assert verbs.calls[0][1:3] == ["base.yaml", "training.learning_rate=0.0001"]
    assert verbs.calls[1][1:] == [
        *("base.yaml", "training.learning_rate=0.002", 'data.train=["a", "b c"]', "run_dir=runs/s/wide")
    ]
    assert verbs.calls[-1][-2:] == ["--device", "cpu"]
    out = capsys.readouterr().out.split("\n")
    assert [line.split()[0] for line in out if line] == ["variant", "low", "mid", "wide"]
    assert Path("runs/s/trials.tsv").is_file() and Path("runs/s/study.json").is_file()


def test_what_cannot_be_prepared_shows_before_anything_is_trained(verbs: Verbs) -> None:
    """Pins that a missing file of the last variant does not cost the time of the others."""
    verbs.outcomes["prepare"] = 3
    assert main(["study", "s.yaml"]) == 3
    assert verbs.trained == []


def test_a_failure_does_not_stop_the_others_and_is_told_at_the_end(
    verbs: Verbs, compared: list[list[str]], capsys: Capture
) -> None:
    """Pins the code of the first failure, what is compared then, and that divergence is not paid twice."""
    verbs.outcomes = {"low": 4}
    assert main(["study", "s.yaml", "compare=true"]) == 4
    assert verbs.trained == ["low", "mid", "wide"]
    assert compared == [["mid=runs/s/mid", "wide=runs/s/wide"]]
    told = capsys.readouterr().err
    assert "1 of 3 runs came to no good end: low (diverged, exit code 4)" in told
    assert [row["state"] for row in json.loads(Path("runs/s/study.json").read_text())["trials"]] == [
        *("diverged", "finished", "finished")
    ]
    verbs.outcomes = {"mid": 2}
    assert main(["study", "s.yaml"]) == 4
    assert verbs.trained == ["mid", "wide"]
    told = capsys.readouterr().err
    assert "low: has diverged with these settings; remove runs/s/low to train it anew" in told
    assert "low (diverged, exit code 4), mid (failed, exit code 2)" in told


def add_to_study(text: str) -> None:
    """Add keys to the study file."""
    with open("s.yaml", "a", encoding="utf-8") as stream:
        stream.write(text)


def test_a_trial_that_cannot_be_measured_does_not_stop_the_others(verbs: Verbs, capsys: Capture) -> None:
    """Pins what is measured of which run, names and codes at the end, and the page in spite of it."""
    add_to_study("measure: {training_record: {}}\n")
    verbs.outcomes = {"measure mid": 3, "measure wide": 5}
    assert main(["study", "s.yaml"]) == 3
    assert verbs.measured == ["low", "mid", "wide"]
    told = "2 of 3 runs could not be measured: mid (exit code 3), wide (exit code 5)"
    assert told in capsys.readouterr().err
    assert Path("runs/s/index.html").is_file() and Path("runs/index.html").is_file()
    verbs.outcomes, verbs.measured = {"low": 4, "mid": 2, "measure wide": 5}, []
    shutil.rmtree("runs/s")
    assert main(["study", "s.yaml"]) == 4
    assert verbs.measured == ["low", "wide"]  # what diverged has curves, what failed has nothing
    errors = capsys.readouterr().err
    assert "2 of 3 runs came to no good end: low (diverged, exit code 4), mid (failed" in errors
    assert "1 of 3 runs could not be measured: wide (exit code 5)" in errors


def test_a_study_that_trains_nothing_belongs_to_its_file(verbs: Verbs, capsys: Capture) -> None:
    """Pins two study files that name one run_dir: the second would judge by the numbers of the first."""
    add_to_study("measure: {update_cost: {lengths: [8]}}\ntrain: false\n")
    assert main(["study", "s.yaml"]) == 0
    assert [row["state"] for row in json.loads(Path("runs/s/study.json").read_text())["trials"]] == [
        *("not begun", "not begun", "not begun")
    ]
    Path("s.yaml").rename("t.yaml")
    assert main(["study", "t.yaml"]) == 2
    assert "run_dir runs/s: belongs to the study s.yaml" in capsys.readouterr().err


def test_a_run_that_is_worse_than_guessing_has_diverged(
    verbs: Verbs, compared: list[list[str]], capsys: Capture
) -> None:
    """Pins that a finished run with an absurd nll is neither compared nor passed over in silence."""
    verbs.nll = {"mid": 5e12}
    assert main(["study", "s.yaml", "compare=true"]) == 4
    assert compared == [["low=runs/s/low", "wide=runs/s/wide"]]
    assert "1 of 3 runs came to no good end: mid (diverged, exit code 4)" in capsys.readouterr().err


def test_one_variant_alone_is_not_compared(verbs: Verbs, compared: list[list[str]], capsys: Capture) -> None:
    """Pins a word instead of an error of `compare`."""
    verbs.outcomes = {"low": 2, "mid": 137}
    assert main(["study", "s.yaml", "compare=true"]) == 2
    assert compared == []
    assert "nothing to compare: wide alone has come to its end" in capsys.readouterr().err


def test_the_seeds_of_a_variant_are_one_system(verbs: Verbs, compared: list[list[str]]) -> None:
    """Pins how runs are handed to `compare`."""
    study = made_up_study(Path.cwd(), "seeds=[1,2]")
    verbs.trials = {trial.name: trial for trial in study.trials}
    assert main(["study", "s.yaml", "compare=true", "seeds=[1,2]"]) == 0
    assert compared == [
        [f"{name}=runs/s/{name}_seed1,runs/s/{name}_seed2" for name in ("low", "mid", "wide")]
    ]


def test_variants_take_turns(verbs: Verbs, capsys: Capture) -> None:
    """Pins that what a machine does at a time falls on all variants, in training and in what is measured."""
    verbs.trials = {trial.name: trial for trial in made_up_study(Path.cwd(), "seeds=[1,2]").trials}
    add_to_study("measure: {training_record: {}}\n")
    assert main(["study", "s.yaml", "seeds=[1,2]"]) == 0
    turns = [f"{name}_seed{seed}" for seed in (1, 2) for name in ("low", "mid", "wide")]
    assert verbs.trained == turns and verbs.measured == turns


def test_a_signal_ends_the_study(verbs: Verbs, compared: list[list[str]], capsys: Capture) -> None:
    """Pins the exit code, that no other run begins, and what is said."""
    verbs.outcomes = {"mid": 143}
    assert main(["study", "s.yaml", "compare=true"]) == 143
    assert (verbs.trained, compared) == (["low", "mid"], [])
    told = capsys.readouterr()
    assert "stopped; what was trained is saved, and the same command continues" in told.err
    assert told.out == ""


def test_a_list_trains_nothing(verbs: Verbs, capsys: Capture) -> None:
    """Pins that --list shows the states and makes no directory."""
    assert main(["study", "s.yaml", "--list"]) == 0
    assert not Path("runs").exists()
    leave_run(verbs.trials["low"])
    assert main(["study", "s.yaml", "--list"]) == 0
    states = [line.split()[2] for line in capsys.readouterr().out.split("\n") if line.startswith("low")]
    assert (states, verbs.calls) == (["not", "finished"], [])


@pytest.mark.parametrize("folder", ["runs/s", "runs/s/mid"])
def test_a_directory_that_is_in_use_is_left_alone(verbs: Verbs, capsys: Capture, folder: str) -> None:
    """Pins that two studies, or a study and a run left behind by a killed one, do not train side by side."""
    Path(folder).mkdir(parents=True)
    with held(Path(folder)):
        assert main(["study", "s.yaml"]) == 5
    assert f"{folder}: another process is training in it" in capsys.readouterr().err
    assert verbs.trained == ([] if folder == "runs/s" else ["low"])


def test_the_directory_of_a_run_is_no_place_for_a_study(verbs: Verbs, capsys: Capture) -> None:
    """Pins that the study's files do not end up among those of a run."""
    assert main(["study", "s.yaml", "run_dir=runs/x"]) == 0
    Path("runs/x/config.yaml").touch()
    assert main(["study", "s.yaml", "run_dir=runs/x"]) == 2
    assert "run_dir runs/x: is the directory of a single run; name another run_dir" in capsys.readouterr().err


def test_a_name_that_yaml_takes_for_a_number_is_told(tmp_path: Path, capsys: Capture) -> None:
    """Pins that a variant 1e-3 does not become 0.001."""
    path = write_study(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("  mid:", "  1e-3:"), encoding="utf-8")
    assert main(["study", str(path)]) == 2
    assert "s.yaml:6:3: variants: the name 0.001 is not text; put it in quotes" in capsys.readouterr().err


def test_a_bad_study_has_code_2(tmp_path: Path, capsys: Capture) -> None:
    """Pins the exit code of a recipe's problem."""
    assert main(["study", str(write_study(tmp_path)), "training.max_stps=3"]) == 2
    assert "transformer-mt: error: command line: training.max_stps: no such key" in capsys.readouterr().err
