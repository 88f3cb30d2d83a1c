"""The run directory: who owns it, what it was made with, and whether this recipe may continue it.

One process at a time; a directory that belongs to another recipe or other data is refused, never mixed.
"""

from __future__ import annotations

import fcntl
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

import transformer_mt
from transformer_mt.checkpoint import saved_steps
from transformer_mt.config import Recipe
from transformer_mt.errors import CheckpointError, ConfigError
from transformer_mt.json_file import read_json, write_json, write_text
from transformer_mt.recipe import differences, dump_recipe, load_recipe
from transformer_mt.runtime.device import machine_name

# Everything that a run writes, the lock apart.
_RUN_FILES = re.compile(
    r"config\.yaml|(run|best|latest)\.json|metrics\.jsonl|train\.log|README\.md|"
    r"tokenizer(\.src|\.tgt)?\.model|checkpoints|evaluation|samples|tensorboard|"
    r"shortlist\.safetensors|\.writing-.*"
)


# What a run writes into each of its folders.
_IN_FOLDERS = {
    "checkpoints": re.compile(r"(\.(writing|deleting)-.*)?(step_\d{8,}|averaged)"),
    "evaluation": re.compile(r".*\.(txt|json)"),
    "samples": re.compile(r"step_\d{8,}\.tsv"),
    "tensorboard": re.compile(r"events\.out\.tfevents\..*"),
}


@contextmanager
def locked(run_dir: Path) -> Iterator[None]:
    """Hold the run directory for this process.

    Raises:
        CheckpointError: another process trains in it.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    with open(run_dir / ".lock", "w", encoding="utf-8") as stream:
        try:
            # Of this process alone: the processes that build batches may outlive it by a moment.
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CheckpointError(
                f"{run_dir}: another process is training in it; wait for it, or name another run_dir"
            ) from None
        yield


def in_use(run_dir: Path) -> bool:
    """Whether another process holds the run directory now."""
    try:
        with open(run_dir / ".lock", "rb") as stream:
            fcntl.lockf(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def leftovers(run_dir: Path) -> list[str]:
    """Names of what a killed training left unfinished among its checkpoints."""
    return sorted(path.name for path in (run_dir / "checkpoints").glob(".*step_*"))


def check_usable(run_dir: Path, *, overwrite: bool) -> None:
    """Find out at once, before data are prepared, that this can be no run directory.

    Raises:
        ConfigError: it is a file, or holds what is not ours and a run would write over or delete.
    """
    if run_dir.exists() and not run_dir.is_dir():
        raise ConfigError(f"run_dir {run_dir}: is a file; name a folder")
    if belongs_to_run(run_dir) or not run_dir.is_dir():
        return
    names = sorted(entry.name for entry in run_dir.iterdir() if entry.name != ".lock")
    if not overwrite:
        names = [name for name in names if _RUN_FILES.fullmatch(name)]
        if "checkpoints" in names:
            return  # a run that lost its recipe: there is more to say about it
    if names:
        raise ConfigError(f"{run_dir}: is not a run directory (it holds {names[0]}); name another run_dir")


def belongs_to_run(run_dir: Path) -> bool:
    """True where training has begun in this directory before."""
    return (run_dir / "config.yaml").is_file()


def clear(run_dir: Path) -> None:
    """Remove an old run for `--overwrite`, and nothing else that was put beside it or into its folders."""
    for entry in list(run_dir.iterdir()):
        if entry.name in _IN_FOLDERS and entry.is_dir() and not entry.is_symlink():
            for inner in [one for one in entry.iterdir() if _IN_FOLDERS[entry.name].fullmatch(one.name)]:
                _remove(inner)
            with suppress(OSError):  # what is left there is someone else's
                entry.rmdir()
        elif _RUN_FILES.fullmatch(entry.name):
            _remove(entry)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def stored_precision(run_dir: Path) -> str:
    """What the run in this directory resolved `training.precision` to, `auto` where there is none."""
    return stored_recipe(run_dir).training.precision if belongs_to_run(run_dir) else "auto"


def stored_recipe(run_dir: Path) -> Recipe:
    """The recipe of the run in this directory.

    Raises:
        CheckpointError: its config.yaml is missing or damaged.
    """
    try:
        return load_recipe(run_dir / "config.yaml")
    except ConfigError as error:
        problem = str(error).partition("\n")[0]
        raise CheckpointError(
            f"{problem}; put back what training wrote: every checkpoint of the run holds it"
        ) from None


def stored_fingerprint(run_dir: Path) -> str | None:
    """Of the data that the run in this directory was trained on; None where no step has been saved yet.

    Raises:
        CheckpointError: there are checkpoints, but run.json does not say what they were trained on.
    """
    path = run_dir / "run.json"
    remedy = (
        f"put it back, train on in another run_dir with --init-from {run_dir}, or start anew with --overwrite"
    )
    fingerprint = (read_json(path, remedy) or {}).get("data_fingerprint")
    if fingerprint is None and saved_steps(run_dir):
        raise CheckpointError(
            f"{path}: {'names no data' if path.exists() else 'is missing'}, and nothing else says what the "
            f"checkpoints were trained on; {remedy}"
        )
    return fingerprint if fingerprint is None else str(fingerprint)


def check_continues(run_dir: Path, recipe: Recipe, data_fingerprint: str) -> list[str]:
    """Refuse a recipe or data that differ from those of the run in what may not change.

    Returns:
        One line for each change that is allowed, or of what the bits of a result depend on, to be logged.

    Raises:
        ConfigError: the list of keys, or the data, that differ.
        CheckpointError: what they were is not known any more.
    """
    allowed, refused = differences(stored_recipe(run_dir), recipe)
    if refused:
        changes = ", ".join(f"{key}: {old!r} -> {new!r}" for key, (old, new) in refused.items())
        raise ConfigError(
            f"{run_dir}: belongs to another configuration ({changes}); "
            "use the old values, another run_dir, or --overwrite to start anew"
        )
    trained_on = stored_fingerprint(run_dir)
    if trained_on is not None and trained_on != data_fingerprint:
        raise ConfigError(
            f"{run_dir}: was trained on other data (fingerprint {trained_on[:12]}, "
            f"now {data_fingerprint[:12]}); use the old files, another run_dir, or --overwrite to start anew"
        )
    told = [
        f"continuing with {key}: {old} -> {new}"
        for key, (old, new) in allowed.items()
        if key not in ("run_dir", "data.root")
    ]
    before = read_json(run_dir / "run.json") or {}
    for name, value in _arithmetic().items():
        if before.get(name, value) != value:
            told.append(
                f"continuing with {name}: {before[name]} -> {value}: the data come in the same order, but "
                "results may differ in their last bits from those of a run that was never interrupted"
            )
    return told


def _arithmetic() -> dict[str, Any]:
    """What decides the last bits of a sum."""
    return {"torch": torch.__version__, "machine": machine_name(), "threads": torch.get_num_threads()}


def describe(run_dir: Path, recipe: Recipe, facts: Mapping[str, Any]) -> None:
    """Write config.yaml and run.json."""
    write_text(run_dir / "config.yaml", dump_recipe(recipe))
    write_json(
        run_dir / "run.json",
        {
            "transformer_mt": transformer_mt.__version__,
            "python": platform.python_version(),
            **_arithmetic(),
            "command": shlex.join(["transformer-mt", *sys.argv[1:]]),
            **facts,
        },
    )
