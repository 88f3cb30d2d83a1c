"""The command line of `tools/oddities_table`: plants, looks, prints two tables."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tools.command_line import Parser, one_line_errors
from tools.oddities.corpora import CORPORA, Corpus, Pairs
from tools.oddities.planting import CUTS, PLANTED, cut
from transformer_mt.text.trained_on import TrainedOn

ROOT = Path(__file__).resolve().parents[2]
Plant = Callable[[str, str, random.Random], str]


def learned(corpus: Corpus, data: Path) -> TrainedOn:
    """What a run would remember of the training text of a corpus, its sources counted in characters."""
    pairs = corpus.training_sample(data)
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    words = Parser(prog="tools/oddities_table", allow_abbrev=False, description=__doc__)
    words.add_argument(
        "data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the corpora"
    )
    args = words.parse_args(arguments)
    columns = [*PLANTED, *(f"{share:.0%}" for share in CUTS)]
    plants = [*PLANTED.values(), *map(cut, CUTS)]
    print("seen of what was planted, in %; the last columns: cut, this much is left")
    print(f"{'corpus':<22}", *(f"{column:>{max(len(column), 6)}}" for column in columns))
    alarms = []
    with one_line_errors(words.prog):
        for corpus in CORPORA:
            watch, pairs = learned(corpus, args.data), corpus.test_pairs(args.data)
            rates = [found(watch, pairs, plant) for plant in plants]
            print(
                f"{corpus.name:<22}",
                *(f"{100 * rate:>{max(len(name), 6)}.1f}" for name, rate in zip(columns, rates, strict=True)),
                flush=True,
            )
            alarms.append((corpus.name, len(pairs), false_alarms(watch, pairs)))
    print("\nseen in good translations")
    print(f"{'corpus':<22} {'pairs':>6} {'%':>6}  signs")
    for name, number, counts in alarms:
        signs = ", ".join(f"{sign} {count}" for sign, count in sorted(counts.items()) if sign != "any")
        print(f"{name:<22} {number:>6} {100 * counts['any'] / number:>6.2f}  {signs}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
