"""The run directory: what is refused before any work, and what `--overwrite` deletes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.small_runs import ended, forked
from transformer_mt.errors import CheckpointError, ConfigError
from transformer_mt.training.run_directory import (
    check_usable,
    clear,
    locked,
    stored_fingerprint,
    stored_recipe,
)


def test_a_file_is_no_run_directory(tmp_path: Path) -> None:
    """Pins that it shows at once and not after the data are prepared."""
    (tmp_path / "run").touch()
    with pytest.raises(ConfigError, match=r"run: is a file; name a folder"):
        check_usable(tmp_path / "run", overwrite=False)


@pytest.mark.parametrize(("name", "overwrite"), [("README.md", False), ("README.md", True), ("a.txt", True)])
def test_a_folder_with_other_files_is_refused(tmp_path: Path, name: str, overwrite: bool) -> None:
    """Pins B188: what a run would write over or delete is someone else's."""
    (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=f"is not a run directory .it holds {name}."):
        check_usable(tmp_path, overwrite=overwrite)


def test_a_new_run_may_lie_beside_other_files(tmp_path: Path) -> None:
    """Pins that a folder with a recipe in it, or the lock of a start that failed, can still be used."""
    check_usable(tmp_path / "new", overwrite=True)
    (tmp_path / ".lock").touch()
    check_usable(tmp_path, overwrite=True)
    (tmp_path / "recipe.yaml").touch()
    check_usable(tmp_path, overwrite=False)


def test_only_the_files_of_a_run_are_cleared(tmp_path: Path) -> None:
    """Pins --overwrite that deletes the corpus or other runs that lie in the run directory (B188)."""
    for name in ("config.yaml", "README.md", "train.log", "train.de", "recipe.yaml"):
        (tmp_path / name).touch()
    for name in ("checkpoints", "prepared", "other_run"):
        (tmp_path / name).mkdir()
    check_usable(tmp_path, overwrite=True)
    clear(tmp_path)
    assert {entry.name for entry in tmp_path.iterdir()} == {
        "train.de",
        "recipe.yaml",
        "prepared",
        "other_run",
    }


def test_what_people_keep_in_the_folders_of_a_run_is_not_cleared(tmp_path: Path) -> None:
    """B188: a copied checkpoint, a table of one's own; folders with nothing else in them go."""
    ours = ["checkpoints/step_00000010/model.safetensors", "checkpoints/averaged/manifest.json"]
    ours += ["checkpoints/.writing-step_00000020/state.json", "samples/step_00000010.tsv"]
    ours += [
        "evaluation/sets%2Ftwo.txt",
        "evaluation/sets%2Ftwo.json",
        "tensorboard/events.out.tfevents.1.x.2",
    ]
    theirs = ["checkpoints/step_00000010.old/model.safetensors", "checkpoints/kept/manifest.json"]
    theirs += ["samples/notes.md", "evaluation/table.tsv"]
    for name in (*ours, *theirs, "config.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "evaluation" / "elsewhere").symlink_to(tmp_path)
    clear(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(theirs)
    assert not (tmp_path / "tensorboard").exists()
    (tmp_path / "samples" / "notes.md").rename(tmp_path / "notes.md")
    clear(tmp_path)
    assert not (tmp_path / "samples").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            None,
            "is missing, and nothing else says what the checkpoints were trained on; put it back, train on",
        ),
        ("{}", "names no data, and nothing else says what the checkpoints were trained on; put it back"),
        ("", "cannot be read: Expecting value.*; put it back, train on in another run_dir with --init-from"),
    ],
)
def test_checkpoints_need_to_know_their_data(tmp_path: Path, text: str | None, told: str) -> None:
    """Pins a run that was continued on whatever text there was, once run.json was gone."""
    path = tmp_path / "run.json"
    assert stored_fingerprint(tmp_path) is None  # killed before it began
    path.write_text('{"data_fingerprint": "abc"}', encoding="utf-8")
    assert stored_fingerprint(tmp_path) == "abc"
    folder = tmp_path / "checkpoints" / "step_00000003"
    folder.mkdir(parents=True)
    (folder / "manifest.json").touch()
    path.unlink()
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=f"{path}: {told}"):
        stored_fingerprint(tmp_path)


def test_a_damaged_recipe_of_a_run_is_named_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()
    with pytest.raises(
        CheckpointError, match="config.yaml:1:1: .* empty; put back what training wrote: every"
    ):
        stored_recipe(tmp_path)


def test_what_outlives_a_killed_training_does_not_hold_its_directory(tmp_path: Path) -> None:
    """Pins that the same command, given again at once, is refused until the last worker has noticed."""
    reading, writing = os.pipe()

    def train() -> int:
        with locked(tmp_path):
            os.write(writing, f"{forked(lambda: signal.pause() or 0)} ".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert ended(forked(train)) == -signal.SIGKILL
    worker = int(os.read(reading, 20))
    try:
        os.kill(worker, 0)  # it is there
        with locked(tmp_path):
            pass
    finally:
        os.kill(worker, signal.SIGKILL)
