"""The checkpoints of a run: which there are, which one is meant, how many are kept, their average; and
`load_run`, a ready model from a run directory. What is in one of them is the matter of `checkpoint_files.py`.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer_mt.checkpoint_files import (
    MANIFEST,
    MODEL,
    REPLACED,
    SCALARS,
    STATE,
    Checkpoint,
    folder_of,
    put_back,
    read_checkpoint,
    read_recipe,
    read_scalars,
    read_tensors,
    save_checkpoint,
    verify,
)
from transformer_mt.config import Recipe
from transformer_mt.errors import CheckpointError, ConfigError
from transformer_mt.json_file import read_json
from transformer_mt.model.build import Model, build_model
from transformer_mt.text.tokenizer import Tokenizers, load_tokenizers
from transformer_mt.text.trained_on import TrainedOn

AVERAGED = "averaged"
TRAINED_ON = "trained_on"
"""Where among the scalars of a checkpoint `TrainedOn` is."""
_STEP_FOLDER = re.compile(r"step_(\d{8,})$")
_log = logging.getLogger(__name__)


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


def saved_steps(run_dir: Path, *, complete: bool = True) -> list[int]:
    """Steps of the checkpoints of a run, oldest first, by number and not by name.

    Args:
        run_dir: of the run.
        complete: whether those without a manifest are left out, which were not written by a training.
    """
    folder = run_dir / "checkpoints"
    if not folder.is_dir():
        return []
    entries = [entry for entry in folder.iterdir() if (entry / MANIFEST).is_file() or not complete]
    found = [_STEP_FOLDER.match(entry.name) for entry in entries]
    return sorted(int(match[1]) for match in found if match)


def newest_valid(run_dir: Path) -> Checkpoint | None:
    """The newest checkpoint that verifies; each newer one that does not is named in the log with the reason.

    Raises:
        CheckpointError: there are checkpoints, but none verifies; or there were some.
    """
    refused: list[str] = []
    for moved in (run_dir / "checkpoints").glob(f"{REPLACED}*"):
        put_back(moved.with_name(moved.name.removeprefix(REPLACED)))
    for step in reversed(saved_steps(run_dir, complete=False)):
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


def rotate(run_dir: Path, keep_last: int, keep: Sequence[int], *, keep_every: int = 0) -> None:
    """Delete what is not kept any more, and what a kill left behind; but only if the last of `keep` verifies.

    Args:
        run_dir: of the run.
        keep_last: the number of newest checkpoints that are kept.
        keep: further steps that are kept; the last of them is the one that was written just now.
        keep_every: multiples of this are kept, too; 0 is off.

    Raises:
        CheckpointError: the newest is damaged; nothing is deleted.
    """
    doomed = [
        step
        for step in saved_steps(run_dir)[:-keep_last]
        if step not in keep and not (keep_every and step % keep_every == 0)
    ]
    if doomed and keep:
        verify(folder_of(run_dir, keep[-1]))
    folder = run_dir / "checkpoints"
    try:
        for step in doomed:
            # Another name first: what is half deleted must not be taken for a checkpoint.
            going = folder / f".deleting-{folder_of(run_dir, step).name}"
            shutil.rmtree(going, ignore_errors=True)
            folder_of(run_dir, step).rename(going)
        for leftover in (*folder.glob(".writing-*step_*"), *folder.glob(".deleting-step_*")):
            shutil.rmtree(leftover)
    except OSError as error:
        _log.warning("%s: an old checkpoint cannot be deleted: %s", folder, error)


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
    scalars = read_scalars(folder)
    recipe = read_recipe(folder)
    tokenizers = load_tokenizers(folder)
    model = build_model(recipe.model, tokenizers.src.vocab_size, tokenizers.tgt.vocab_size)
    load_weights(model, read_tensors(folder / MODEL), folder)
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
