"""Checkpoints: save, verify, load, rotate, average; and `load_run`, a ready model from a run directory.

A checkpoint is a folder `checkpoints/step_00001000/` that alone rebuilds the model: weights, training
state, recipe, tokenizers. It is written under another name, synced, given a manifest with the sha256 of every
file, and renamed into place, so that a folder with the right name is complete. No pickle is written or read:
tensors are safetensors, the rest is JSON and YAML. What the training state means only the trainer knows.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from transformer_mt.config import Recipe
from transformer_mt.errors import CheckpointError, ConfigError
from transformer_mt.json_file import json_text, read_json, write_json
from transformer_mt.model.build import Model, build_model
from transformer_mt.recipe import dump_recipe, load_recipe
from transformer_mt.text.tokenizer import Tokenizers, load_tokenizers
from transformer_mt.text.trained_on import TrainedOn

FORMAT = 1
MODEL, STATE, SCALARS, CONFIG, MANIFEST = (
    "model.safetensors",
    "state.safetensors",
    "state.json",
    "config.yaml",
    "manifest.json",
)
AVERAGED = "averaged"
TRAINED_ON = "trained_on"
"""Where among the scalars of a checkpoint `TrainedOn` is."""
_STEP_FOLDER = re.compile(r"step_(\d{8,})$")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint in memory."""

    folder: Path
    step: int
    weights: dict[str, Tensor]
    state: dict[str, Tensor]
    scalars: dict[str, Any]


@dataclass(frozen=True)
class LoadedRun:
    """A model ready to translate with, in eval mode, and what it was made from.

    trained_on is what is remembered of the training text; of a run from before that was kept, nothing but the
    longest length that its recipe allowed.
    """

    recipe: Recipe
    model: Model
    tokenizers: Tokenizers
    step: int
    checkpoint_dir: Path
    trained_on: TrainedOn


def folder_of(run_dir: Path, step: int) -> Path:
    """Where the checkpoint of a step lives."""
    return run_dir / "checkpoints" / f"step_{step:08d}"


def saved_steps(run_dir: Path) -> list[int]:
    """Steps of the complete checkpoints of a run, oldest first, by number and not by name."""
    folder = run_dir / "checkpoints"
    if not folder.is_dir():
        return []
    found = [_STEP_FOLDER.match(entry.name) for entry in folder.iterdir() if (entry / MANIFEST).is_file()]
    return sorted(int(match[1]) for match in found if match)


def save_checkpoint(
    run_dir: Path,
    step: int | str,
    *,
    weights: Mapping[str, Tensor],
    state: Mapping[str, Tensor],
    scalars: Mapping[str, Any],
    recipe: Recipe,
    tokenizers: Tokenizers,
) -> Path:
    """Write one checkpoint whole or not at all, and return its folder.

    Args:
        step: the optimizer update it was made after, or a name such as "averaged".
        weights: parameter name -> what `translate` shall use.
        state: further tensors for continuing.
        scalars: JSON values for continuing.

    Raises:
        CheckpointError: disk full or not writable; nothing under the final name has changed.
    """
    folder = folder_of(run_dir, step) if isinstance(step, int) else run_dir / "checkpoints" / step
    temporary = folder.with_name(f".writing-{folder.name}")
    scalars = {
        "format": FORMAT,
        "step": step if isinstance(step, int) else scalars["step"],
        "tokenizers": [tokenizers.src.fingerprint, tokenizers.tgt.fingerprint],
        **scalars,
    }
    size = sum(t.numel() * t.element_size() for part in (weights, state) for t in part.values())
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        free = shutil.disk_usage(temporary).free
        if free < size * 1.05 + 2**20:
            raise OSError(f"needs {size * 1.05 / 2**20 + 1:.1f} MiB, but {free / 2**20:.1f} MiB are free")
        safetensors.torch.save_file(_contiguous(weights), temporary / MODEL)
        safetensors.torch.save_file(_contiguous(state), temporary / STATE)
        (temporary / SCALARS).write_text(json_text(scalars, indent=1) + "\n", encoding="utf-8")
        (temporary / CONFIG).write_text(dump_recipe(recipe), encoding="utf-8")
        tokenizers.save(temporary)
        _write_manifest(temporary)
        if folder.exists():
            replaced = folder.with_name(f".writing-old-{folder.name}")
            folder.rename(replaced)
            temporary.rename(folder)
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            temporary.rename(folder)
        _sync(folder.parent)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(
            f"{folder}: the checkpoint cannot be written: {reason}; free some space and run the command again"
        ) from None
    return folder


def verify(folder: Path, unread: str | None = None) -> None:
    """Compare every file of a checkpoint with its manifest.

    Args:
        unread: a file that need not be compared, because its reader is another.

    Raises:
        CheckpointError: what is missing, damaged or too much, in one line.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        expected = dict(manifest["sha256"])
    except FileNotFoundError:
        raise CheckpointError(f"{folder}: is not a complete checkpoint: it has no {MANIFEST}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder / MANIFEST}: cannot be read: {error}") from None
    if manifest.get("format") != FORMAT:
        raise CheckpointError(
            f"{folder}: has format {manifest.get('format')}, this version reads format {FORMAT}"
        )
    missing = [name for name in (MODEL, STATE, SCALARS, CONFIG) if name not in expected]
    if missing:
        raise CheckpointError(f"{folder / MANIFEST}: does not list {missing[0]}; restore it from a copy")
    for name, digest in expected.items():
        if name == unread:
            continue
        try:
            found = _sha256(folder / name)
        except OSError as error:
            raise CheckpointError(f"{folder / name}: cannot be read: {error.strerror}") from None
        if found != digest:
            raise CheckpointError(f"{folder / name}: is damaged: its sha256 is not the one in {MANIFEST}")


def read_checkpoint(folder: Path) -> Checkpoint:
    """Verify and read one checkpoint.

    Raises:
        CheckpointError: as `verify`.
    """
    verify(folder)
    weights, state = _read_tensors(folder / MODEL), _read_tensors(folder / STATE)
    scalars = _read_scalars(folder)
    return Checkpoint(folder, scalars["step"], weights, state, scalars)


def newest_valid(run_dir: Path) -> Checkpoint | None:
    """The newest checkpoint that verifies; each newer one that does not is named in the log with the reason.

    Raises:
        CheckpointError: there are checkpoints, but none verifies; or there were some.
    """
    refused: list[str] = []
    for step in reversed(saved_steps(run_dir)):
        try:
            return read_checkpoint(folder_of(run_dir, step))
        except CheckpointError as error:
            _log.warning("not used: %s", error)
            refused.append(str(error))
    if refused:
        raise CheckpointError(
            f"{run_dir}: none of its {len(refused)} checkpoints can be used ({refused[0]}); "
            "restore one from a copy, or start anew with --overwrite"
        )
    if (run_dir / "latest.json").exists():
        raise CheckpointError(
            f"{run_dir}: has lost its checkpoints, for there is a latest.json; restore one from a copy, or "
            "start anew with --overwrite"
        )
    return None


def rotate(run_dir: Path, keep_last: int, keep: Sequence[int]) -> None:
    """Delete all checkpoints but the newest `keep_last` and those in `keep`, and what a kill left behind."""
    steps = saved_steps(run_dir)
    for step in steps[:-keep_last]:
        if step not in keep:
            # The manifest goes first: a half-deleted folder must not look complete.
            (folder_of(run_dir, step) / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(folder_of(run_dir, step), ignore_errors=True)
    for leftover in (run_dir / "checkpoints").glob(".writing-*step_*"):
        shutil.rmtree(leftover, ignore_errors=True)


def average(run_dir: Path, steps: Sequence[int]) -> Path:
    """Write `checkpoints/averaged`, the mean of the weights of the given steps, summed in fp64.

    What is not floating-point has no mean, and is that of the last step.

    Raises:
        CheckpointError: a step is missing or damaged, or the weights do not belong together.
    """
    total: dict[str, Tensor] = {}
    last: Checkpoint | None = None
    for step in steps:
        last = read_checkpoint(folder_of(run_dir, step))
        if total and total.keys() != last.weights.keys():
            raise CheckpointError(f"{last.folder}: holds other weights than step {steps[0]}")
        for name, weight in last.weights.items():
            total[name] = total[name] + weight.double() if name in total else weight.double()
    assert last is not None
    mean = {
        name: (total[name] / len(steps)).to(weight.dtype) if weight.is_floating_point() else weight
        for name, weight in last.weights.items()
    }
    return save_checkpoint(
        run_dir,
        AVERAGED,
        weights=mean,
        state={},
        scalars={
            "step": last.step,
            "averaged_steps": list(steps),
            TRAINED_ON: last.scalars.get(TRAINED_ON),
        },
        recipe=read_recipe(last.folder),
        tokenizers=load_tokenizers(last.folder),
    )


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], where: Path) -> None:
    """Copy weights into a model, by name, all of them and nothing else.

    Raises:
        CheckpointError: names or shapes differ.
    """
    own = dict(model.named_parameters())
    missing, extra = sorted(own.keys() - weights.keys()), sorted(weights.keys() - own.keys())
    if missing or extra:
        named = f"misses {missing[0]}" if missing else f"also holds {extra[0]}"
        raise CheckpointError(
            f"{where}: does not fit its config: it {named} ({len(missing)} missing, {len(extra)} extra); "
            "another version made it, or it was changed: translate with that version, or train it anew"
        )
    for name, parameter in own.items():
        if parameter.shape != weights[name].shape:
            raise CheckpointError(
                f"{where}: does not fit its config or tokenizer: {name} is {tuple(weights[name].shape)}, "
                f"but {tuple(parameter.shape)} is needed"
            )
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])


def find_checkpoint(run: str | Path, which: str | int = "best") -> Path:
    """The checkpoint folder that a user means.

    Args:
        run: a run directory, or a checkpoint folder itself.
        which: best (the newest before the first validation), latest, averaged, or a step.

    Raises:
        CheckpointError: there is none such.
    """
    run_dir = Path(run)
    if not run_dir.is_dir():
        raise CheckpointError(f"{run_dir}: no such run directory")
    if (run_dir / MANIFEST).is_file():
        return run_dir
    steps = saved_steps(run_dir)
    if not steps:
        raise CheckpointError(f"{run_dir}: holds no complete checkpoint; train it first")
    if which == AVERAGED:
        if not (run_dir / "checkpoints" / AVERAGED / MANIFEST).is_file():
            raise CheckpointError(f"{run_dir}: has no averaged checkpoint; make one with `average {run_dir}`")
        return run_dir / "checkpoints" / AVERAGED
    if which in ("best", "latest"):
        pointer = read_json(run_dir / f"{which}.json")
        try:
            step = int(pointer["step"]) if pointer is not None else steps[-1]
        except (KeyError, TypeError, ValueError):
            raise CheckpointError(
                f"{run_dir / which}.json: names no step; delete it to use the newest checkpoint"
            ) from None
    else:
        try:
            step = int(which)
        except ValueError:
            raise ConfigError(
                f"--checkpoint {which}: must be best, latest, averaged or the number of a step"
            ) from None
    if step not in steps:
        raise CheckpointError(
            f"{run_dir}: has no checkpoint of step {step}; it has {', '.join(map(str, steps))}"
        )
    return folder_of(run_dir, step)


def load_run(run: str | Path, which: str | int = "best", device: torch.device | str = "cpu") -> LoadedRun:
    """Build the model of a run with its trained weights, and its tokenizers; the training state is not read.

    Raises:
        CheckpointError: no such checkpoint, damaged, or its parts do not belong together.
    """
    folder = find_checkpoint(run, which)
    verify(folder, unread=STATE)
    scalars = _read_scalars(folder)
    recipe = read_recipe(folder)
    tokenizers = load_tokenizers(folder)
    model = build_model(recipe.model, tokenizers.src.vocab_size, tokenizers.tgt.vocab_size)
    load_weights(model, _read_tensors(folder / MODEL), folder)
    if scalars.get("tokenizers") != [tokenizers.src.fingerprint, tokenizers.tgt.fingerprint]:
        raise CheckpointError(
            f"{folder}: tokenizer and weights do not belong together; "
            "restore the tokenizer it was trained with"
        )
    model = model.to(device).eval()
    trained_on = _trained_on(scalars, recipe, folder)
    return LoadedRun(recipe, model, tokenizers, scalars["step"], folder, trained_on)


def _trained_on(scalars: dict[str, Any], recipe: Recipe, folder: Path) -> TrainedOn:
    stored = scalars.get(TRAINED_ON)
    if stored is None:
        return TrainedOn(recipe.data.max_length)
    try:
        return TrainedOn.from_json(stored)
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(
            f"{folder / SCALARS}: `{TRAINED_ON}` tells nothing of a training text ({error!r}); restore the "
            "file from a copy"
        ) from None


def read_recipe(folder: Path) -> Recipe:
    """The recipe that a checkpoint was trained by.

    Raises:
        CheckpointError: it cannot be used.
    """
    path = folder / CONFIG
    try:
        return _read_recipe(path, path.resolve(), path.read_bytes() if path.is_file() else b"")
    except ConfigError as error:
        raise CheckpointError(f"{folder}: its recipe cannot be used: {error}") from None


@functools.lru_cache(maxsize=8)
def _read_recipe(path: Path, place: Path, content: bytes) -> Recipe:
    """Read once while nothing changes: YAML takes longer than the weights of a small model."""
    return load_recipe(path)


def _read_scalars(folder: Path) -> dict[str, Any]:
    try:
        scalars = dict(json.loads((folder / SCALARS).read_text(encoding="utf-8")))
        return {**scalars, "step": int(scalars["step"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{folder / SCALARS}: is not the state of a run ({error!r}); restore it from a copy"
        ) from None


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path}: is not a safetensors file ({error}); restore it from a copy, nothing else is read"
        ) from None


def _contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _write_manifest(folder: Path) -> None:
    names = sorted(entry.name for entry in folder.iterdir())
    for name in names:
        _sync(folder / name)
    manifest = {"format": FORMAT, "sha256": {name: _sha256(folder / name) for name in names}}
    write_json(folder / MANIFEST, manifest)
    _sync(folder)


def _sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Force a file or a folder's entries to disk; folders cannot be opened everywhere."""
    with contextlib.suppress(PermissionError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
