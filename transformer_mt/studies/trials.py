"""Run directories of trials -> what each came to: `study.json`, `trials.tsv` and a table for people.

All is read from what the runs wrote. Knows no model and no test set: settings are chosen on validation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from transformer_mt.errors import CheckpointError, ConfigError, DivergenceError
from transformer_mt.evaluation.comparison import CurvePoint
from transformer_mt.evaluation.run_facts import read_cost, read_curve
from transformer_mt.json_file import read_json, write_json, write_text
from transformer_mt.recipe import differences
from transformer_mt.studies.study import Study, Trial, value_text
from transformer_mt.training.run_directory import belongs_to_run, check_usable, stored_recipe

# Nats per token of a guess among the largest vocabulary there can be.
_GUESSING = math.log(2**31)


@dataclass(frozen=True)
class Result:
    """One row: a trial and what is known of it, None where nothing is. Costs of a run that has not come to
    its end are those until its last validation."""

    variant: str
    seed: int | None
    run_dir: str
    state: str
    """finished, diverged (by its exit code, or because it ended worse than guessing), failed, begun or not
    begun."""
    exit_code: int | None
    """Of the training that ended last; None where none has ended by itself."""
    special: dict[str, Any]
    """What the study says about this variant alone."""
    metric: str
    """Validation metric that chose the best checkpoint."""
    best: float | None
    best_step: int | None
    nll: float | None
    """Nats per target token in the last validation."""
    parameters: int | None
    updates: int | None
    target_tokens: int | None
    """Of all updates, padding not counted."""
    seconds: float | None
    """Wall time of training, validations included."""
    tokens_per_second: float | None
    """Target tokens per second of training, validations not included."""
    peak_gib: float | None


def check_old_runs(trials: Iterable[Trial]) -> None:
    """Find out before anything is trained that a trial's folder belongs to something else.

    Raises:
        ConfigError: one line for each such trial.
    """
    problems = []
    for trial in trials:
        try:
            check_usable(trial.run_dir, overwrite=False)
        except ConfigError as error:
            problems.append(str(error))
            continue
        if not belongs_to_run(trial.run_dir):
            continue
        _, refused = differences(stored_recipe(trial.run_dir), trial.recipe)
        if refused:
            changes = ", ".join(f"{key}: {old!r} -> {new!r}" for key, (old, new) in refused.items())
            problems.append(
                f"{trial.run_dir}: was trained with other settings ({changes}); use the old ones or another "
                "run_dir, or remove this folder to train it anew"
            )
    if problems:
        raise ConfigError("\n".join(problems))


def has_diverged(trial: Trial, exit_codes: Mapping[str, int | None]) -> bool:
    """Whether the trial diverged with these very settings: it would do so again.

    Args:
        exit_codes: see `read_exit_codes`.
    """
    if exit_codes.get(str(trial.run_dir)) != DivergenceError.exit_code or not belongs_to_run(trial.run_dir):
        return False
    return differences(stored_recipe(trial.run_dir), trial.recipe) == ({}, {})


def read_exit_codes(study: Study) -> dict[str, int | None]:
    """Run directory -> how its training ended when the study was here before.

    Raises:
        ConfigError: another study was.
        CheckpointError: study.json is damaged.
    """
    path = study.run_dir / "study.json"
    old = read_json(path) or {}
    if (other := Path(old.get("study", study.path)).name) != study.path.name:
        raise ConfigError(
            f"run_dir {study.run_dir}: belongs to the study {other}; name another run_dir, or remove {path} "
            "if the file has a new name"
        )
    try:
        return {row["run_dir"]: row["exit_code"] for row in old.get("trials", [])}
    except (KeyError, TypeError):
        raise CheckpointError(f"{path}: is not what a study wrote; delete it to go on without it") from None


def read_results(study: Study, exit_codes: Mapping[str, int | None]) -> list[Result]:
    """One row for each trial.

    Args:
        exit_codes: see `read_exit_codes`.
    """
    return [_read_result(trial, exit_codes.get(str(trial.run_dir))) for trial in study.trials]


def write_results(study: Study, results: Sequence[Result]) -> None:
    """Write `study.json` and `trials.tsv` into the study's directory."""
    facts = {
        "study": str(study.path),
        "compare": study.section.compare,
        "trials": [
            {**asdict(result), "overrides": {one.key: one.value for one in trial.overrides}}
            for trial, result in zip(study.trials, results, strict=True)
        ],
    }
    write_json(study.run_dir / "study.json", facts)
    names = [field.name for field in fields(Result)]
    rows = [names, *([_cell(getattr(result, name)) for name in names] for result in results)]
    write_text(study.run_dir / "trials.tsv", "".join("\t".join(row) + "\n" for row in rows))


def as_table(results: Sequence[Result]) -> str:
    """The results for people."""
    head = ["variant", "seed", "state", "metric", "best", "at step", "nll", "parameters", "updates"]
    head += ["target tokens", "minutes", "tokens/s", "peak GiB", "special"]
    rows = [
        [
            result.variant,
            _shown(result.seed),
            result.state,
            result.metric,
            _shown(result.best, ".2f" if result.metric in ("bleu", "chrf") else ".4f"),
            _shown(result.best_step, ","),
            _shown(result.nll, ".4f"),
            _shown(result.parameters, ","),
            _shown(result.updates, ","),
            _shown(result.target_tokens, ","),
            _shown(None if result.seconds is None else result.seconds / 60, ".1f"),
            _shown(result.tokens_per_second, ",.0f"),
            _shown(result.peak_gib, ".2f"),
            special_text(result.special),
        ]
        for result in results
    ]
    return align([head, *rows], left={0, 2, 3, 13})


def special_text(special: Mapping[str, Any]) -> str:
    """What is special about a variant, on one line."""
    return " ".join(f"{key}={value_text(value)}" for key, value in special.items())


def align(rows: Sequence[Sequence[str]], left: set[int]) -> str:
    """Columns of equal width; those that are not in `left` are numbers and end at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _read_result(trial: Trial, exit_code: int | None) -> Result:
    run_dir = trial.run_dir
    best = read_json(run_dir / "best.json") or {}
    cost, curve = read_cost(run_dir, trial.recipe, best.get("step")), read_curve(run_dir)
    return Result(
        variant=trial.variant,
        seed=trial.seed,
        run_dir=str(run_dir),
        state=_state(trial, exit_code, curve, finished=cost.finished),
        exit_code=exit_code,
        special=dict(trial.special),
        metric=trial.recipe.training.metric,
        best=best.get("value"),
        best_step=best.get("step"),
        nll=curve[-1].nll if curve else None,
        parameters=cost.parameters,
        updates=cost.updates,
        target_tokens=cost.target_tokens,
        seconds=cost.seconds,
        tokens_per_second=cost.tokens_per_second,
        peak_gib=cost.peak_gib,
    )


def _state(trial: Trial, exit_code: int | None, curve: Sequence[CurvePoint], *, finished: bool) -> str:
    if exit_code:
        return "diverged" if exit_code == DivergenceError.exit_code else "failed"
    if not belongs_to_run(trial.run_dir):
        return "not begun"
    if not finished:
        return "begun"
    nll = curve[-1].nll if curve else 0.0
    return "diverged" if nll is None or nll > _GUESSING else "finished"


def _shown(value: float | None, form: str = "") -> str:
    return "-" if value is None else format(value, form)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return special_text(value) if isinstance(value, dict) else str(value)
