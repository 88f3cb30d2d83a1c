"""`transformer-mt evaluate`: translate the test sets of a run and score them, or score plain files.

Parses flags, reads, prints and writes; translating is `decoding.translator`, scoring `evaluation.scores`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from transformer_mt.cli.translate import add_model_arguments, load_translator, refuse_overwriting
from transformer_mt.config import EvaluationConfig, Recipe
from transformer_mt.errors import EXIT_OK, ConfigError

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Translator
    from transformer_mt.evaluation.scores import Score

HELP = "translate and score the test sets of a run, or score plain text files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `evaluate` takes; the decoding flags default to the run's recipe."""
    parser.add_argument("run_dir", metavar="RUN", nargs="?", help="run directory")
    parser.add_argument(
        "--test", metavar="NAME", action="append", help="only this data.test name, or valid; may be repeated"
    )
    parser.add_argument(
        "--data-root",
        metavar="FOLDER",
        help="where the test sets are now, if not where they were in training",
    )
    files = parser.add_argument_group("plain files instead of a run")
    files.add_argument("--hyp", metavar="FILE", help="translations, one per line, not tokenised")
    files.add_argument("--ref", metavar="FILE", nargs="+", help="references: one file per stream")
    files.add_argument("--json", metavar="FILE", help="write the scores here too")
    files.add_argument("--lang", help="language of the texts (zh, ja and ko have their own BLEU tokenizers)")
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Score a run or files."""
    if args.hyp or args.ref or args.lang:
        return _score_files(args)
    if not args.run_dir:
        raise ConfigError("evaluate: name a run directory, or --hyp FILE --ref FILE --lang LANGUAGE")
    return _score_run(args)


def _score_files(args: argparse.Namespace) -> int:
    from transformer_mt.evaluation.scores import score
    from transformer_mt.text.lines import read_lines

    if args.run_dir or args.test:
        raise ConfigError("evaluate: give either a run, or --hyp, --ref and --lang, not both")
    missing = [name for name in ("hyp", "ref", "lang") if not getattr(args, name)]
    if missing:
        raise ConfigError(
            f"evaluate: plain files need --hyp, --ref and --lang, but --{missing[0]} is missing"
        )
    refuse_overwriting("--json", args.json, [args.hyp, *args.ref])
    hypotheses = list(read_lines(args.hyp))
    references = [list(read_lines(path)) for path in args.ref]
    scores = score(hypotheses, references, EvaluationConfig().metrics, args.lang)
    _print_table(args.hyp, len(hypotheses), scores)
    if args.json:
        report = {
            "hypotheses": args.hyp,
            "references": args.ref,
            "sentences": len(hypotheses),
            "scores": [asdict(one) for one in scores],
        }
        _write_json(args.json, report)
    return EXIT_OK


def _score_run(args: argparse.Namespace) -> int:
    from transformer_mt.checkpoint import STATE, find_checkpoint, read_recipe, verify

    folder = find_checkpoint(args.run_dir, args.checkpoint)
    verify(folder, unread=STATE)
    recipe = read_recipe(folder)
    if args.data_root:
        data = recipe.data.model_copy(update={"root": args.data_root})
        recipe = recipe.model_copy(update={"data": data})
    sets = _chosen_sets(recipe, args.test)
    # All texts are read before anything is translated: a missing file shows at once.
    texts = {name: _read_set(sources, recipe) for name, sources in sets.items()}
    from transformer_mt.training.model_card import write_model_card

    (Path(args.run_dir) / "evaluation").mkdir(exist_ok=True)
    translator = load_translator(args)
    for name, pairs in texts.items():
        _evaluate_set(
            name, pairs, recipe=recipe, translator=translator, folder=folder, run=Path(args.run_dir)
        )
    write_model_card(Path(args.run_dir))
    return EXIT_OK


def _chosen_sets(recipe: Recipe, wanted: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Name of a set -> its sources."""
    known = {name: (name,) for name in recipe.data.test} | {"valid": recipe.data.valid}
    if not wanted:
        if not recipe.data.test:
            raise ConfigError("evaluate: the recipe of this run names no data.test; use --test valid")
        return {name: known[name] for name in recipe.data.test}
    for name in wanted:
        if name not in known:
            raise ConfigError(f"--test {name}: this run's recipe has {', '.join(known)}")
    return {name: known[name] for name in wanted}


def _read_set(sources: Sequence[str], recipe: Recipe) -> list[tuple[str, str]]:
    from transformer_mt.text.corpus import read_pairs

    data = recipe.data
    root = data.root or "."
    return [pair for source in sources for pair in read_pairs(source, root, data.src_lang, data.tgt_lang)]


def _evaluate_set(
    name: str,
    pairs: list[tuple[str, str]],
    *,
    recipe: Recipe,
    translator: Translator,
    folder: Path,
    run: Path,
) -> None:
    """Translate, score, print and write one set."""
    from transformer_mt.checkpoint import read_json
    from transformer_mt.evaluation.scores import score
    from transformer_mt.text.lines import write_lines

    start = time.perf_counter()
    translations = translator.translate([source for source, _ in pairs])
    seconds = time.perf_counter() - start
    hypotheses = [translation.text for translation in translations]
    scores = score(
        hypotheses, [[target for _, target in pairs]], recipe.evaluation.metrics, recipe.data.tgt_lang
    )
    _print_table(name, len(pairs), scores)
    scalars = read_json(folder / "state.json") or {}
    report: dict[str, Any] = {
        "set": name,
        "scores": [asdict(one) for one in scores],
        "sentences": len(pairs),
        "at_length_limit": sum(translation.at_limit for translation in translations),
        "seconds": round(seconds, 3),
        "sentences_per_second": round(len(pairs) / seconds, 2),
        "checkpoint": folder.name,
        "step": scalars.get("step"),
        "device": str(translator.device),
        "workers": translator.num_workers,
        "shortlist": translator.shortlist_size,
        "decoding": translator.decoding.model_dump(),
    }
    target = run / "evaluation" / quote(name, safe="")
    write_lines(f"{target}.txt", hypotheses)
    _write_json(f"{target}.json", report)
    print(f"transformer-mt: written: {target}.txt and {target}.json", file=sys.stderr)


def _write_json(path: str, report: dict[str, Any]) -> None:
    from transformer_mt.text.lines import write_lines

    write_lines(path, json.dumps(report, indent=1, ensure_ascii=False).split("\n"))


def _print_table(name: str, sentences: int, scores: Sequence[Score]) -> None:
    from transformer_mt.evaluation.scores import LABELS

    print(f"{name} ({sentences} lines)")
    for one in scores:
        print(f"  {LABELS[one.name]:8} {one.value:6.2f}  {one.signature}")
    sys.stdout.flush()
