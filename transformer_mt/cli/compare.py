"""`transformer-mt compare`: systems side by side, runs or plain text, with significance, buckets and cost.

Parses flags, reads plain files, prints and writes; what is about runs is `compare_runs`, all numbers come
from `evaluation`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from transformer_mt.cli.model_flags import add_model_arguments
from transformer_mt.cli.stream_output import StreamOutput
from transformer_mt.cli.system_names import NamedSystem, distinct, parse_scores, parse_system
from transformer_mt.errors import EXIT_OK, ConfigError, DataError

if TYPE_CHECKING:
    from transformer_mt.evaluation.buckets import TrainingWords
    from transformer_mt.evaluation.compare import Output
    from transformer_mt.evaluation.comparison import Comparison, System

HELP = "compare systems, runs or plain text, against the first of them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `compare` takes; the decoding flags default to each run's recipe."""
    parser.add_argument(
        "runs",
        metavar="[NAME=]RUN[,RUN...]",
        nargs="*",
        help="a system: a run directory, or several with other seeds; the first is what the others are "
        "measured against",
    )
    parser.add_argument(
        "--test", metavar="NAME", action="append", help="only this data.test name, or valid; may be repeated"
    )
    parser.add_argument(
        "--data-root",
        metavar="FOLDER",
        help="where test sets and training text are now, if not where they were in training",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="write report.html and report.json here (default: only the table on stdout; translations of "
        "runs are always kept in RUN/evaluation/)",
    )
    files = parser.add_argument_group(
        "plain text, alone or beside runs, whose test set is then the reference"
    )
    files.add_argument(
        "--hyp",
        metavar="[NAME=]FILE[,FILE...]",
        action="append",
        default=[],
        help="a system: its translations, one per line, not tokenised; may be repeated",
    )
    files.add_argument("--ref", metavar="FILE", nargs="+", help="references: one file per stream")
    files.add_argument("--src", metavar="FILE", help="sources: for lengths, copies and examples")
    files.add_argument("--lang", help="language of references and translations")
    files.add_argument("--src-lang", help="language of the sources")
    files.add_argument(
        "--train", metavar="FILE", nargs="+", help="target side of the training text, for BLEU by rare words"
    )
    files.add_argument(
        "--scores",
        metavar="METRIC[:lower]=FILE",
        action="append",
        default=[],
        help="segment scores of another metric: tab-separated, the first line names the systems, then a row "
        "of numbers for every line; METRIC:lower or METRIC:higher says which is better where the name does "
        "not tell; may be repeated",
    )
    add_model_arguments(parser, nbest=False)


def run(args: argparse.Namespace) -> int:
    """Compare, print, and write the report where one is asked for."""
    named = [parse_system(word) for word in (*args.runs, *args.hyp)]
    if len(named) < 2:
        raise ConfigError(
            "compare: name at least two systems: run directories, or --hyp FILE with --ref FILE and --lang"
        )
    named = distinct(named)
    folder = _usable_folder(args.output)
    runs, texts = named[: len(args.runs)], named[len(args.runs) :]
    comparison = _compare_runs(runs, texts, args) if runs else _compare_files(texts, args)

    from transformer_mt.evaluation.table import format_comparison

    StreamOutput(None).write([], format_comparison(comparison).encode("utf-8", "replace"))
    if folder is not None:
        _write(comparison, folder)
    return EXIT_OK


def _usable_folder(output: str | None) -> Path | None:
    """The folder of the report, which must take files before any work is done."""
    if output is None:
        return None
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--output {output}: is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return folder


def _write(comparison: Comparison, folder: Path) -> None:
    from transformer_mt.evaluation.comparison import to_json
    from transformer_mt.evaluation.report import write_report
    from transformer_mt.json_file import write_text

    write_text(folder / "report.json", to_json(comparison) + "\n")
    write_report(comparison, folder / "report.html")
    print(f"transformer-mt: written: {folder / 'report.html'} and {folder / 'report.json'}", file=sys.stderr)


def _compare_files(named: Sequence[NamedSystem], args: argparse.Namespace) -> Comparison:
    """Plain text against plain references."""
    if missing := [name for name in ("ref", "lang") if not getattr(args, name)]:
        raise ConfigError(f"compare: plain text needs --hyp, --ref and --lang, but --{missing[0]} is missing")
    if extra := [name for name in ("test", "data_root") if getattr(args, name)]:
        raise ConfigError(f"compare: --{extra[0].replace('_', '-')} is about runs, but none is named")
    _check_flags_of_models(args)
    from transformer_mt.evaluation.buckets import training_words
    from transformer_mt.evaluation.compare import SetTexts, compare_set
    from transformer_mt.evaluation.comparison import Comparison
    from transformer_mt.evaluation.significance import how
    from transformer_mt.text.lines import read_lines

    references = [list(read_lines(path)) for path in args.ref]
    sources = None if args.src is None else list(read_lines(args.src))
    expected = (args.ref[0], len(references[0]))
    for path, lines in [*zip(args.ref, references, strict=True), (args.src, sources)]:
        if lines is not None:
            _check_lines(path, lines, *expected)
    outputs = [_read_output(one, *expected) for one in named]
    segments = _read_segments(args.scores, named, expected[1])
    training: TrainingWords | str = "left out, because no training text is named (--train)"
    if args.train:
        lines_of_training = (line for path in args.train for line in read_lines(path))
        training = training_words(", ".join(args.train), lines_of_training, references[0])
    texts = SetTexts(Path(args.ref[0]).name, sources, references)
    systems = tuple(_text_system(one) for one in named)
    return Comparison(
        src_lang=args.src_lang or "",
        tgt_lang=args.lang,
        systems=systems,
        sets=(compare_set(texts, segments.with_outputs(outputs), args.lang, training, segments.lower),),
        significance=how(systems),
    )


def _check_flags_of_models(args: argparse.Namespace) -> None:
    """Refuse what would change nothing about texts that are there already."""
    parser = argparse.ArgumentParser()
    add_model_arguments(parser, nbest=False)
    for name, value in vars(parser.parse_args([])).items():
        if getattr(args, name) != value:
            raise ConfigError(f"compare: --{name.replace('_', '-')} is about runs, but none is named")


def _compare_runs(
    named: Sequence[NamedSystem], texts: Sequence[NamedSystem], args: argparse.Namespace
) -> Comparison:
    """Runs on their test sets, and plain text beside them."""
    if extra := [name for name in ("ref", "src", "lang", "src_lang", "train") if getattr(args, name)]:
        raise ConfigError(
            f"compare: --{extra[0].replace('_', '-')} is for plain text alone; runs know their own texts"
        )
    from transformer_mt.cli import compare_runs
    from transformer_mt.evaluation.compare import SetTexts, compare_set
    from transformer_mt.evaluation.comparison import Comparison
    from transformer_mt.evaluation.run_facts import cost_warnings, time_to_bleu
    from transformer_mt.evaluation.significance import how

    opened, sets = compare_runs.open_systems([(one.name, one.paths) for one in named], args)
    if len(sets) > 1 and (texts or args.scores):
        raise ConfigError(
            f"compare: --{'hyp' if texts else 'scores'} is about one set, but the runs have "
            f"{', '.join(sets)}; choose one with --test NAME"
        )
    first_set, pairs = next(iter(sets.items()))
    plain = [_read_output(one, f"test set {first_set}", len(pairs)) for one in texts]
    segments = _read_segments(args.scores, [*named, *texts], len(pairs))
    evaluated = compare_runs.evaluate_runs(opened, sets, args)
    data = opened[0].runs[0].recipe.data
    references = {name: [target for _, target in pairs] for name, pairs in sets.items()}
    training = compare_runs.training_words(opened[0].runs[0], [*chain.from_iterable(references.values())])
    systems = [compare_runs.describe(*one) for one in zip(opened, evaluated, strict=True)]
    compared = []
    for name, pairs in sets.items():
        outputs = [
            compare_runs.output(system.name, name, runs)
            for system, runs in zip(opened, evaluated, strict=True)
        ]
        set_texts = SetTexts(name, [source for source, _ in pairs], [references[name]])
        everything = segments.with_outputs([*outputs, *plain])
        compared.append(compare_set(set_texts, everything, data.tgt_lang, training, segments.lower))
    everyone = [*systems, *map(_text_system, texts)]
    return Comparison(
        src_lang=data.src_lang,
        tgt_lang=data.tgt_lang,
        systems=tuple(everyone),
        sets=tuple(compared),
        significance=how(everyone),
        warnings=(*compare_runs.warnings(opened, evaluated), *cost_warnings(systems)),
        time_to_bleu=time_to_bleu(everyone),
        attention=compare_runs.attention(sets, evaluated),
    )


def _read_output(one: NamedSystem, what: str, count: int) -> Output:
    """The texts of a system that must have as many lines as `what`."""
    from transformer_mt.evaluation.compare import Output
    from transformer_mt.text.lines import read_lines

    seeds = [list(read_lines(path)) for path in one.paths]
    for path, lines in zip(one.paths, seeds, strict=True):
        _check_lines(path, lines, what, count)
    return Output(one.name, seeds)


def _check_lines(path: str, lines: Sequence[str], what: str, count: int) -> None:
    if len(lines) != count:
        raise DataError(
            f"{path}: has {len(lines)} lines, but {what} has {count}; line N of both must belong together"
        )
    if not count:
        raise DataError(f"{path}: is empty; there is nothing to compare")


def _text_system(one: NamedSystem) -> System:
    from transformer_mt.evaluation.comparison import System

    return System(one.name, "text", one.paths)


class _Segments(NamedTuple):
    """Scores of outside metrics."""

    columns: dict[str, dict[str, list[float]]]
    """Metric -> system -> a score for every line."""
    lower: set[str]
    """The metrics that are better the lower they are."""

    def with_outputs(self, outputs: Sequence[Output]) -> list[Output]:
        """The outputs, each with its scores."""
        return [
            replace(one, segments={metric: column[one.name] for metric, column in self.columns.items()})
            for one in outputs
        ]


def _read_segments(words: Sequence[str], named: Sequence[NamedSystem], count: int) -> _Segments:
    """The tables that `--scores` names."""
    from transformer_mt.evaluation.scores import LABELS
    from transformer_mt.evaluation.segment_scores import read_segment_scores

    found = _Segments({}, set())
    for word in words:
        metric, lower, path = parse_scores(word)
        if metric in found.columns or metric in LABELS or metric in LABELS.values():
            raise ConfigError(f"--scores {word}: there is a metric {metric} already; name it differently")
        found.columns[metric] = read_segment_scores(path, [one.name for one in named], count)
        if lower:
            found.lower.add(metric)
    return found
