"""`prepare`: check and encode the text of a recipe."""

from __future__ import annotations

import argparse
import sys

from transformer_mt.cli.stream_output import show

HELP = "check the text of a recipe, learn its vocabulary and encode it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("recipe", metavar="RECIPE", help="YAML file")
    parser.add_argument("overrides", metavar="key=value", nargs="*", help="values laid over the recipe's")


def run(args: argparse.Namespace) -> int:
    """Prepare the data and print the table of what was found."""
    from transformer_mt.data.prepare import prepare
    from transformer_mt.data.report import format_report
    from transformer_mt.recipe import load_recipe

    prepared = prepare(load_recipe(args.recipe, args.overrides))
    show(format_report(prepared.report))
    if not prepared.is_new:
        print("already prepared", file=sys.stderr)
    show(str(prepared.folder))
    return 0
