"""A trial -> what was measured of it, on disk; used again while nothing that it depends on has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from transformer_mt import __version__
from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import read_json, write_json
from transformer_mt.runtime.device import machine_name
from transformer_mt.studies.measures import measure
from transformer_mt.studies.study import Study, Trial
from transformer_mt.studies.values import Measured
from transformer_mt.studies.verdicts import Value


def measure_trial(study: Study, trial: Trial, device: torch.device, *, finished: bool) -> None:
    """Measure a trial in this process and write what came out.

    Args:
        finished: whether its training came to a good end; see `measures.measure`.
    """
    path = _path(study, trial)
    path.parent.mkdir(parents=True, exist_ok=True)
    values = [
        {"metric": one.metric, "at": dict(one.at), "value": one.value}
        for one in measure(trial.recipe, study.section.measure, device, finished=finished)
    ]
    made_on = {"machine": machine_name(), "threads": torch.get_num_threads(), "torch": torch.__version__}
    write_json(path, {**_depends_on(study, trial), "made_on": made_on, "values": values})


def is_measured(study: Study, trial: Trial) -> bool:
    """Whether the numbers of a trial stand there, made of what is there now."""
    stored = read_json(_path(study, trial)) or {}
    now = _depends_on(study, trial)
    return {key: stored.get(key) for key in now} == now


def read_values(study: Study) -> Iterator[Value]:
    """All numbers of all trials that were measured.

    Raises:
        CheckpointError: a file is damaged.
    """
    for trial in study.trials:
        path = _path(study, trial)
        for row in (read_json(path) or {}).get("values", ()):
            try:
                yield Value(trial.variant, trial.seed, Measured(row["metric"], row["value"], row["at"]))
            except (KeyError, TypeError):
                raise CheckpointError(
                    f"{path}: is not what a study wrote; delete it to measure anew"
                ) from None


def made_on(study: Study) -> list[dict[str, Any]]:
    """The different machines, threads and versions of torch that measured."""
    found: list[dict[str, Any]] = []
    for trial in study.trials:
        facts = (read_json(_path(study, trial)) or {}).get("made_on")
        if facts is not None and facts not in found:
            found.append(facts)
    return found


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
