"""A trial -> what was measured of it, on disk; used again while nothing that it depends on has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel

from transformer_mt import __version__
from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import read_json, write_json
from transformer_mt.runtime.device import machine_name
from transformer_mt.studies.measures import measure
from transformer_mt.studies.study import Study, Trial
from transformer_mt.studies.values import Columns, from_columns, to_columns
from transformer_mt.studies.verdicts import Value

_REMEDY = "delete it to measure anew"


@dataclass(frozen=True)
class MadeOn:
    """Where numbers were measured."""

    machine: str
    threads: int
    torch: str
    """Its version."""


class _Stored(BaseModel):
    """What stands in a file besides what the numbers depend on."""

    made_on: MadeOn
    values: list[Columns]


def measure_trial(study: Study, trial: Trial, device: torch.device, *, finished: bool) -> None:
    """Measure a trial in this process and write what came out.

    Args:
        finished: whether its training came to a good end; see `measures.measure`.
    """
    path = _path(study, trial)
    path.parent.mkdir(parents=True, exist_ok=True)
    measured = measure(trial.recipe, study.section.measure, device, finished=finished)
    values = [asdict(columns) for columns in to_columns(measured)]
    made_on = asdict(MadeOn(machine_name(), torch.get_num_threads(), torch.__version__))
    write_json(path, {**_depends_on(study, trial), "made_on": made_on, "values": values})


def is_measured(study: Study, trial: Trial) -> bool:
    """Whether the numbers of a trial stand there, made of what is there now."""
    stored = read_json(_path(study, trial), _REMEDY) or {}
    now = _depends_on(study, trial)
    return {key: stored.get(key) for key in now} == now


def read_values(study: Study) -> Iterator[Value]:
    """All numbers of all trials that are measured; numbers of an earlier recipe or training are none.

    Raises:
        CheckpointError: a file is damaged.
    """
    for _, values in _read(study):
        yield from values


def made_on(study: Study) -> list[MadeOn]:
    """The different machines, threads and versions of torch that measured."""
    return list(dict.fromkeys(made_on for made_on, _ in _read(study)))


def _read(study: Study) -> Iterator[tuple[MadeOn, list[Value]]]:
    for trial in study.trials:
        if not is_measured(study, trial):
            continue
        path = _path(study, trial)
        try:
            stored = _Stored.model_validate(read_json(path, _REMEDY))
            measured = [one for columns in stored.values for one in from_columns(columns)]
        except ValueError:
            raise CheckpointError(f"{path}: is not what a study wrote; {_REMEDY}") from None
        yield stored.made_on, [Value(trial.variant, trial.seed, one) for one in measured]


def _path(study: Study, trial: Trial) -> Path:
    return study.run_dir / "measured" / f"{trial.name}.json"


def _depends_on(study: Study, trial: Trial) -> Mapping[str, Any]:
    """What the numbers of a trial are made of."""
    return {
        "version": __version__,
        "recipe": trial.recipe.model_dump(mode="json"),
        "measure": study.section.measure.model_dump(mode="json"),
        "latest": read_json(trial.run_dir / "latest.json"),
        "best": read_json(trial.run_dir / "best.json"),
    }
