"""The command line of `tools/mutate_faults`: draws mutations, tries each, prints what became of it."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.command_line import Parser, count, one_line_errors
from tools.faults import mutations_a, mutations_b, mutations_tokenizers
from tools.faults.mutation import Mutation
from tools.faults.workshop import KILLED, Workshop
from transformer_mt.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
MUTATIONS = (*mutations_a.MUTATIONS, *mutations_b.MUTATIONS, *mutations_tokenizers.MUTATIONS)


def parser() -> Parser:
    """The words of the command."""
    words = Parser(
        prog="tools/mutate_faults",
        allow_abbrev=False,
        description="Brings known faults back, one small change of a copy of the package each, and runs the "
        "tests that tests/faults.md names for them: 0 if every change is noticed, else 1.",
    )
    words.add_argument("--list", action="store_true", help="name the mutations, try none")
    chosen = words.add_mutually_exclusive_group()
    chosen.add_argument(
        "--number", type=count, default=30, metavar="N", help="this many, drawn (default: 30)"
    )
    chosen.add_argument("--all", action="store_true", help="all of them")
    chosen.add_argument("--id", action="append", default=[], metavar="B0XX", help="of this fault; repeatable")
    words.add_argument("--seed", type=int, default=1, metavar="N", help="of the drawing (default: 1)")
    words.add_argument(
        "--seconds", type=count, default=600, metavar="N", help="for the tests of one (default: 600)"
    )
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns 0, or 1 where a mutation is not killed.

    Raises:
        SystemExit: with 2 for the command line.
    """
    words = parser()
    with one_line_errors(words.prog):
        args = words.parse_args(arguments)
        chosen = choose(args)
        if args.list:
            print("\n".join(f"{one.fault}  {one.name}  ({one.file})" for one in chosen))
            return 0
        with tempfile.TemporaryDirectory(prefix="mutate_faults_") as folder:
            return try_all(Workshop(ROOT, Path(folder)), chosen, args.seconds)


def choose(args: argparse.Namespace) -> list[Mutation]:
    """The mutations asked for, in the order of their faults.

    Raises:
        ConfigError: a fault that has none.
    """
    if args.id:
        unknown = sorted(set(args.id) - {one.fault for one in MUTATIONS})
        if unknown:
            raise ConfigError(f"--id {unknown[0]}: has no mutation; see tests/faults.md and --list")
        return [one for one in MUTATIONS if one.fault in args.id]
    if args.all or args.list:
        return list(MUTATIONS)
    drawn = random.Random(args.seed).sample(range(len(MUTATIONS)), min(args.number, len(MUTATIONS)))
    return [MUTATIONS[index] for index in sorted(drawn)]


def try_all(workshop: Workshop, chosen: Sequence[Mutation], seconds: int) -> int:
    """Print a line for each mutation and a sum. Returns the exit code of the command."""
    tests = sorted({test for one in chosen for test in one.tests})
    if workshop.run_tests(tests, seconds * len(chosen)) != 0:
        print(workshop.output())
        print(f"the {len(tests)} tests do not pass without any change; mend them first")
        return 1
    verdicts: Counter[str] = Counter()
    for one in chosen:
        started = time.perf_counter()
        verdict = workshop.verdict(one, seconds)
        verdicts[verdict] += 1
        taken = time.perf_counter() - started
        print(f"{one.fault}  {verdict:8}  {taken:4.0f} s  {one.file}: {one.name}", flush=True)
    print(", ".join(f"{number} {verdict}" for verdict, number in verdicts.items()))
    return 0 if set(verdicts) == {KILLED} else 1


if __name__ == "__main__":
    sys.exit(main())
