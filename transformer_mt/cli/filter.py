"""`filter`: the pairs of a recipe's training text that are translations of each other, and scores of all.

Parses and calls; what is done stands in `filter_corpus`.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from transformer_mt.cli.model_flags import path_word
from transformer_mt.errors import EXIT_OK, ConfigError

HELP = "drop what is no translation from the training text of a recipe"
_DEFAULT_UPDATES = 4000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("recipe", metavar="RECIPE", help="YAML file; data.train is what is cleaned")
    parser.add_argument("overrides", metavar="key=value", nargs="*", help="values laid over the recipe's")
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=path_word,
        required=True,
        help="new folder for clean.SRC and clean.TGT, the languages of the recipe, and scores.tsv: line "
        "(counted through all sources), score, `kept` or `dropped`, and why",
    )
    parser.add_argument(
        "--threshold",
        type=_finite,
        metavar="X",
        help="keep pairs that score above this, in log-odds (default: 0, rather a translation than none)",
    )
    parser.add_argument("--keep", type=_share, metavar="SHARE", help="keep this share of all pairs, the best")
    parser.add_argument(
        "--updates",
        type=_count,
        default=_DEFAULT_UPDATES,
        metavar="N",
        help="training of each of the two classifiers (default: %(default)s)",
    )
    parser.add_argument("--device", help="cpu, cuda or cuda:N (default: a GPU where there is one)")


def _finite(word: str) -> float:
    return _number(word, math.isfinite, "a number")


def _share(word: str) -> float:
    return _number(word, lambda value: 0.0 < value <= 1.0, "above 0 and at most 1")


def _number(word: str, fits: Callable[[float], bool], wanted: str) -> float:
    with contextlib.suppress(ValueError):
        if fits(float(word)):
            return float(word)
    raise argparse.ArgumentTypeError(f"{word}: must be {wanted}")


def _count(word: str) -> int:
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word}: must be a whole number from 1 on")
    return int(word)


def run(args: argparse.Namespace) -> int:
    """Judge every pair, write what is kept."""
    from transformer_mt.cli.filter_corpus import judge, say, write_cleaned
    from transformer_mt.data.prepare import prepare
    from transformer_mt.recipe import load_recipe
    from transformer_mt.runtime.device import pick_device, set_up_process

    if args.keep is not None and args.threshold is not None:
        raise ConfigError("--keep, --threshold: each says which pairs stay; give one of them")
    _refuse_existing(args.output)
    recipe = load_recipe(args.recipe, args.overrides)
    set_up_process()
    device = pick_device(args.device)
    prepared = prepare(recipe)
    reasons, scores = judge(
        recipe, prepared, updates=args.updates, device=device, threshold=args.threshold or 0.0, keep=args.keep
    )
    write_cleaned(Path(os.path.realpath(args.output)), recipe, reasons, scores)
    dropped = Counter(filter(None, reasons))
    parts = ", ".join(f"{number} {reason}" for reason, number in dropped.most_common())
    say(f"kept {len(reasons) - dropped.total()} of {len(reasons)} pairs; dropped: {parts or 'none'}")
    return EXIT_OK


def _refuse_existing(output: str) -> None:
    """A folder is made anew, as a whole; nothing is mixed with what an earlier command left."""
    folder = Path(output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"--output {output}: exists already; remove it, or name another folder")
    parent = Path(os.path.realpath(folder)).parent
    if not parent.is_dir():
        raise ConfigError(f"--output {output}: there is no folder {parent}; create it first")
    with tempfile.TemporaryDirectory(prefix=".writable", dir=parent):
        pass  # better to fail here than after all has been judged
