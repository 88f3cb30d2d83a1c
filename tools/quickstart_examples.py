"""Prints a few test sentences with all systems' translations; at least three are long. Knows no model."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

LONG = 30
"""Characters from which a Chinese sentence counts as long."""


def choose(sources: list[str], seed: int, long: int = 3, short: int = 2) -> list[int]:
    """Indices of `long` sentences of at least LONG characters and `short` others, drawn by seed.

    Raises:
        SystemExit: there are fewer of a kind than asked for.
    """
    draw = random.Random(seed)
    chosen: list[int] = []
    for number, is_long in ((short, False), (long, True)):
        kind = [i for i, source in enumerate(sources) if (len(source) >= LONG) == is_long]
        if len(kind) < number:
            raise SystemExit(
                f"{number} sentences of {'at least' if is_long else 'under'} {LONG} characters "
                f"are needed, but there are {len(kind)}"
            )
        chosen += draw.sample(kind, number)
    return chosen


def read(path: Path) -> list[str]:
    """Lines of a text file, split at the newline alone."""
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def named(argument: str) -> tuple[str, Path]:
    """NAME=FILE -> both."""
    name, equals, path = argument.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{argument!r} is not NAME=FILE")
    return name, Path(path)


def main() -> None:
    """Reads line-aligned files and prints the drawn lines."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("translations", metavar="NAME=FILE", type=named, nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    files = [("source", args.source), ("reference", args.reference), *args.translations]
    columns = [read(path) for _, path in files]
    if len({len(column) for column in columns}) != 1:
        raise SystemExit(
            f"the files have {', '.join(str(len(column)) for column in columns)} lines; they must agree"
        )
    width = max(len(name) for name, _ in files)
    print(f"\nExamples from {args.source} (seed {args.seed})")
    for index in choose(columns[0], args.seed):
        print(f"\nline {index + 1}, {len(columns[0][index])} characters")
        for (name, _), column in zip(files, columns, strict=True):
            print(f"  {name:{width}}  {column[index]}")


if __name__ == "__main__":
    main()
