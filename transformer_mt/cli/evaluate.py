"""`transformer-mt evaluate`: translate the test sets of a run and score them, or score plain files.

Parses flags and prints; a set of a run is translated and written by `run_evaluation`, scored by
`evaluation.scores`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from transformer_mt.cli.model_flags import (
    add_model_arguments,
    load_translator,
    path_word,
    refuse_overwriting,
    run_dir,
)
from transformer_mt.cli.stream_output import show
from transformer_mt.config import EvaluationConfig
from transformer_mt.errors import EXIT_OK, ConfigError, DataError
from transformer_mt.run_evaluation import evaluate_set, open_run, read_sets, write_json

if TYPE_CHECKING:
    from transformer_mt.evaluation.scores import Score

HELP = "translate and score the test sets of a run, or score plain text files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `evaluate` takes; the decoding flags default to the run's recipe."""
    parser.add_argument("run_dir", metavar="RUN", type=run_dir, nargs="?", help="run directory")
    parser.add_argument(
        "--test", metavar="NAME", action="append", help="only this data.test name, or valid; may be repeated"
    )
    parser.add_argument(
        "--data-root",
        metavar="FOLDER",
        help="where the test sets are now, if not where they were in training",
    )
    files = parser.add_argument_group("plain files instead of a run")
    files.add_argument(
        "--hyp", metavar="FILE", type=path_word, help="translations, one per line, not tokenised"
    )
    files.add_argument(
        "--ref", metavar="FILE", type=path_word, nargs="+", help="references: one file per stream"
    )
    files.add_argument("--json", metavar="FILE", type=path_word, help="write the scores here too")
    files.add_argument("--lang", help="language of the texts (zh, ja and ko have their own BLEU tokenizers)")
    add_model_arguments(parser, nbest=False)


def run(args: argparse.Namespace) -> int:
    """Score a run or files."""
    if args.hyp or args.ref or args.lang:
        return _score_files(args)
    if not args.run_dir:
        raise ConfigError("evaluate: name a run directory, or --hyp FILE --ref FILE --lang LANGUAGE")
    return _score_run(args)


def _score_files(args: argparse.Namespace) -> int:
    from transformer_mt.evaluation.scores import score, tokenised_remark
    from transformer_mt.text.lines import read_lines
    from transformer_mt.text.presplit import count_presplit, presplit_note

    if args.run_dir or args.test:
        raise ConfigError("evaluate: give either a run, or --hyp, --ref and --lang, not both")
    missing = [name for name in ("hyp", "ref", "lang") if not getattr(args, name)]
    if missing:
        raise ConfigError(
            f"evaluate: plain files need --hyp, --ref and --lang, but --{missing[0]} is missing; add "
            + ("--lang and the code of their language, such as de" if missing == ["lang"] else "its FILE")
        )
    refuse_overwriting("--json", args.json, [args.hyp, *args.ref])
    hypotheses = list(read_lines(args.hyp))
    references = [list(read_lines(path)) for path in args.ref]
    for path, texts in zip(args.ref, references, strict=True):
        if len(texts) != len(hypotheses):
            raise DataError(
                f"{path}: has {len(texts)} lines, but {args.hyp} has {len(hypotheses)}; line by line they "
                "must be the same sentences: look where one was lost, joined or cut in two"
            )
    remarks = _remark_on_tokenizer(args.lang)
    for path, texts in zip([args.hyp, *args.ref], [hypotheses, *references], strict=True):
        remarks += _tell(presplit_note(count_presplit(texts), len(texts), f"lines of {path}"))
        remarks += _tell(tokenised_remark(path, texts))
    scores = score(hypotheses, references, EvaluationConfig().metrics, args.lang)
    _print_table(args.hyp, len(hypotheses), scores)
    if args.json:
        report = {
            "hypotheses": args.hyp,
            "references": args.ref,
            "sentences": len(hypotheses),
            "scores": [asdict(one) for one in scores],
            "remarks": remarks,
        }
        write_json(args.json, report)
    return EXIT_OK


def _score_run(args: argparse.Namespace) -> int:
    run = open_run(args.run_dir, args.checkpoint, args.data_root)
    # All texts are read before anything is translated: a missing file shows at once.
    texts = read_sets(run, args.test)
    from transformer_mt.training.model_card import write_model_card

    _remark_on_tokenizer(run.recipe.data.tgt_lang)
    translator = load_translator(args)
    for name, pairs in texts.items():
        evaluated = evaluate_set(run, name, pairs, translator)
        _print_table(name, len(pairs), evaluated.scores)
        for remark in evaluated.report["remarks"]:
            _tell(remark)
    write_model_card(run.path)
    return EXIT_OK


def _remark_on_tokenizer(language: str) -> list[str]:
    """Said before any work."""
    from transformer_mt.evaluation.scores import tokenizer_remark

    return _tell(tokenizer_remark(language))


def _tell(remark: str | None) -> list[str]:
    if remark:
        print(f"transformer-mt: warning: {remark}", file=sys.stderr)
    return [remark] if remark else []


def _print_table(name: str, sentences: int, scores: Sequence[Score]) -> None:
    from transformer_mt.evaluation.scores import LABELS

    show(f"{name} ({sentences} lines)")
    for one in scores:
        show(f"  {LABELS[one.name]:8} {one.value:6.2f}  {one.signature}")
