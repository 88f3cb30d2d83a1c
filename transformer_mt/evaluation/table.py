"""A comparison -> plain text for a terminal: aligned columns, and below them what every number is.

Knows no colours and no pages; examples are left to the report.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from transformer_mt.evaluation.comparison import Bucket, Comparison, Cost, System, SystemResult, TestSet
from transformer_mt.evaluation.findings import ABSENT, duration, label, probability

_LONGEST_NAME = 24
_WIDTH = 118
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_LEGEND = (
    "score: of the whole set; mean and standard deviation (sd) over the runs of a system that has several. "
    "TER counts edits: lower is better.",
    "mean, ±95%: mean of the resamples, half the width of their central 95%. These, p and all numbers of "
    "lines are of the first run.",
    "length: of the translations over that of the references, in BLEU's tokens. nats/char: -log probability "
    "of the references per character, lower is better.",
    "empty, copied (the source), repeated (the same words again and again), over-long (twice the reference "
    "and ten more): lines where the reference is not like that.",
    "wins, ties, losses: lines with a better, equal, worse sentence chrF2++ than the first system's. "
    "lines/s: speed of translating, when that was done.",
)
_COST_LEGEND = (
    "time: wall time of training, validation included. tokens/s: target tokens per second of updates alone. "
    "GiB: most memory. step: the update whose weights translate.",
)


def format_comparison(comparison: Comparison) -> str:
    """All tables, each with the systems as rows, and their legend."""
    blocks = [_systems(comparison.systems), *map(_test_set, comparison.sets)]
    trained = [system for system in comparison.systems if system.cost]
    if trained:
        blocks.append(["cost of training", *_cost(trained)])
    if comparison.time_to_bleu:
        blocks.append(_time_to_bleu(comparison))
    if comparison.warnings:
        blocks.append(["warnings", *_wrapped(comparison.warnings)])
    legend = [*_LEGEND, *(_COST_LEGEND if trained else ()), comparison.significance]
    blocks.append(["what the numbers are", *_wrapped(legend)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def width(text: str) -> int:
    """Columns of a terminal that a text takes: two for a wide character, none for a combining one."""
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def short_name(name: str) -> str:
    """A name of at most 24 columns on one line; a longer one loses its middle."""
    name = _plain(name)
    if width(name) <= _LONGEST_NAME:
        return name
    half = (_LONGEST_NAME - 1) // 2
    return f"{_head(name, half)}…{_head(name[::-1], half)[::-1]}"


def _systems(systems: Sequence[System]) -> list[str]:
    rows = [
        (short_name(system.name) if not place else "", _plain(source))
        for system in systems
        for place, source in enumerate(system.sources)
    ]
    first = f"systems; all are measured against the first, {short_name(systems[0].name)}"
    return [first, *_aligned(rows, left=2)]


def _test_set(test_set: TestSet) -> list[str]:
    lines = f"{test_set.sentences:,} line{'s' * (test_set.sentences != 1)}"
    found = [f"{_plain(test_set.name)} ({lines})"]
    if test_set.note:
        found += _wrapped([f"note: {test_set.note}"])
    found += _aligned([_SCORE_HEAD, *_scores(test_set)], left=2)
    found += [f"  {name} {signature}" for name, signature in _signatures(test_set)]
    found += ["", *_aligned([_OUTPUT_HEAD, *map(_outputs, test_set.results)])]
    names = [result.name for result in test_set.results]
    if test_set.by_length:
        found += ["", f"  BLEU by length in {test_set.length_of}", *_buckets(test_set.by_length, names)]
    if test_set.by_rarity:
        found += ["", f"  BLEU by {test_set.rarity_of}", *_buckets(test_set.by_rarity, names)]
    elif test_set.rarity_of:
        found += ["", f"  BLEU by rare words: {_plain(test_set.rarity_of)}"]
    return found


_SCORE_HEAD = ("", "system", "score", "sd", "mean", "±95%", "p bootstrap", "p randomisation")


def _scores(test_set: TestSet) -> Iterator[tuple[str, ...]]:
    """One row for each metric and system."""
    for place, metric in enumerate(test_set.results[0].scores):
        for number, result in enumerate(test_set.results):
            score = result.scores[place]
            digits = 2 if score.signature or abs(score.value) >= 10 else 4
            yield (
                "" if number else label(metric.name),
                short_name(result.name),
                _number(score.value, digits),
                _number(score.sd, digits),
                _number(score.interval_mean, digits),
                _number(score.interval, digits),
                probability(score.p_bootstrap),
                probability(score.p_randomisation),
            )


def _signatures(test_set: TestSet) -> list[tuple[str, str]]:
    """What stands for each score: how it was computed, or of an outside metric which way is up."""
    return [
        (label(one.name), one.signature or f"{'lower' if one.lower_is_better else 'higher'} is better")
        for one in test_set.results[0].scores
    ]


_OUTPUT_HEAD = (
    "",
    "length",
    "nats/char",
    "empty",
    "copied",
    "repeated",
    "over-long",
    "wins",
    "ties",
    "losses",
    "lines/s",
)


def _outputs(result: SystemResult) -> tuple[str, ...]:
    return (
        short_name(result.name),
        _number(result.length_ratio, 3),
        _number(result.nats_per_char, 4),
        _number(result.empty),
        _number(result.copied),
        _number(result.repeated),
        _number(result.overlong),
        _number(result.wins),
        _number(result.ties),
        _number(result.losses),
        _number(result.sentences_per_second, 1),
    )


def _buckets(buckets: Sequence[Bucket], names: Sequence[str]) -> list[str]:
    """A column for each bucket."""
    rows = [("", *(bucket.label for bucket in buckets))]
    rows.append(("lines", *(f"{bucket.sentences:,}" for bucket in buckets)))
    rows += [
        (short_name(name), *(_number(bucket.bleu[place], 2) for bucket in buckets))
        for place, name in enumerate(names)
    ]
    return _aligned(rows)


_COST_HEAD = (
    "",
    "parameters",
    "updates",
    "target tokens",
    "time",
    "tokens/s",
    "GiB",
    "precision",
    "threads",
    "step",
)


def _cost(systems: Sequence[System]) -> list[str]:
    """A row for each run, and the machines, which are too long for a column."""
    runs = [
        (short_name(system.name) + (f" #{number}" if len(system.cost) > 1 else ""), cost)
        for system in systems
        for number, cost in enumerate(system.cost, start=1)
    ]
    machines = {
        f"{cost.machine}, torch {cost.torch}": None for _, cost in runs if cost.machine and cost.torch
    }
    return [
        *_aligned([_COST_HEAD, *(_cost_row(name, cost) for name, cost in runs)]),
        *(f"  on {_plain(machine)}" for machine in machines),
    ]


def _cost_row(name: str, cost: Cost) -> tuple[str, ...]:
    return (
        name,
        _number(cost.parameters),
        _number(cost.updates),
        _number(cost.target_tokens),
        duration(cost.seconds),
        _number(cost.tokens_per_second),
        _number(cost.peak_gib, 2),
        cost.precision or ABSENT,
        _number(cost.threads),
        _number(cost.step),
    )


def _time_to_bleu(comparison: Comparison) -> list[str]:
    """A column for each system: the levels may be many."""
    rows = [("", *(short_name(system.name) for system in comparison.systems))]
    rows += [
        (f"{level.bleu:g}", *(duration(seconds) for seconds in level.seconds))
        for level in comparison.time_to_bleu
    ]
    return ["wall time of training until a validation with so much BLEU", *_aligned(rows)]


def _number(value: float | None, digits: int = 0) -> str:
    return ABSENT if value is None else f"{value:,.{digits}f}"


def _aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Rows as lines: the first `left` columns to the left, the others to the right."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for place, (cell, wide) in enumerate(zip(row, widths, strict=True)):
            space = " " * (wide - width(cell))
            cells.append(cell + space if place < left else space + cell)
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


def _wrapped(paragraphs: Iterable[str]) -> list[str]:
    """Paragraphs as lines, indented; the first word of each stands out."""
    return [
        line
        for text in paragraphs
        for line in textwrap.wrap(_plain(text), _WIDTH, initial_indent="  ", subsequent_indent="    ")
    ]


def _head(text: str, columns: int) -> str:
    """The longest beginning of a text that takes no more than so many columns."""
    end = 0
    while end < len(text) and width(text[: end + 1]) <= columns:
        end += 1
    return text[:end]


def _plain(text: str) -> str:
    """A text that cannot steer a terminal or break a line."""
    return _CONTROL.sub("�", text)
