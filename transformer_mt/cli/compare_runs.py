"""The part of `compare` that is about runs: test sets, translations, references, costs and attention.

What has been translated before is read, the rest is translated now. Plain files are the matter of `compare`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformer_mt.cli.model_flags import decoding_flags, load_translator
from transformer_mt.errors import ConfigError, DataError
from transformer_mt.run_evaluation import (
    Evaluated,
    Run,
    add_to_evaluation,
    evaluate_sets,
    open_run,
    read_sets,
)

if TYPE_CHECKING:
    import torch

    from transformer_mt.checkpoint import LoadedRun
    from transformer_mt.evaluation.buckets import TrainingWords
    from transformer_mt.evaluation.compare import Output
    from transformer_mt.evaluation.comparison import AttentionExample, AttentionMap, System

Pairs = list[tuple[str, str]]
_NATS = "nats_per_char"


@dataclass(frozen=True)
class EvaluatedRun:
    """What a run made of every set, and where it looked while it translated the sentences that are shown: []
    where none are."""

    run: Run
    sets: dict[str, Evaluated]
    attention: list[AttentionMap | None]


@dataclass(frozen=True)
class RunSystem:
    """A system that is a run, or several runs with other seeds."""

    name: str
    runs: tuple[Run, ...]


def open_systems(
    named: Sequence[tuple[str, Sequence[str]]], args: argparse.Namespace
) -> tuple[list[RunSystem], dict[str, Pairs]]:
    """The runs, and the pairs of the sets that all of them are tested on.

    Args:
        named: name of each system and its run directories.

    Raises:
        ConfigError: runs that differ in languages or in the names of their test sets.
        DataError: runs that differ in the text of a test set.
    """
    systems = [
        RunSystem(name, tuple(open_run(path, args.checkpoint, args.data_root) for path in paths))
        for name, paths in named
    ]
    first, *others = (run for system in systems for run in system.runs)
    sets = read_sets(first, args.test)
    for other in others:
        _check_alike(first, other, named_sets=bool(args.test))
        theirs = read_sets(other, args.test)
        for name, pairs in sets.items():
            _check_same_text(name, first, pairs, other, theirs[name])
    return systems, sets


def _check_alike(first: Run, other: Run, *, named_sets: bool) -> None:
    ours, theirs = first.recipe.data, other.recipe.data
    if (ours.src_lang, ours.tgt_lang) != (theirs.src_lang, theirs.tgt_lang):
        raise ConfigError(
            f"{other.path}: translates {theirs.src_lang} to {theirs.tgt_lang}, but {first.path} "
            f"{ours.src_lang} to {ours.tgt_lang}; compare runs of one direction"
        )
    if not named_sets and set(ours.test) != set(theirs.test):
        raise ConfigError(
            f"{other.path}: its test sets are {', '.join(theirs.test) or 'none'}, but those of {first.path} "
            f"are {', '.join(ours.test)}; choose common ones with --test NAME"
        )


def _check_same_text(name: str, first: Run, ours: Pairs, other: Run, theirs: Pairs) -> None:
    if ours == theirs:
        return
    if len(ours) != len(theirs):
        how = f"has {len(theirs)} lines, but that of {first.path} has {len(ours)}"
    else:
        line = next(number for number, pair in enumerate(ours, start=1) if pair != theirs[number - 1])
        how = f"differs from that of {first.path} in line {line}"
    raise DataError(
        f"{other.path}: its test set {name} {how}; compare on one text (--data-root says where it is)"
    )


def evaluate_runs(
    systems: Sequence[RunSystem], sets: dict[str, Pairs], args: argparse.Namespace
) -> list[list[EvaluatedRun]]:
    """Translate what is not translated yet, measure the references, look at the attention.

    Returns:
        The runs of every system.
    """
    from transformer_mt.runtime.device import pick_device, set_up_process

    set_up_process()
    device = pick_device(args.device)
    return [[_evaluate(system.name, run, sets, args, device) for run in system.runs] for system in systems]


def shown_lines(sets: dict[str, Pairs]) -> tuple[str, list[int]]:
    """The set and the lines, from 0, whose attention is looked at."""
    from transformer_mt.evaluation.attention import moderate_lines

    name, pairs = next(iter(sets.items()))
    return name, moderate_lines([source for source, _ in pairs])


def _evaluate(
    system: str, run: Run, sets: dict[str, Pairs], args: argparse.Namespace, device: torch.device
) -> EvaluatedRun:
    from transformer_mt.checkpoint import load_run
    from transformer_mt.evaluation.attention import attention_map

    found = _translations(run, sets, args, device)
    unmeasured = [name for name, evaluated in found.items() if _NATS not in evaluated.report]
    if not unmeasured and args.output is None:
        return EvaluatedRun(run, found, [])
    loaded = load_run(run.folder, device=device)
    for name in unmeasured:
        nats = _nats(loaded, sets[name], device)
        found[name] = add_to_evaluation(run, name, found[name], **{_NATS: nats})
    if args.output is None:
        return EvaluatedRun(run, found, [])
    shown, lines = shown_lines(sets)
    texts = found[shown].hypotheses
    maps = [
        attention_map(
            system, loaded.model, loaded.tokenizers, sets[shown][line][0], texts[line], device=device
        )
        for line in lines
    ]
    return EvaluatedRun(run, found, maps)


def _translations(
    run: Run, sets: dict[str, Pairs], args: argparse.Namespace, device: torch.device
) -> dict[str, Evaluated]:
    """Those on disk where checkpoint, text and settings are as asked; all others are made and written."""
    from transformer_mt.recipe import parse_section

    settings: dict[str, object] = {
        "decoding": parse_section(decoding_flags(args), run.recipe.decoding).model_dump(),
        "shortlist": args.shortlist,
        "device": str(device),
    }
    if args.workers is not None:
        settings["workers"] = args.workers
    own = argparse.Namespace(**{**vars(args), "run_dir": str(run.path)})
    return evaluate_sets(run, sets, settings, lambda: load_translator(own))


def _nats(loaded: LoadedRun, pairs: Pairs, device: torch.device) -> float | None:
    from transformer_mt.training.validation import reference_loss

    loss = reference_loss(loaded.model, loaded.tokenizers, pairs, device)
    return loss.nats_per_char if loss is not None and math.isfinite(loss.nats_per_char) else None


def describe(system: RunSystem, runs: Sequence[EvaluatedRun]) -> System:
    """Cost and curve of every run of a system."""
    from transformer_mt.evaluation.comparison import System
    from transformer_mt.evaluation.run_facts import read_cost, read_curve

    steps = [next(iter(one.sets.values())).report.get("step") for one in runs]
    return System(
        name=system.name,
        kind="run",
        sources=tuple(str(run.path) for run in system.runs),
        cost=tuple(
            read_cost(run.path, run.recipe, step) for run, step in zip(system.runs, steps, strict=True)
        ),
        curve=tuple(read_curve(run.path) for run in system.runs),
    )


def output(name: str, set_name: str, runs: Sequence[EvaluatedRun]) -> Output:
    """What all runs of a system made of one set."""
    from statistics import fmean

    from transformer_mt.evaluation.compare import Output

    found = [run.sets[set_name] for run in runs]
    nats = [one.report[_NATS] for one in found if one.report[_NATS] is not None]
    return Output(
        name=name,
        seeds=[one.hypotheses for one in found],
        nats_per_char=fmean(nats) if len(nats) == len(found) else None,
        sentences_per_second=found[0].report["sentences_per_second"],
    )


def warnings(systems: Sequence[RunSystem], evaluated: Sequence[Sequence[EvaluatedRun]]) -> list[str]:
    """What the systems were not given alike: training text, and how they translated."""
    from transformer_mt.evaluation.run_facts import differing
    from transformer_mt.json_file import read_json

    def told(values: Iterable[Iterable[object]]) -> str:
        return differing(
            [(system.name, list(several)) for system, several in zip(systems, values, strict=True)]
        )

    def training_text(run: Run) -> str:
        pairs = (read_json(run.path / "run.json") or {}).get("training_pairs")
        return ", ".join(run.recipe.data.train) + (f" ({pairs:,} pairs)" if isinstance(pairs, int) else "")

    found = list(_mixed(systems))
    if what := told([training_text(run) for run in system.runs] for system in systems):
        found.append(f"trained on different text: {what}")
    if what := told([", ".join(run.recipe.data.valid) for run in system.runs] for system in systems):
        found.append(f"validated on different text, so curves and times to a BLEU are not comparable: {what}")
    settings = [[_settings(next(iter(one.sets.values())).report) for one in runs] for runs in evaluated]
    for key in settings[0][0]:
        if what := told([one[key] for one in several] for several in settings):
            found.append(f"translated with different {key}: {what}")
    return found


def _mixed(systems: Sequence[RunSystem]) -> Iterator[str]:
    """Systems whose runs differ in more than the seed: their mean is that of no system."""
    from transformer_mt.recipe import differences

    for system in systems:
        first, *others = (run.recipe for run in system.runs)
        allowed = {"run_dir", "training.seed", "data.root"}
        keys = {
            key: None
            for other in others
            for changes in differences(first, other)
            for key in changes
            if key not in allowed and not key.startswith(("decoding.", "evaluation."))
        }
        if keys:
            yield f"{system.name}: its runs differ in more than the seed: {', '.join(keys)}"


def _settings(report: dict[str, Any]) -> dict[str, Any]:
    """What translations and their speed depend on; None where an older version did not write it."""
    keys = ("device", "machine", "threads", "workers", "shortlist")
    return {**report["decoding"], **{key: report.get(key) for key in keys}}


def training_words(run: Run, references: Sequence[str]) -> TrainingWords | str:
    """The words of the references counted in the text that the run was trained on, or why they cannot be."""
    from transformer_mt.evaluation.buckets import training_words
    from transformer_mt.text.corpus import read_pairs

    data = run.recipe.data
    root = data.root or "."
    lines = (
        target
        for source in data.train
        for _, target in read_pairs(source, root, data.src_lang, data.tgt_lang)
    )
    try:
        return training_words(f"the training text of {run.path.name}", lines, references)
    except DataError as error:
        return f"left out, because the training text of {run.path} cannot be read: {error}"


def attention(
    sets: dict[str, Pairs], evaluated: Sequence[Sequence[EvaluatedRun]]
) -> tuple[AttentionExample, ...]:
    """The maps of the first run of every system, sentence by sentence."""
    from transformer_mt.evaluation.comparison import AttentionExample

    name, lines = shown_lines(sets)
    found = []
    for place, line in enumerate(lines):
        maps = [runs[0].attention[place] for runs in evaluated if runs[0].attention]
        known = tuple(one for one in maps if one is not None)
        if known:
            found.append(AttentionExample(name, line + 1, sets[name][line][0], known))
    return tuple(found)
