"""The command line of `tools/plant_noise`: plants, or judges a filter."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from tools.command_line import Parser, one_line_errors
from tools.plant.planting import CLEAN, KINDS, plant
from transformer_mt.data.verdicts import training_text
from transformer_mt.errors import ConfigError, DataError
from transformer_mt.recipe import load_recipe
from transformer_mt.text.lines import read_lines, write_lines


def plant_files(args: argparse.Namespace) -> None:
    """Write the noisy corpus and what is wrong with each line of it.

    Raises:
        ConfigError: a share that is none, no folder to write to.
        DataError: text that cannot be used.
    """
    if not 0.0 <= args.share <= 1.0:
        raise ConfigError(f"--share {args.share}: must be from 0 to 1")
    if args.output is None or args.recipe is None:
        raise ConfigError("give RECIPE and --output DIR, or --judge PLANTED SCORES")
    recipe = load_recipe(args.recipe, args.overrides)
    planted = list(plant(list(training_text(recipe.data)), args.share, args.seed))
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    for side, language in enumerate((recipe.data.src_lang, recipe.data.tgt_lang)):
        write_lines(folder / f"noisy.{language}", (pair[side] for pair, _ in planted))
    lines = (f"{line}\t{kind}" for line, (_, kind) in enumerate(planted, start=1))
    write_lines(folder / "planted.tsv", lines)
    counts = Counter(kind for _, kind in planted)
    print(", ".join(f"{counts[kind]} {kind}" for kind in (CLEAN, *KINDS)))


def judge(planted: str, scores: str) -> list[str]:
    """A line for each kind, and precision and recall of what was dropped.

    Raises:
        DataError: the files are not about the same lines.
    """
    kinds = [line.split("\t")[1] for line in read_lines(planted)]
    dropped = [line.split("\t")[2] == "dropped" for line in read_lines(scores)]
    if len(kinds) != len(dropped):
        raise DataError(
            f"{planted} has {len(kinds)} lines but {scores} has {len(dropped)}; filter the noisy text"
        )
    all_of, found = Counter(kinds), Counter(kind for kind, gone in zip(kinds, dropped, strict=True) if gone)
    told = [
        f"{kind:>10}: {found[kind]} of {all_of[kind]} dropped, {found[kind] / all_of[kind]:.1%}"
        for kind in (CLEAN, *KINDS)
        if all_of[kind]
    ]
    noise, right = len(kinds) - all_of[CLEAN], sum(dropped) - found[CLEAN]
    precision = f"{right / sum(dropped):.1%}" if any(dropped) else "none dropped"
    recall = f"{right / noise:.1%}" if noise else "no noise"
    return [*told, f"precision {precision}, recall {recall}"]


def main() -> None:
    """Plant or judge, as the arguments say."""
    parser = Parser(prog="tools/plant_noise", allow_abbrev=False)
    parser.add_argument("recipe", metavar="RECIPE", nargs="?")
    parser.add_argument("overrides", metavar="key=value", nargs="*")
    parser.add_argument("--output", metavar="DIR")
    parser.add_argument("--share", type=float, default=0.3, help="of the pairs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--judge", nargs=2, metavar=("PLANTED", "SCORES"))
    args = parser.parse_intermixed_args()
    with one_line_errors("tools/plant_noise"):
        if args.judge:
            print("\n".join(judge(*args.judge)))
        else:
            plant_files(args)


if __name__ == "__main__":
    main()
