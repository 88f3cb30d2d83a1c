"""Trainings of small runs in this process or in a forked one that is killed, and what is compared of them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from transformer_mt.checkpoint import saved_steps
from transformer_mt.checkpoint_files import folder_of
from transformer_mt.cli.main import main
from transformer_mt.data.batch import Batch
from transformer_mt.training.run_directory import locked
from transformer_mt.training.step import Update, Updater

OF_THE_CLOCK = ("time", "tokens_per_second", "peak_gib", "seconds")
"""What two equal runs differ in."""


def train(recipe: Path, *words: str) -> int:
    """The command in this process; its exit code."""
    return main(["train", str(recipe), *words])


def run_of(recipe: Path) -> Path:
    """Its run directory."""
    return recipe.parent / "run"


def forked(work: Callable[[], int]) -> int:
    """Do something in a copy of this process. Returns its process id."""
    child = os.fork()
    if child:
        return child
    for number in range(3):  # what a user would see is not the test's
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    code = 70
    try:
        code = work()
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a process: its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def held(run_dir: Path) -> Iterator[int]:
    """While another process holds the run directory, which has this number."""
    reading, writing = os.pipe()

    def hold() -> int:
        with locked(run_dir):
            os.write(writing, b"held")
            signal.pause()
        return 0

    child = forked(hold)
    assert os.read(reading, 4) == b"held"
    yield child
    os.kill(child, signal.SIGKILL)
    assert ended(child) == -signal.SIGKILL
    os.close(reading)
    os.close(writing)


def at_step(step: int, happens: Callable[[], object]) -> None:
    """In this process, which is a forked one, something happens before an update begins."""
    run = Updater.run

    def run_after(updater: Updater, number: int, *rest: Any, **more: Any) -> Update:
        if number == step:
            happens()
        return run(updater, number, *rest, **more)

    Updater.run = run_after  # type: ignore[method-assign]


def killed_in_step(step: int, recipe: Path, *words: str) -> None:
    """Train in a process that gets SIGKILL when it begins with this update."""

    def train_and_die() -> int:
        at_step(step, lambda: os.kill(os.getpid(), signal.SIGKILL))
        return train(recipe, *words)

    assert ended(forked(train_and_die)) == -signal.SIGKILL


def note_batches(patch: pytest.MonkeyPatch) -> None:
    """From now on every update adds step and digest of its batches to the file NOTED_BATCHES."""
    run = Updater.run

    def run_and_note(updater: Updater, step: int, batches: Sequence[Batch], **more: Any) -> Update:
        tensors = [t for b in batches for t in (b.src_ids, b.src_mask, b.decoder_input_ids, b.labels)]
        digest = hashlib.sha256(repr([tensor.tolist() for tensor in tensors]).encode("ascii")).hexdigest()
        with open(os.environ["NOTED_BATCHES"], "a", encoding="ascii") as stream:
            stream.write(f"{step} {digest}\n")
        return run(updater, step, batches, **more)

    patch.setattr(Updater, "run", run_and_note)


def records(run: Path, kind: str) -> list[dict[str, Any]]:
    """All of a kind, without what depends on the clock."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    found = [record for record in map(json.loads, lines) if record.pop("kind") == kind]
    return [{key: value for key, value in record.items() if key not in OF_THE_CLOCK} for record in found]


def curves(run: Path) -> dict[str, list[tuple[int, float]]]:
    """Every curve of TensorBoard, over all files in their order."""
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
        if tag.partition("/")[2] not in OF_THE_CLOCK
    }


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file below."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def scalars(folder: Path) -> dict[str, Any]:
    """The plain values of a checkpoint, without what depends on the clock."""
    found: dict[str, Any] = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    for part in (found["progress"], found["progress"]["totals"]):
        for name in OF_THE_CLOCK:
            part.pop(name, None)
    return found


def assert_same_tensors(one: Path, other: Path) -> None:
    """Weights, moments, averages: the same bits."""
    for name in ("model.safetensors", "state.safetensors"):
        ours, theirs = (safetensors.torch.load_file(folder / name) for folder in (one, other))
        assert ours.keys() == theirs.keys() and ours
        assert not [key for key in ours if not torch.equal(ours[key], theirs[key])]


def assert_same_run(one: Path, other: Path) -> None:
    """Two runs that cannot be told apart but by their clocks: checkpoints, records, curves, samples, best."""
    assert saved_steps(one) == saved_steps(other)
    for step in saved_steps(one):
        assert_same_tensors(folder_of(one, step), folder_of(other, step))
        assert scalars(folder_of(one, step)) == scalars(folder_of(other, step))
    for kind in ("train", "valid"):
        assert records(one, kind) == records(other, kind)
    assert curves(one) == curves(other)
    for name in ("best.json", "latest.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    samples = [{path.name: path.read_bytes() for path in (run / "samples").iterdir()} for run in (one, other)]
    assert samples[0] == samples[1]
