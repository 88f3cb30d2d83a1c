"""`average` through the command: which checkpoints it takes, and what it refuses with which exit code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from random_run import MODELS, random_run

from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli.main import main


@pytest.fixture(params=MODELS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run with checkpoints of two steps, equal but for the second's weights, which are doubled."""
    folder = random_run(tmp_path / "run", model=MODELS[request.param])
    (step,) = ckpt.saved_steps(folder)
    first = files.read_checkpoint(files.folder_of(folder, step))
    loaded = ckpt.load_run(folder)
    files.save_checkpoint(
        folder,
        step + 1,
        weights={name: 2 * weight for name, weight in first.weights.items()},
        state={},
        scalars={},
        recipe=loaded.recipe,
        tokenizers=loaded.tokenizers,
    )
    return folder


def test_the_newest_are_averaged_and_translate_finds_them(run: Path) -> None:
    """Pins an average of other steps, and one that `--checkpoint averaged` does not see."""
    assert main(["average", str(run), "--last", "2"]) == 0
    first = ckpt.load_run(run, ckpt.saved_steps(run)[0]).model
    mean = ckpt.load_run(run, "averaged").model
    for one, other in zip(first.parameters(), mean.parameters(), strict=True):
        torch.testing.assert_close(other, 1.5 * one)


def test_named_steps_count_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pins a step named twice that weighs twice."""
    older, newer = map(str, ckpt.saved_steps(run))
    assert main(["average", str(run), "--steps", newer, older, newer]) == 0
    assert f"mean of steps {older}, {newer}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--last", "0"], 2, "--last 0: must be at least 1"),
        (["--last", "3"], 5, "has 2 checkpoints, not 3; lower --last"),
        (["--steps", "77"], 5, "has no checkpoint of step 77"),
    ],
)
def test_what_cannot_be_averaged_is_said(
    run: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    """Pins an average of fewer checkpoints than asked for."""
    assert main(["average", str(run), *words]) == code
    assert message in capsys.readouterr().err
    assert not (run / "checkpoints" / ckpt.AVERAGED).exists()


def test_a_folder_without_checkpoints_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pins a traceback where there is nothing to average."""
    shutil.rmtree(run / "checkpoints")
    assert main(["average", str(run)]) == 5
    assert "holds no complete checkpoint" in capsys.readouterr().err
