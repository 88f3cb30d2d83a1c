"""`study`: train the variants of a study, each in a process of its own, tell what came out, and compare."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_mt.cli.stream_output import show
from transformer_mt.errors import EXIT_OK, ConfigError, DivergenceError

if TYPE_CHECKING:
    from transformer_mt.studies.study import Study, Trial
    from transformer_mt.studies.trials import Result

HELP = "train variants of a recipe and compare them; the same command again continues where it stopped"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of this verb."""
    parser.add_argument("study", metavar="FILE", help="YAML study: recipe, variants and their overrides")
    parser.add_argument(
        "overrides",
        metavar="KEY=VALUE",
        nargs="*",
        help="recipe keys to override in all variants; run_dir, seeds and compare are the study's",
    )
    parser.add_argument("--device", help="cpu, cuda or cuda:N (default: a GPU where there is one)")
    parser.add_argument(
        "--list", action="store_true", help="print the runs, what is special about each and how far it is"
    )


def run(args: argparse.Namespace) -> int:
    """Train and compare. Returns 0, the exit code of the first run that failed, or 130/143 when stopped."""
    from transformer_mt.studies.study import load_study

    study = load_study(args.study, args.overrides)

    from transformer_mt.studies.child import Stopped
    from transformer_mt.studies.trials import as_table, check_old_runs, read_exit_codes, read_results
    from transformer_mt.training.run_directory import belongs_to_run, locked

    if belongs_to_run(study.run_dir):
        raise ConfigError(f"run_dir {study.run_dir}: is the directory of a single run; name another run_dir")
    check_old_runs(study.trials)
    if args.list:
        show(as_table(read_results(study, read_exit_codes(study))))
        return EXIT_OK
    with locked(study.run_dir):
        try:
            if code := _prepare(study):
                return code
            results = _train(study, args.device)
        except Stopped as stop:
            _say("stopped; what was trained is saved, and the same command continues")
            return stop.exit_code
        show(as_table(results))
        _say(f"written: {study.run_dir / 'trials.tsv'} and {study.run_dir / 'study.json'}")
        if study.compare:
            _compare(study, results, args.device)
    failed = [one for one in results if one.state in ("diverged", "failed")]
    if not failed:
        return EXIT_OK
    # A run may come to its end with a model that is worse than guessing.
    codes = [one.exit_code or DivergenceError.exit_code for one in failed]
    names = ", ".join(
        f"{Path(one.run_dir).name} ({one.state}, exit code {code})"
        for one, code in zip(failed, codes, strict=True)
    )
    _say(f"{len(failed)} of {len(results)} runs came to no good end: {names}")
    return codes[0]


def _prepare(study: Study) -> int:
    """Prepare each of the data that trials ask for, once; returns the exit code of the first that fails.

    What cannot be read or prepared shows before anything is trained.
    """
    from transformer_mt.studies.child import run_verb

    asked: dict[str, Trial] = {}
    for trial in study.trials:
        recipe = trial.recipe
        asked.setdefault(recipe.data.model_dump_json() + recipe.tokenizer.model_dump_json(), trial)
    codes = (run_verb(["prepare", *trial.words]) for trial in asked.values())
    return next((code for code in codes if code), EXIT_OK)


def _train(study: Study, device: str | None) -> list[Result]:
    """Train all trials, one after the other; one that fails does not stop the others."""
    from transformer_mt.studies.child import run_verb
    from transformer_mt.studies.trials import has_diverged, read_exit_codes, read_results, write_results
    from transformer_mt.training.run_directory import locked

    flags = [] if device is None else ["--device", device]
    exit_codes = read_exit_codes(study)
    for number, trial in enumerate(study.trials, start=1):
        if has_diverged(trial, exit_codes):
            _say(f"{trial.name}: has diverged with these settings; remove {trial.run_dir} to train it anew")
            continue
        _say(f"{number} of {len(study.trials)}: {trial.name}")
        with locked(trial.run_dir):
            pass  # a run left behind by a killed study: better to stop here than to train beside it
        exit_codes.pop(str(trial.run_dir), None)
        try:
            exit_codes[str(trial.run_dir)] = run_verb(["train", *trial.words, *flags])
        finally:
            write_results(study, read_results(study, exit_codes))
    return read_results(study, exit_codes)


def _compare(study: Study, results: Sequence[Result], device: str | None) -> None:
    """Compare the variants on the runs that have come to their end; the seeds of a variant are one system."""
    from transformer_mt.cli import compare

    runs: dict[str, list[str]] = {}
    for result in results:
        if result.state == "finished":
            runs.setdefault(result.variant, []).append(result.run_dir)
    if len(runs) < 2:
        for old in ("report.html", "report.json"):  # of runs that no longer stand here as they were
            (study.run_dir / old).unlink(missing_ok=True)
        _say(f"nothing to compare: {' and '.join(runs) or 'no variant'} alone has come to its end")
        return
    parser = argparse.ArgumentParser()
    compare.add_arguments(parser)
    words = [f"{variant}={','.join(seeds)}" for variant, seeds in runs.items()]
    flags = [] if device is None else ["--device", device]
    show()
    compare.run(parser.parse_args([*words, "--output", str(study.run_dir), *flags]))


def _say(message: str) -> None:
    print(f"transformer-mt: study: {message}", file=sys.stderr)
