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
    parser.add_argument(
        "--quick",
        action="store_true",
        help="the small size of the study: shows in seconds that all of it works",
    )
    parser.add_argument("--device", help="cpu, cuda or cuda:N (default: a GPU where there is one)")
    parser.add_argument(
        "--measure",
        metavar="TRIAL",
        help="measure one trial, named as in --list, in this process and no more: the study does so for each",
    )
    parser.add_argument(
        "--list", action="store_true", help="print the runs, what is special about each and how far it is"
    )


def run(args: argparse.Namespace) -> int:
    """Train and compare. Returns 0, the exit code of the first run that failed, or 130/143 when stopped."""
    from transformer_mt.studies.study import load_study

    study = load_study(args.study, args.overrides, quick=args.quick)

    from transformer_mt.studies.child import Stopped
    from transformer_mt.studies.trials import (
        as_table,
        check_old_runs,
        read_exit_codes,
        read_results,
        write_results,
    )
    from transformer_mt.training.run_directory import belongs_to_run, locked

    if belongs_to_run(study.run_dir):
        raise ConfigError(f"run_dir {study.run_dir}: is the directory of a single run; name another run_dir")
    check_old_runs(study.trials)
    if args.list:
        show(as_table(read_results(study, read_exit_codes(study))))
        return EXIT_OK
    if args.measure is not None:
        return _measure_here(study, args.measure, args.device)
    with locked(study.run_dir):
        try:
            if study.section.train:
                if code := _prepare(study):
                    return code
                results = _train(study, args.device)
            else:
                results = read_results(study, read_exit_codes(study))
                write_results(study, results)
            unmeasured = _measure(study, results, args)
        except Stopped as stop:
            _say("stopped; what was trained is saved, and the same command continues")
            return stop.exit_code
        if study.section.train:
            show(as_table(results))
        if study.section.compare:
            _compare(study, results, args.device)
        _conclude(study, results)
    # A run may come to its end with a model that is worse than guessing.
    failed = {
        Path(one.run_dir).name: (one.state, one.exit_code or DivergenceError.exit_code)
        for one in results
        if one.state in ("diverged", "failed")
    }
    if failed:
        names = ", ".join(f"{name} ({state}, exit code {code})" for name, (state, code) in failed.items())
        _say(f"{len(failed)} of {len(results)} runs came to no good end: {names}")
    if unmeasured:
        names = ", ".join(f"{name} (exit code {code})" for name, code in unmeasured.items())
        _say(f"{len(unmeasured)} of {len(results)} runs could not be measured: {names}")
    return next((code for code in (*(code for _, code in failed.values()), *unmeasured.values())), EXIT_OK)


def _prepare(study: Study) -> int:
    """Prepare each of the data that trials ask for, once; returns the exit code of the first that fails.

    What cannot be read or prepared shows before anything is trained.
    """
    from transformer_mt.studies.child import run_verb

    asked: dict[str, Trial] = {}
    for trial in study.trials:
        recipe = trial.recipe
        asked.setdefault(repr((recipe.data, recipe.tokenizer)), trial)
    codes = (run_verb(["prepare", *trial.words]) for trial in asked.values())
    return next((code for code in codes if code), EXIT_OK)


def _train(study: Study, device: str | None) -> list[Result]:
    """Train all trials, one after the other; one that fails does not stop the others."""
    from transformer_mt.studies.child import run_verb
    from transformer_mt.studies.trials import has_diverged, read_exit_codes, read_results, write_results
    from transformer_mt.training.run_directory import locked

    flags = [] if device is None else ["--device", device]
    exit_codes = read_exit_codes(study)
    for number, trial in enumerate(_by_turns(study), start=1):
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


def _by_turns(study: Study) -> list[Trial]:
    """Every variant with the first seed, then with the next: what a machine does at a time falls on all."""
    return sorted(study.trials, key=lambda trial: trial.seed or 0)


def _measure(study: Study, results: Sequence[Result], args: argparse.Namespace) -> dict[str, int]:
    """Measure all trials, each in a process of its own. Returns name -> exit code of those that failed."""
    from transformer_mt.studies.child import run_verb
    from transformer_mt.studies.measured import is_measured

    if not study.section.measure.names:
        return {}
    failed = {}
    flags = [
        *(["--quick"] if args.quick else ()),
        *(() if args.device is None else ("--device", args.device)),
    ]
    states = {trial.name: result.state for trial, result in zip(study.trials, results, strict=True)}
    for trial in _by_turns(study):
        unfinished = study.section.train and states[trial.name] in ("failed", "begun")
        if unfinished or is_measured(study, trial):
            continue
        _say(f"measuring {trial.name}: {', '.join(study.section.measure.names)}")
        if code := run_verb(["study", args.study, *args.overrides, "--measure", trial.name, *flags]):
            failed[trial.name] = code
    return failed


def _measure_here(study: Study, name: str, device_name: str | None) -> int:
    """Measure one trial in this process."""
    from transformer_mt.runtime.device import pick_device, set_up_process
    from transformer_mt.studies.measured import measure_trial
    from transformer_mt.studies.trials import read_exit_codes, read_results

    names = [trial.name for trial in study.trials]
    if name not in names:
        raise ConfigError(f"--measure {name}: is no trial of {study.path}, which has {', '.join(names)}")
    if not study.section.measure.names:
        raise ConfigError(f"--measure {name}: {study.path} measures nothing; add `measure` to it")
    set_up_process()
    place = names.index(name)
    result = read_results(study, read_exit_codes(study))[place]
    finished = not study.section.train or result.state == "finished"
    measure_trial(study, study.trials[place], pick_device(device_name), finished=finished)
    return EXIT_OK


def _conclude(study: Study, results: Sequence[Result]) -> None:
    """Write what came out, the page of the study, and the page of all studies beside it."""
    from transformer_mt.studies.conclusion import conclude, measured_nowhere, verdict_table, write_conclusion
    from transformer_mt.studies.page import write_overview, write_page

    conclusion = conclude(study, results)
    write_conclusion(study.run_dir / "study.json", conclusion)
    write_page(conclusion, study.run_dir / "index.html")
    if conclusion.verdicts:
        show()
        show(verdict_table(conclusion))
    for line in dict.fromkeys(measured_nowhere(study, conclusion)):
        _say(f"warning: {line}")
    overview, unread = write_overview(study.run_dir.parent)
    for line in unread:
        _say(f"warning: not on the page of all studies: {line}")
    _say(f"written: {study.run_dir / 'study.json'}, {study.run_dir / 'index.html'} and {overview}")


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
