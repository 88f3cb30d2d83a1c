"""`doctor`: every finding has its line, and what is wrong with a run has its exit code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch
from random_run import MODELS, random_run

from tests.small_runs import held
from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli.main import main
from transformer_mt.data.prepare import data_fingerprint
from transformer_mt.data.tokenizer_report import TokenizerReport, as_plain
from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import write_json
from transformer_mt.model.attention import FUSED_FROM
from transformer_mt.recipe import dump_recipe


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run of one checkpoint, with its recipe and the text it names."""
    folder = random_run(tmp_path / "run", model=MODELS[getattr(request, "param", "transformer")])
    (folder / "config.yaml").write_text(dump_recipe(ckpt.load_run(folder).recipe), encoding="utf-8")
    for name in ("train", "valid", "test", "sets/two"):
        for language in ("de", "en"):
            path = tmp_path / f"{name}.{language}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("a\n", encoding="utf-8")
    write_json(folder / "run.json", {"data_fingerprint": _fingerprint(folder)})
    return folder


def _fingerprint(run: Path) -> str:
    recipe = ckpt.load_run(run).recipe
    return data_fingerprint(recipe.data, recipe.tokenizer)


def _flip_a_byte(run: Path) -> None:
    path = files.folder_of(run, 20) / files.MODEL
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def _break_the_recipe(run: Path) -> None:
    (run / "config.yaml").write_text("run_dir: x\nmodle: {}\n", encoding="utf-8")


def _lose_the_text(run: Path) -> None:
    (run.parent / "train.de").unlink()


def _change_the_text(run: Path) -> None:
    (run.parent / "sets" / "two.en").write_text("b\n", encoding="utf-8")


def _lose_the_books(run: Path) -> None:
    (run / "run.json").unlink()


def _point_nowhere(run: Path) -> None:
    write_json(run / "best.json", {"step": 7})


def test_what_was_chosen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions, device, threads with their reason, precision with the processor's features."""
    monkeypatch.setattr("transformer_mt.runtime.device.bf16_features", lambda: ["amx_bf16", "amx_tile"])
    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))
    assert main(["doctor", "--device", "cpu", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["versions"]["torch"].startswith(torch.__version__.partition("+")[0])
    assert report["versions"]["numpy"] == numpy.__version__
    threads = torch.get_num_threads()
    assert report["chosen"]["threads"] == f"{threads}: OMP_NUM_THREADS={threads}"
    assert report["chosen"]["precision auto"] == "bf16: it has amx_bf16 and amx_tile"
    for (dtype, direction), product in FUSED_FROM.items():
        found = report["chosen"][f"attention {dtype} {direction}"]
        side = int(found.removeprefix("fused kernel from ").partition(" ")[0])
        assert side**2 <= product < (side + 1) ** 2
    assert report["faults"] == []
    assert "checkpoints" not in report


@pytest.mark.parametrize("run", MODELS, indirect=True)
def test_a_table_has_one_line_for_each_finding(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sections stand once, values start in one column."""
    assert main(["doctor", str(run)]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert main(["doctor", str(run), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    del report["faults"]
    assert len(lines) - 1 == sum(len(findings) for findings in report.values())
    assert [line.split()[0] for line in lines if line and line[0] != " "] == list(report)
    assert report["checkpoints"]["step_00000020"] == "every file has its sha256"
    assert report["checkpoints"]["best"] == report["checkpoints"]["latest"] == "step_00000020"
    assert report["recipe"]["config.yaml"] == "reads"
    assert report["data"]["test sets/two"].endswith("two.en")
    assert report["data"]["prepared"] == "not there, `train` makes them from the text"
    column = next(line.index("every file") for line in lines if "every file" in line)
    assert all(line[column - 1] == " " and line[column] != " " for line in lines if line)


@pytest.mark.parametrize(
    ("damages", "code", "faults"),
    [
        ([_flip_a_byte], 5, ["FAULT: {run}/checkpoints/step_00000020/model.safetensors: is damaged"]),
        ([_point_nowhere], 5, ["FAULT: {run}: has no checkpoint of step 7"]),
        ([_lose_the_books], 5, ["FAULT: {run}/run.json: is missing, and nothing else says what the"]),
        ([_break_the_recipe], 2, ["{run}/config.yaml:2:1: modle: no such key; did you mean model?"]),
        ([_lose_the_text], 3, ["FAULT: {folder}/train.de: no such file"]),
        (
            [_change_the_text],
            3,
            ["FAULT: the text and its options are not those of the training (fingerprint"],
        ),
        ([_break_the_recipe, _flip_a_byte], 5, ["is damaged", "no such key"]),
        ([_lose_the_text, _point_nowhere], 5, ["no such file", "has no checkpoint of step 7"]),
    ],
)
def test_faults_of_a_run(
    run: Path,
    capsys: pytest.CaptureFixture[str],
    damages: list[Callable[[Path], None]],
    code: int,
    faults: list[str],
) -> None:
    """One line each, all of them, and the exit code of the worst."""
    for damage in damages:
        damage(run)
    assert main(["doctor", str(run)]) == code
    out = capsys.readouterr().out
    for fault in faults:
        assert fault.format(run=run, folder=run.parent) in out
    assert main(["doctor", str(run), "--json"]) == code
    assert len(json.loads(capsys.readouterr().out)["faults"]) >= len(faults)


def test_prepared_data_are_looked_at(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are those whose fingerprint the run wrote down, whole or not."""
    fingerprint = _fingerprint(run)
    folder = run.parent / "prepared" / fingerprint[:16]
    folder.mkdir(parents=True)
    write_json(folder / "manifest.json", {"fingerprint": fingerprint, "files": {}})
    assert main(["doctor", str(run)]) == 0
    assert capsys.readouterr().out.endswith(f"{folder}\n")
    side = TokenizerReport(lines=7, checked=7, byte_characters=3, characters=50, scripts={"Han": 3})
    write_json(folder / "report.json", {"tokenizer": as_plain((side, side))})
    assert main(["doctor", str(run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["data"]["tokenizer source"]
    assert told.startswith("0 unknown tokens; 3 of 50 characters fell to bytes (3 Han); 0 of 7 lines")
    (folder / "report.json").write_text("{", encoding="utf-8")
    write_json(folder / "manifest.json", {"fingerprint": fingerprint, "files": {"x": {"size": 1}}})
    assert main(["doctor", str(run)]) == 0
    assert f"{folder}/x: is damaged" in capsys.readouterr().out
    write_json(folder / "manifest.json", {"fingerprint": "other", "files": {}})
    assert main(["doctor", str(run)]) == 3
    assert "was prepared from other text than this run" in capsys.readouterr().out


def test_text_through_datasets_is_not_fetched_for_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It may lie on another machine; and before the first checkpoint there is nothing to compare with."""
    config = run / "config.yaml"
    config.write_text(config.read_text("utf-8").replace("- train\n", "- hf:a/b:train\n"), encoding="utf-8")
    assert main(["doctor", str(run)]) == 0
    assert "not compared: some of the text comes through `datasets`" in capsys.readouterr().out
    shutil.rmtree(run / "checkpoints")
    (run / "run.json").unlink()
    main(["doctor", str(run)])
    assert "nothing is trained yet" in capsys.readouterr().out


def test_what_a_run_knows_of_its_training_text(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which lines it takes in parts; one of an earlier version has kept nothing of it."""
    assert main(["doctor", str(run)]) == 0
    assert "in parts beyond 256 tokens or 9 sentences" in capsys.readouterr().out
    main(["doctor", str(random_run(tmp_path / "old", sentences=None))])
    assert "does not know how many sentences its training lines had" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("progress", "recipe", "said"),
    [
        ({}, {"max_steps": 50}, "after step 20 of 50"),
        ({}, {"max_steps": 20}, "not: finished at step 20, training.max_steps"),
        ({"validation_due": True}, {"max_steps": 20}, "with the validation of step 20"),
        (
            {"validations_without_better": 3},
            {"max_steps": 50, "patience": 3},
            "not: finished at step 20 of 50, training.patience",
        ),
    ],
)
def test_what_training_would_do_is_told(
    run: Path,
    capsys: pytest.CaptureFixture[str],
    progress: dict[str, object],
    recipe: dict[str, int],
    said: str,
) -> None:
    """As `train` itself decides it."""
    _save_again(run, 20, progress, recipe)
    assert main(["doctor", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["training"] == {"continues": said}


def _save_again(run: Path, step: int, progress: dict[str, object], training: dict[str, int]) -> None:
    found = files.read_checkpoint(files.folder_of(run, 20))
    loaded = ckpt.load_run(run)
    files.save_checkpoint(
        run,
        step,
        weights=found.weights,
        state=found.state,
        scalars={**found.scalars, "step": step, "progress": progress},
        recipe=loaded.recipe.model_copy(
            update={"training": loaded.recipe.training.model_copy(update=training)}
        ),
        tokenizers=loaded.tokenizers,
    )


def test_a_run_that_was_killed_is_explained(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is passed over, what is left of the kill, how far the records go, who trains."""
    _save_again(run, 30, {}, {"max_steps": 50})
    _save_again(run, 20, {}, {"max_steps": 50})
    (files.folder_of(run, 30) / "manifest.json").unlink()
    (run / "checkpoints" / ".writing-step_00000040").mkdir()
    (run / "metrics.jsonl").write_text('{"kind": "train", "step": 35}\n{"kind": "tr', encoding="utf-8")
    with held(run):
        assert main(["doctor", str(run), "--json"]) == 5
    report = json.loads(capsys.readouterr().out)
    assert report["training"] == {
        "continues": "after step 20 of 50, passing over 1 newer that cannot be used",
        "records": "1, to step 35",
        "unfinished": "1 of a training that was killed (.writing-step_00000040); the next checkpoint removes "
        "them",
        "process": "one is training here now",
    }
    assert [fault["name"] for fault in report["faults"]] == ["step_00000030"]
    assert "is not a complete checkpoint" in report["checkpoints"]["step_00000030"]
    (files.folder_of(run, 20) / "state.json").unlink()
    assert main(["doctor", str(run)]) == 5
    assert "FAULT: from none of its checkpoints; restore one" in capsys.readouterr().out
    shutil.rmtree(run / "checkpoints")
    main(["doctor", str(run)])
    out = capsys.readouterr().out
    assert "from the beginning: nothing is saved yet" in out and "one is training" not in out


@pytest.mark.parametrize("verb", ["doctor", "average", "evaluate", "score", "translate"])
def test_no_such_run(run: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A checkpoint error that names the run which may be meant, or any: those beside it."""
    (run.parent / "another").mkdir()
    write_json(run.parent / "another" / "run.json", {})
    for name, hint in (("rnu", "run"), ("nowhere", "another")):
        assert main([verb, str(run.parent / name)]) == CheckpointError.exit_code
        message = f"{name}: no such run directory; did you mean {run.parent / hint}?\n"
        assert capsys.readouterr().err.endswith(message)
    assert main([verb, str(run / "config.yaml")]) == CheckpointError.exit_code
    assert "config.yaml: is a file; name the run directory that `train`" in capsys.readouterr().err
    assert main([verb, str(run / "gone")]) == CheckpointError.exit_code
    assert "gone: no such run directory; `train` writes one, the run_dir of" in capsys.readouterr().err
