"""Files of checkpoints that were cut, flipped, planted or not written: what continues, what is said."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.end_to_end.conftest import MakeTask
from tests.small_runs import assert_same_tensors, at_step, contents, ended, forked, records, run_of, train
from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli.main import main
from transformer_mt.errors import CheckpointError
from transformer_mt.evaluation.scores import Score
from transformer_mt.training import state
from transformer_mt.training.records import Records

Capture = pytest.CaptureFixture[str]
EVERY_STEP = ("training.log_every=1", "training.save_every=1", "training.validate_every=99")
NAMES = (
    *("config.yaml", "manifest.json", "model.safetensors"),
    *("state.json", "state.safetensors", "tokenizer.model"),
)


def _cut_to(length: Callable[[int], int]) -> Callable[[bytes], bytes]:
    return lambda content: content[: length(len(content))]


def _flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "one bit flipped": _flip,
    "cut to 0 bytes": _cut_to(lambda size: 0),
    "cut to 10 bytes": _cut_to(lambda size: 10),
    "cut in half": _cut_to(lambda size: size // 2),
    "last byte lost": _cut_to(lambda size: size - 1),
}


@pytest.fixture(scope="module")
def trained(copy_task: MakeTask) -> Path:
    """The recipe of a run with checkpoints of steps 1, 2 and 3."""
    recipe = copy_task(pairs=200, num_valid=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)
        assert train(recipe, "training.max_steps=3", *EVERY_STEP) == 0
    return recipe


@pytest.fixture
def recipe(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that may be spoilt."""
    monkeypatch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)
    shutil.copytree(trained.parent, tmp_path / "task")
    copy = tmp_path / "task" / "recipe.yaml"
    text = copy.read_text(encoding="utf-8")
    copy.write_text(text.replace(str(trained.parent), str(tmp_path / "task")), encoding="utf-8")
    return copy


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow at once."""
    monkeypatch.setattr(files, "_PAUSES", (0.0, 0.0))


def _names(recipe: Path) -> list[str]:
    return sorted(path.name for path in files.folder_of(run_of(recipe), 3).iterdir())


@pytest.mark.parametrize("damage", DAMAGES)
def test_any_damage_of_any_file_is_found(
    recipe: Path, damage: str, caplog: pytest.LogCaptureFixture, capsys: Capture
) -> None:
    """B109: the checkpoint before is taken, what is wrong with the newer one is said, also by `doctor`."""
    folder = files.folder_of(run_of(recipe), 3)
    assert _names(recipe) == list(NAMES)
    for path in [folder / name for name in NAMES]:
        content = path.read_bytes()
        path.write_bytes(DAMAGES[damage](content))
        caplog.clear()
        found = ckpt.newest_valid(run_of(recipe))
        assert found is not None and found.step == 2
        assert f"not used: {folder}/" in caplog.text and path.name in caplog.text
        if path.name in ("manifest.json", "model.safetensors"):
            capsys.readouterr()
            assert main(["doctor", str(run_of(recipe))]) == 5
            assert f"FAULT: {folder}/" in capsys.readouterr().out
            assert main(["translate", str(run_of(recipe)), str(recipe)]) == 5
        path.write_bytes(content)
    assert ckpt.newest_valid(run_of(recipe)).step == 3  # type: ignore[union-attr]


def test_a_damaged_newest_is_trained_again(recipe: Path, caplog: pytest.LogCaptureFixture) -> None:
    """B109: from the one before, to the same bits; the log says why."""
    run = run_of(recipe)
    folder = files.folder_of(run, 3)
    shutil.copytree(folder, run.parent / "whole")
    state = folder / "state.safetensors"
    state.write_bytes(DAMAGES["last byte lost"](state.read_bytes()))
    assert train(recipe, "training.max_steps=3", *EVERY_STEP) == 0
    assert f"not used: {folder}/state.safetensors: is damaged" in caplog.text
    assert "continuing after step 2\n" in (run / "train.log").read_text(encoding="utf-8")
    assert_same_tensors(folder, run.parent / "whole")


class _Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.canary,)


def test_a_planted_pickle_is_left_where_it_lies(recipe: Path, tmp_path: Path) -> None:
    """B115: under any name that another program would load; every verb goes on, nothing of it has run."""
    canary, run = tmp_path / "canary", run_of(recipe)
    for folder in (run, run / "checkpoints", files.folder_of(run, 3)):
        for name in ("model.pt", "pytorch_model.bin", "optimizer.pt", "checkpoint_last.pt", "state.pkl"):
            torch.save({"model": _Evil(canary)}, folder / name)
    for words in (
        ["train", str(recipe), "training.max_steps=4", *EVERY_STEP],
        ["doctor", str(run)],
        ["average", str(run), "--last", "2"],
        ["translate", str(run), str(recipe.parent / "valid.xx")],
    ):
        assert main(words) == 0
    assert not canary.exists()
    torch.load(run / "model.pt", weights_only=False)
    assert canary.exists()  # it was a real one


def limit_files(size: int) -> None:
    """From now on no file of this process may pass a size: what a full disk looks like."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size if size >= 0 else hard, hard))


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("end", ["last step", "signal"])
def test_a_full_disk_ends_training_only_where_it_must_be_saved(recipe: Path, end: str) -> None:
    """Saves on the way are given up, the last one is exit code 5; with room again the run is a whole one."""
    run = run_of(recipe)
    whole = recipe.parent / "whole"
    every = ("training.log_every=1", "training.save_every=2", "training.validate_every=3")
    assert train(recipe, "training.max_steps=9", *every, f"run_dir={whole}") == 0
    before = contents(run / "checkpoints")

    def fill() -> int:
        limit_files(60_000)  # room for records, none for weights
        if end == "signal":
            at_step(7, lambda: os.kill(os.getpid(), signal.SIGTERM))
        return train(recipe, "training.max_steps=9", *every)

    assert ended(forked(fill)) == 5
    assert contents(run / "checkpoints") == before
    log = (run / "train.log").read_text(encoding="utf-8")
    for step in (4, 6):
        assert f"training goes on after step {step}, which is not saved: {files.folder_of(run, step)}" in log
    assert f"step {7 if end == 'signal' else 9}/9" in log
    assert train(recipe, "training.max_steps=9", *every) == 0
    assert_same_tensors(files.folder_of(run, 9), files.folder_of(whole, 9))
    assert [record["step"] for record in records(run, "train")] == list(range(1, 10))


def test_a_disk_that_is_full_for_a_while_costs_no_record(recipe: Path) -> None:
    """No byte can be written from step 5 to step 7: training goes on, and in the end nothing is missing."""

    def fill() -> int:
        at_step(5, lambda: limit_files(1))
        at_step(8, lambda: limit_files(-1))
        files._PAUSES = (0.0, 0.0)  # type: ignore[assignment]
        return train(recipe, "training.max_steps=9", *EVERY_STEP)

    assert ended(forked(fill)) == 0
    run = run_of(recipe)
    assert [record["step"] for record in records(run, "train")] == list(range(1, 10))
    assert ckpt.saved_steps(run) == [2, 3, 4, 8, 9]


def test_no_checkpoint_is_ahead_of_its_records(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Pins records that are missing after a power cut, or once a full disk has room again."""

    def fail(_: Records) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Records, "sync", fail)
    assert train(recipe, "training.max_steps=5", *EVERY_STEP) == 5
    assert "run: cannot be written: No space left on device; free some space" in capsys.readouterr().err
    assert ckpt.saved_steps(run_of(recipe)) == [1, 2, 3]


def test_a_best_checkpoint_that_could_not_be_saved_is_none(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins a best.json that names a checkpoint which is not there, and the loss of the one before."""
    save, values = state.save_checkpoint, iter([10.0, 30.0, 20.0])

    def refuse_step_5(run_dir: Path, step: int, **parts: Any) -> Path:
        if step == 5:
            raise CheckpointError(f"step {step}: cannot be written: no room; free some")
        return save(run_dir, step, **parts)

    monkeypatch.setattr(state, "save_checkpoint", refuse_step_5)
    monkeypatch.setattr(
        "transformer_mt.cli.build_trainer.score",
        lambda *_: [Score("bleu", next(values), ""), Score("chrf", 0.0, "")],
    )
    run = run_of(recipe)
    assert json.loads((run / "best.json").read_text(encoding="utf-8"))["step"] == 3
    words = ["training.validate_every=1", "training.save_every=99", "training.log_every=1"]
    assert train(recipe, "training.max_steps=6", *words) == 0
    assert json.loads((run / "best.json").read_text(encoding="utf-8"))["step"] == 6
    assert ckpt.load_run(run).step == 6
    log = (run / "train.log").read_text(encoding="utf-8")
    assert "training goes on after step 5, which is not saved: step 5: cannot be written: no room\n" in log


def test_every_so_many_checkpoints_are_kept(recipe: Path) -> None:
    """training.keep_every, beside the newest and the best."""
    words = ["training.keep_every=4", "training.keep_last=1", *EVERY_STEP]
    assert train(recipe, "training.max_steps=10", *words) == 0
    best = json.loads((run_of(recipe) / "best.json").read_text(encoding="utf-8"))["step"]
    assert ckpt.saved_steps(run_of(recipe)) == sorted({4, 8, 10, best})
