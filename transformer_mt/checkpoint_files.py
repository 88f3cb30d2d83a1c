"""One checkpoint on disk: written whole or not at all, verified, read.

A checkpoint is a folder `checkpoints/step_00001000/` that alone rebuilds the model: weights, training
state, recipe, tokenizers. It is written under another name, synced, given a manifest with the sha256 of every
file, and renamed into place, so that a folder with the right name is complete. A write that fails is tried
again. No pickle is written or read: tensors are safetensors, the rest is JSON and YAML. What the training
state means only the trainer knows.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from transformer_mt.config import Recipe
from transformer_mt.errors import CheckpointError, ConfigError
from transformer_mt.json_file import json_file_text, json_text, write_json
from transformer_mt.recipe import dump_recipe, load_recipe
from transformer_mt.text.tokenizer import Tokenizers

FORMAT = 1
MODEL, STATE, SCALARS, CONFIG, MANIFEST = (
    "model.safetensors",
    "state.safetensors",
    "state.json",
    "config.yaml",
    "manifest.json",
)
REPLACED = ".writing-old-"
"""Prefix of the name that a checkpoint has while another takes its place."""
_REMEDY = "restore it from a copy, or use another checkpoint"
_PAUSES = (0.5, 2.0)
"""Seconds before each further attempt at a write that failed: network disks are away for a moment."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint in memory."""

    folder: Path
    step: int
    weights: dict[str, Tensor]
    state: dict[str, Tensor]
    scalars: dict[str, Any]


def folder_of(run_dir: Path, step: int) -> Path:
    """Where the checkpoint of a step lives."""
    return run_dir / "checkpoints" / f"step_{step:08d}"


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
    scalars = {
        "format": FORMAT,
        "step": step if isinstance(step, int) else scalars["step"],
        "tokenizers": [tokenizers.src.fingerprint, tokenizers.tgt.fingerprint],
        **scalars,
    }
    for pause in (*_PAUSES, None):
        try:
            _write(folder, weights, state, scalars, recipe=recipe, tokenizers=tokenizers)
            break
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or error
            if pause is None:
                raise CheckpointError(
                    f"{folder}: the checkpoint cannot be written: {reason}; free some space and run the "
                    "command again"
                ) from None
            _log.warning("%s: not written: %s; tried again in %g s", folder, reason, pause)
            time.sleep(pause)
    return folder


def _write(
    folder: Path,
    weights: Mapping[str, Tensor],
    state: Mapping[str, Tensor],
    scalars: Mapping[str, Any],
    *,
    recipe: Recipe,
    tokenizers: Tokenizers,
) -> None:
    """One attempt; what stands under the name of the folder changes at its end alone."""
    temporary = folder.with_name(f".writing-{folder.name}")
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
            shutil.rmtree(_replaced(folder), ignore_errors=True)
            folder.rename(_replaced(folder))
        temporary.rename(folder)
        _sync(folder.parent)
        _sync(folder.parent.parent)
    except (OSError, SafetensorError):
        shutil.rmtree(temporary, ignore_errors=True)
        put_back(folder)
        raise
    shutil.rmtree(_replaced(folder), ignore_errors=True)


def _replaced(folder: Path) -> Path:
    """Where a checkpoint stands while another takes its place."""
    return folder.with_name(f"{REPLACED}{folder.name}")


def put_back(folder: Path) -> None:
    """Undo a replacement that came no further than to move the old checkpoint away."""
    if not folder.exists() and _replaced(folder).exists():
        _replaced(folder).rename(folder)


def verify(folder: Path, unread: str | None = None) -> None:
    """Compare every file of a checkpoint with its manifest.

    Args:
        unread: a file that need not be compared, because its reader is another.

    Raises:
        CheckpointError: what is missing or damaged, in one line.
    """
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
        manifest = json.loads(text)
        expected = dict(manifest["sha256"])
    except FileNotFoundError:
        raise CheckpointError(
            f"{folder}: is not a complete checkpoint: it has no {MANIFEST}; {_REMEDY}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder / MANIFEST}: cannot be read: {error}; {_REMEDY}") from None
    if manifest.get("format") != FORMAT:
        raise CheckpointError(
            f"{folder}: has format {manifest.get('format')}, this version reads format {FORMAT}"
        )
    missing = [name for name in (MODEL, STATE, SCALARS, CONFIG) if name not in expected]
    if missing:
        raise CheckpointError(f"{folder / MANIFEST}: does not list {missing[0]}; restore it from a copy")
    if text != json_file_text(manifest):
        raise CheckpointError(f"{folder / MANIFEST}: is damaged: it is not as it was written; {_REMEDY}")
    for name, digest in expected.items():
        if name == unread:
            continue
        try:
            found = _sha256(folder / name)
        except OSError as error:
            raise CheckpointError(f"{folder / name}: cannot be read: {error.strerror}; {_REMEDY}") from None
        if found != digest:
            raise CheckpointError(
                f"{folder / name}: is damaged: its sha256 is not the one in {MANIFEST}; {_REMEDY}"
            )


def read_checkpoint(folder: Path) -> Checkpoint:
    """Verify and read one checkpoint.

    Raises:
        CheckpointError: as `verify`.
    """
    verify(folder)
    weights, state = read_tensors(folder / MODEL), read_tensors(folder / STATE)
    scalars = read_scalars(folder)
    return Checkpoint(folder, scalars["step"], weights, state, scalars)


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


def read_scalars(folder: Path) -> dict[str, Any]:
    """The JSON values of a checkpoint.

    Raises:
        CheckpointError: they are none.
    """
    try:
        scalars = dict(json.loads((folder / SCALARS).read_text(encoding="utf-8")))
        return {**scalars, "step": int(scalars["step"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{folder / SCALARS}: is not the state of a run ({error!r}); restore it from a copy"
        ) from None


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of one file.

    Raises:
        CheckpointError: it is something else.
    """
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
