"""Runs that go on, and which of their checkpoints count; through the command, with scripted scores."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.end_to_end.conftest import MakeTask
from tests.small_runs import assert_same_tensors, scalars
from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli.main import main
from transformer_mt.data import build
from transformer_mt.evaluation.scores import Score
from transformer_mt.training.validation import ValidationLoss

Capture = pytest.CaptureFixture[str]
Script = Callable[..., None]
EVERY_STEP = ("training.log_every=1", "training.save_every=1", "training.validate_every=1")
_TIMES = ("time", "tokens_per_second", "peak_gib", "seconds")


@pytest.fixture
def task(copy_task: MakeTask) -> MakeTask:
    """`copy_task` with little text."""
    return partial(copy_task, pairs=250, num_valid=4)


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than these runs."""
    monkeypatch.setattr("transformer_mt.cli.build_trainer._NUM_PICTURES", 0)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """script(10.0, 20.0, before=f): what the next validations find; f(number) is called before each."""

    def write(*values: float, before: Callable[[int], None] = lambda number: None) -> None:
        coming = iter(enumerate(values, start=1))
        shown = dict.fromkeys(("bleu", "chrf"), 0.0)

        def sums(*_: object) -> tuple[float, float]:
            number, value = next(coming)
            before(number)
            shown.update(bleu=value, chrf=value)
            return value, 1.0

        def loss(value: float, *_: object) -> ValidationLoss:
            return ValidationLoss(value, value, 1.0)

        def score(*_: object) -> list[Score]:
            return [Score(name, value, "scripted") for name, value in shown.items()]

        monkeypatch.setattr("transformer_mt.training.trainer.loss_sums", sums)
        monkeypatch.setattr(ValidationLoss, "of", loss)
        monkeypatch.setattr("transformer_mt.cli.build_trainer.score", score)

    return write


def train(recipe: Path, *words: str) -> int:
    return main(["train", str(recipe), *words])


def run_of(recipe: Path) -> Path:
    return recipe.parent / "run"


def records(run: Path, kind: str) -> list[dict[str, Any]]:
    """All of a kind, without what depends on the clock."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    found = [record for record in map(json.loads, lines) if record.pop("kind") == kind]
    return [{key: value for key, value in record.items() if key not in _TIMES} for record in found]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def best(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "best.json").read_text(encoding="utf-8"))
    return found


def curve(run: Path, tag: str) -> list[int]:
    """Steps of a curve over all files of TensorBoard, in their order."""
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    return [event.step for event in events.Scalars(tag)]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_continued_run_is_the_uninterrupted_one(task: MakeTask, workers: int) -> None:
    """B097, B100, B200: steps, rates, losses, weights and moments of a run that continues are bit for bit
    those of one that does not; no step stands twice in a curve, and older checkpoints are not touched."""
    whole, parts = task(), task()
    every = ["training.log_every=1", "training.save_every=1", "training.validate_every=4"]
    assert train(whole, "training.max_steps=11", *every) == 0
    assert train(parts, "training.max_steps=6", *every) == 0
    run = run_of(parts)
    (files.folder_of(run, 6) / "model.safetensors").write_bytes(b"lost: step 6 is made again")
    kept = [contents(files.folder_of(run, step)) for step in (2, 5)]
    # TensorBoard reads files in the order of their names: the second, then the process and a plain number.
    time.sleep(1.0)
    more = ["training.max_steps=11", "training.keep_last=20", f"training.workers={workers}"]
    assert train(parts, *more, *every) == 0
    assert [contents(files.folder_of(run, step)) for step in (2, 5)] == kept
    assert_same_tensors(files.folder_of(run_of(whole), 11), files.folder_of(run, 11))
    for kind, name, steps in (("train", "train/loss", [*range(1, 12)]), ("valid", "valid/nll", [4, 8, 11])):
        assert records(run, kind) == records(run_of(whole), kind)
        assert [record["step"] for record in records(run, kind)] == curve(run, name) == steps
    assert len(list((run / "tensorboard").iterdir())) == 2


def test_raising_the_last_step_raises_the_rate(task: MakeTask) -> None:
    """B099: a run whose rate had fallen to 0 learns again when it is given more steps."""
    recipe = task({"warmup_steps: 10": "warmup_steps: 0\n  schedule: cosine"})
    assert train(recipe, "training.max_steps=3", *EVERY_STEP) == 0
    assert train(recipe, "training.max_steps=6", *EVERY_STEP) == 0
    rates = [record["learning_rate"] for record in records(run_of(recipe), "train")]
    assert rates[2] == rates[5] == 0.0
    assert rates[3] > rates[4] > 0.0
    weights = [files.read_checkpoint(files.folder_of(run_of(recipe), step)).weights for step in (3, 4, 5)]
    for before, after in pairwise(weights):
        assert all(not torch.equal(before[name], after[name]) for name in before)


def test_a_run_whose_memory_was_too_small_goes_on_with_less(task: MakeTask) -> None:
    """The remedies that a user is told: smaller batches, more of them, recomputed activations."""
    recipe = task()
    assert train(recipe, "training.max_steps=2", *EVERY_STEP) == 0
    less = ["training.max_tokens=256", "training.update_freq=2", "training.gradient_checkpointing=true"]
    assert train(recipe, "training.max_steps=4", *less, *EVERY_STEP) == 0
    log = run_of(recipe) / "train.log"
    told = "with another training.max_tokens the batches are others: epoch 1 begins anew"
    assert log.read_text(encoding="utf-8").count(told) == 1
    assert [record["step"] for record in records(run_of(recipe), "train")] == [1, 2, 3, 4]
    place = [scalars(files.folder_of(run_of(recipe), step))["progress"]["position"] for step in (2, 3, 4)]
    assert place == [2, 2, 4], "two batches an update, from the beginning of the epoch"
    assert train(recipe, "training.max_steps=5", *less, *EVERY_STEP) == 0
    assert log.read_text(encoding="utf-8").count(told) == 1
    assert scalars(files.folder_of(run_of(recipe), 5))["progress"]["position"] == 6


def test_the_loss_scale_goes_on(task: MakeTask, capsys: Capture) -> None:
    """B102: a scale that had come down, and its counter, continue; another precision is refused."""
    recipe = task({"precision: fp32": "precision: fp16"})
    assert train(recipe, "training.max_steps=2", *EVERY_STEP) == 0
    folder = files.folder_of(run_of(recipe), 2)
    scalars = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    scalars["scaler"] |= {"scale": 256.0, "_growth_tracker": 7}
    (folder / "state.json").write_text(json.dumps(scalars), encoding="utf-8")
    (folder / "manifest.json").unlink()
    files._write_manifest(folder)
    assert train(recipe, "training.max_steps=4", *EVERY_STEP) == 0
    scalars = files.read_checkpoint(files.folder_of(run_of(recipe), 4)).scalars
    assert scalars["scaler"]["scale"] == 256.0
    assert scalars["scaler"]["_growth_tracker"] == 9
    assert scalars["progress"]["skipped"] == 0
    capsys.readouterr()
    assert train(recipe, "training.max_steps=6", "training.precision=fp32") == 2
    assert "training.precision: 'fp16' -> 'fp32'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "case",
    [
        (["training.max_steps=3"], [], "at step 3: training.max_steps is 3; raise it"),
        (["training.max_steps=3"], ["training.max_steps=2"], "at step 3: training.max_steps is 2; raise it"),
        (["training.patience=1"], [], "at step 2: training.patience is 1; raise it"),
    ],
)
def test_a_finished_run_is_left_as_it_is(
    task: MakeTask, script: Script, capsys: Capture, case: tuple[list[str], list[str], str]
) -> None:
    """B104, B105: by steps or by patience; the same command, or fewer steps, change no byte and say why."""
    words, again, said = case
    recipe = task()
    script(1.0, 1.0, 1.0)
    assert train(recipe, *words, *EVERY_STEP) == 0
    before = contents(run_of(recipe))
    capsys.readouterr()
    assert train(recipe, *words, *again, *EVERY_STEP) == 0
    assert f"already finished {said}" in capsys.readouterr().err
    assert contents(run_of(recipe)) == before


def test_what_a_continued_run_may_change(task: MakeTask, capsys: Capture) -> None:
    """B106, B188: another width, vocabulary or text is refused by name, nothing is written; a rate is not."""
    recipe, other = task(), task({"vocab_size: 310": "vocab_size: 300"})
    for one in (recipe, other):
        assert train(one, "training.max_steps=1") == 0
    before = contents(run_of(recipe))
    capsys.readouterr()
    for words, said in [
        (["model.d_model=32"], "(model.d_model: 64 -> 32)"),
        (["tokenizer.vocab_size=300"], "(tokenizer.vocab_size: 310 -> 300)"),
        ([f"tokenizer.from={run_of(other)}"], "(tokenizer.from: None -> "),
        ([f"data.root={_another_text(recipe)}"], "was trained on other data"),
    ]:
        assert train(recipe, "training.max_steps=2", *words) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert str(run_of(recipe)) in error and said in error
        assert "another run_dir" in error and "--overwrite" in error
        assert contents(run_of(recipe)) == before
    assert train(recipe, "training.max_steps=2", "training.learning_rate=1e-4") == 0
    log = (run_of(recipe) / "train.log").read_text(encoding="utf-8")
    assert "continuing with training.learning_rate: 0.003 -> 0.0001" in log


def test_another_vocabulary_of_the_same_text_is_not_mixed_in(
    task: MakeTask, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B106: prepared data that were lost, and a library that now learns other pieces from the same text."""
    recipe = task()
    assert train(recipe, "training.max_steps=1") == 0
    shutil.rmtree(recipe.parent / "prepared")
    learn = build.train_tokenizer
    monkeypatch.setattr(build, "train_tokenizer", lambda lines, **options: learn([*lines][:50], **options))
    before = contents(run_of(recipe))
    capsys.readouterr()
    assert train(recipe, "training.max_steps=2") == 5
    error = capsys.readouterr().err.splitlines()[-1]
    assert "was trained with another vocabulary than the one learned now" in error
    assert contents(run_of(recipe)) == before


def _another_text(recipe: Path) -> Path:
    folder = recipe.parent / "edited"
    folder.mkdir()
    for path in recipe.parent.glob("*.[xy][xy]"):
        shutil.copy(path, folder)
    for side in ("xx", "yy"):
        with (folder / f"train.{side}").open("a", encoding="utf-8") as stream:
            stream.write("one more\n")
    return folder


def test_the_newest_whole_checkpoint_continues(
    task: MakeTask, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B109: cut or empty newer ones are named and passed over, but never replaced where one is asked for."""
    recipe = task()
    assert train(recipe, "training.max_steps=3", *EVERY_STEP) == 0
    run = run_of(recipe)
    half = files.folder_of(run, 2) / "model.safetensors"
    half.write_bytes(half.read_bytes()[: half.stat().st_size // 2])
    for path in files.folder_of(run, 3).iterdir():
        path.write_bytes(b"")
    for words in (["translate", str(run), "--checkpoint", "3"], ["translate", str(files.folder_of(run, 2))]):
        assert main(words) == 5
    start = ["--init-from", str(files.folder_of(run, 2)), f"run_dir={tmp_path / 'new'}"]
    assert train(recipe, *start, "training.max_steps=1") == 5
    assert train(recipe, "training.max_steps=4", *EVERY_STEP) == 0
    said = caplog.text
    assert "not used: " in said and "step_00000003/manifest.json: cannot be read" in said
    assert "step_00000002/model.safetensors: is damaged" in said
    log = (run / "train.log").read_text(encoding="utf-8")
    assert "continuing after step 1\n" in log
    assert [record["step"] for record in records(run, "train")] == [1, 2, 3, 4]


def test_a_run_killed_at_any_time_goes_on(task: MakeTask) -> None:
    """B107: SIGKILL while every step is saved; what is left continues, and ends where a quiet run ends."""
    whole, killed = task(), task()
    words = ["training.max_steps=30", "training.save_every=1", "training.validate_every=30"]
    assert train(whole, *words) == 0
    assert train(killed, *words[1:], "training.max_steps=1") == 0
    for seconds in (0.02, 0.1, 0.3):
        newest = ckpt.saved_steps(run_of(killed))[-1]
        child = os.fork()
        if not child:
            os.closerange(0, 3)
            os._exit(train(killed, *words))
        while ckpt.saved_steps(run_of(killed))[-1] == newest:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left = ckpt.newest_valid(run_of(killed))
        assert left is not None and left.step == ckpt.saved_steps(run_of(killed))[-1] > newest
        if left.step == 30:
            break
    assert train(killed, *words) == 0
    assert_same_tensors(files.folder_of(run_of(whole), 30), files.folder_of(run_of(killed), 30))
    assert not list(run_of(killed).rglob(".writing-*step_*"))


@pytest.mark.parametrize("metric", ["bleu", "chrf", "nll", "ppl"])
def test_the_best_checkpoint_is_the_best(task: MakeTask, script: Script, metric: str) -> None:
    """B122: the metric's direction, unrounded; what counted is written down with it."""
    rises = metric in ("bleu", "chrf")
    values = (10.0, 20.0, 20.0004, 15.0) if rises else (3.0, 2.0, 1.9996, 2.5)
    script(*values)
    recipe = task({"precision: fp32": f"precision: fp32\n  metric: {metric}"})
    assert train(recipe, "training.max_steps=4", *EVERY_STEP) == 0
    better = "higher" if rises else "lower"
    assert best(run_of(recipe)) == {"step": 3, "metric": metric, "value": values[2], "better": better}
    assert ckpt.load_run(run_of(recipe)).step == 3


def test_rotation_spares_the_best_and_what_is_not_ours(task: MakeTask, script: Script) -> None:
    """B110: the two newest and the best are left and whole, and what people put beside them."""
    script(10.0, 30.0, 25.0, 24.0, 20.0, 1.0)
    recipe = task()
    assert train(recipe, "training.max_steps=1", *EVERY_STEP) == 0
    folder = run_of(recipe) / "checkpoints"
    copy = shutil.copytree(files.folder_of(run_of(recipe), 1), folder / "step_00000001_mine")
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    assert train(recipe, "training.max_steps=6", "training.keep_last=2", *EVERY_STEP) == 0
    assert ckpt.saved_steps(run_of(recipe)) == [2, 5, 6]
    for step in (2, 5, 6):
        assert files.read_checkpoint(files.folder_of(run_of(recipe), step)).step == step
    assert (folder / "notes.txt").exists() and files.read_checkpoint(copy).step == 1


def test_the_best_score_and_patience_survive_an_interruption(
    task: MakeTask, script: Script, capsys: Capture
) -> None:
    """B124, B126, B186: scores 5, 4, 4, a SIGTERM, 4, 4: the best stays, patience 4 ends at the fifth."""
    recipe = task({"precision: fp32": "precision: fp32\n  patience: 4"})
    run = run_of(recipe)
    script(5.0, 4.0, 4.0, before=lambda number: os.kill(os.getpid(), signal.SIGTERM) if number == 3 else None)
    words = ["training.max_steps=9", "training.keep_last=1", *EVERY_STEP]
    assert train(recipe, *words) == 143
    assert ckpt.saved_steps(run) == [1, 3]
    first = contents(files.folder_of(run, 1))
    script(4.0, 4.0, 4.0)
    capsys.readouterr()
    assert train(recipe, *words) == 0
    assert ckpt.saved_steps(run) == [1, 5]
    assert contents(files.folder_of(run, 1)) == first
    assert best(run)["step"] == 1
    assert [(record["best"], record["best_step"]) for record in records(run, "valid")] == [(5.0, 1)] * 5
    assert "best 5 best_step 1 " in (run / "train.log").read_text(encoding="utf-8")


def test_a_fine_tuned_run_has_a_best_of_its_own(task: MakeTask, script: Script, tmp_path: Path) -> None:
    """B123: 12 is the best of the new run though the old one had 30; continuing it keeps that."""
    recipe = task()
    script(30.0)
    assert train(recipe, "training.max_steps=1", *EVERY_STEP) == 0
    start = ["--init-from", str(run_of(recipe)), f"run_dir={tmp_path / 'tuned'}"]
    script(11.0, 12.0, 10.0)
    assert train(recipe, *start, "training.max_steps=3", *EVERY_STEP) == 0
    assert (best(tmp_path / "tuned")["step"], best(tmp_path / "tuned")["value"]) == (2, 12.0)
    assert ckpt.load_run(tmp_path / "tuned").step == 2
    assert best(run_of(recipe))["value"] == 30.0
