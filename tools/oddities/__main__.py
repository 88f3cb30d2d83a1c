"""The command line of `tools/oddities_table`: plants, looks, prints two tables."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tools.command_line import Parser, one_line_errors
from tools.oddities.corpora import CORPORA, Pairs, sampled, with_text
from tools.oddities.planting import CUTS, PLANTED, cut
from transformer_mt.errors import DataError
from transformer_mt.text.corpus import line_pairs
from transformer_mt.text.trained_on import TrainedOn

ROOT = Path(__file__).resolve().parents[2]
Plant = Callable[[str, str, random.Random], str]


def learned(pairs: Pairs) -> TrainedOn:
    """What a run would remember of this training text, its sources counted in characters."""
    return TrainedOn.learn(np.array([len(source) for source, _ in pairs]), pairs)


def found(watch: TrainedOn, pairs: Pairs, plant: Plant, seed: int = 1) -> float:
    """Share of the pairs in which something is seen after planting."""
    draw = random.Random(seed)
    seen = sum(bool(watch.oddities(source, plant(source, target, draw))) for source, target in pairs)
    return seen / len(pairs)


def false_alarms(watch: TrainedOn, pairs: Pairs) -> Counter[str]:
    """Sign -> how many good pairs show it; a pair that shows any counts under "any" too."""
    counts: Counter[str] = Counter()
    for source, target in pairs:
        signs = watch.oddities(source, target)
        counts.update(signs)
        counts["any"] += bool(signs)
    return counts


def _pairs(src: str, tgt: str) -> Pairs:
    pairs = with_text(line_pairs(src, tgt))
    if not pairs:
        raise DataError(f"{src}, {tgt}: no line has text on both sides; name other files")
    return pairs


def _sets(args: argparse.Namespace) -> Iterator[tuple[str, TrainedOn, Pairs]]:
    """Name, what is usual, and good pairs: of the files that were named, or of all corpora."""
    if args.train:
        yield Path(args.test[0]).name, learned(sampled(_pairs(*args.train))), _pairs(*args.test)
        return
    for corpus in CORPORA:
        yield corpus.name, learned(corpus.training_sample(args.data)), corpus.test_pairs(args.data)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    words = Parser(prog="tools/oddities_table", allow_abbrev=False, description=__doc__)
    words.add_argument(
        "data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the corpora"
    )
    for name, what in (("--train", "training text of your own"), ("--test", "good translations in it")):
        words.add_argument(
            name, nargs=2, metavar=("SRC", "TGT"), help=f"{what}, instead of the corpora: two files of lines"
        )
    args = words.parse_args(arguments)
    if bool(args.train) != bool(args.test):
        words.error("--train and --test: give both, or neither for the corpora")
    columns = [*PLANTED, *(f"{share:.0%}" for share in CUTS)]
    plants = [*PLANTED.values(), *map(cut, CUTS)]
    print("seen of what was planted, in %; the last columns: cut, this much is left")
    print(f"{'corpus':<22}", *(f"{column:>{max(len(column), 6)}}" for column in columns))
    alarms = []
    with one_line_errors(words.prog):
        for name, watch, pairs in _sets(args):
            rates = [found(watch, pairs, plant) for plant in plants]
            print(
                f"{name:<22}",
                *(
                    f"{100 * rate:>{max(len(column), 6)}.1f}"
                    for column, rate in zip(columns, rates, strict=True)
                ),
                flush=True,
            )
            alarms.append((name, len(pairs), false_alarms(watch, pairs)))
    print("\nseen in good translations")
    print(f"{'corpus':<22} {'pairs':>6} {'%':>6}  signs")
    for name, number, counts in alarms:
        signs = ", ".join(f"{sign} {count}" for sign, count in sorted(counts.items()) if sign != "any")
        print(f"{name:<22} {number:>6} {100 * counts['any'] / number:>6.2f}  {signs}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
