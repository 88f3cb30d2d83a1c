"""A comparison -> the rows of the page's tables and bars, ready to be written down.

Knows no HTML: texts, shares of a width in percent, and whether something deserves an eye.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transformer_mt.evaluation.comparison import Comparison, Cost, MetricResult, TestSet
from transformer_mt.evaluation.findings import (
    ABSENT,
    duration,
    gain,
    is_level,
    is_significant,
    metric_of,
    points,
    probability,
)


@dataclass(frozen=True)
class ScoreRow:
    """One system's score as a bar and in words.

    Attributes:
        system: its index.
        value: with the standard deviation where there are seeds.
        interval: 95% of the resamples; "" without one.
        against: the difference to the first system.
        p: both p-values.
        significant: of the difference; None for the first system.
        left: where the bar starts, percent of the width.
        width: how long it is.
        low: where the interval starts; None without one.
        span: how long it is.
    """

    system: int
    value: str
    interval: str
    against: str
    p: str
    significant: bool | None
    left: float
    width: float
    low: float | None
    span: float


@dataclass(frozen=True)
class Cell:
    """A number of one system: its text, its share of the largest in percent, and its ratio to the first."""

    text: str
    share: float | None = None
    ratio: str = ""


@dataclass(frozen=True)
class Row:
    """One quantity of all systems."""

    label: str
    cells: tuple[Cell, ...]


def metrics(test_set: TestSet) -> dict[str, bool]:
    """The names of all scores that some system has, and whether lower is better."""
    return {score.name: score.lower_is_better for result in test_set.results for score in result.scores}


def score_rows(test_set: TestSet, metric: str) -> list[ScoreRow]:
    """The systems that have this score, on one scale that holds zero and all intervals."""
    scores = [(i, s) for i, result in enumerate(test_set.results) if (s := metric_of(result, metric))]
    ends = [0.0, *(score.value for _, score in scores)]
    for _, score in scores:
        if score.interval_mean is not None and score.interval is not None:
            ends += [score.interval_mean - score.interval, score.interval_mean + score.interval]
    low, high = min(ends), max(ends)
    scale = 100 / ((high - low) or 1.0)
    first = metric_of(test_set.results[0], metric)
    return [_score_row(index, score, first, low, scale) for index, score in scores]


def _score_row(
    index: int, score: MetricResult, first: MetricResult | None, zero: float, scale: float
) -> ScoreRow:
    value, interval, start, span = points(score.name, score.value), "", None, 0.0
    if score.sd is not None:
        value += f" ± {points(score.name, score.sd)}"
    if score.interval_mean is not None and score.interval is not None:
        low, high = score.interval_mean - score.interval, score.interval_mean + score.interval
        interval = f"{points(score.name, low)} to {points(score.name, high)}"
        start, span = (low - zero) * scale, (high - low) * scale
    against, p, significant = "", "", None
    if index > 0 and first is not None:
        lead = gain(score, first)
        distance = f"{points(score.name, abs(lead))} {'better' if lead > 0 else 'worse'}"
        against = "level" if is_level(score, first) else distance
        p = f"{probability(score.p_bootstrap)} / {probability(score.p_randomisation)}"
        significant = bool(is_significant(score, first))
    left, width = (min(score.value, 0.0) - zero) * scale, abs(score.value) * scale
    return ScoreRow(index, value, interval, against, p, significant, left, width, start, span)


def cost_rows(comparison: Comparison) -> list[Row]:
    """What the systems cost to train and to use; what no system tells is left out."""
    costs = [system.cost for system in comparison.systems]

    def measured(label: str, get: Callable[[Cost], float | None], show: Callable[[float], str]) -> Row:
        values = [_mean([get(cost) for cost in seeds]) for seeds in costs]
        return _row(label, values, show)

    def told(label: str, get: Callable[[Cost], object]) -> Row:
        texts = [dict.fromkeys(str(get(cost)) for cost in seeds if get(cost) is not None) for seeds in costs]
        return Row(label, tuple(Cell(", ".join(text) or ABSENT) for text in texts))

    rows = [
        measured("training time", lambda cost: cost.seconds, duration),
        measured("target tokens seen", lambda cost: cost.target_tokens, _count),
        measured("target tokens per second", lambda cost: cost.tokens_per_second, _count),
        measured("updates", lambda cost: cost.updates, _count),
        measured("parameters", lambda cost: cost.parameters, _count),
        measured("peak memory", lambda cost: cost.peak_gib, lambda gib: f"{gib:.1f} GiB"),
        *(_speed_row(test_set) for test_set in comparison.sets),
        told("checkpoint used: step", lambda cost: cost.step),
        told("precision", lambda cost: cost.precision),
        told("machine", lambda cost: cost.machine),
        told("threads", lambda cost: cost.threads),
        told("torch", lambda cost: cost.torch),
    ]
    return [row for row in rows if any(cell.text != ABSENT for cell in row.cells)]


def _speed_row(test_set: TestSet) -> Row:
    values = [result.sentences_per_second for result in test_set.results]
    return _row(f"sentences translated per second, {test_set.name}", values, lambda rate: f"{rate:,.1f}")


def time_rows(comparison: Comparison) -> list[Row]:
    """Wall time of training until each validation BLEU; systems without a curve tell none."""
    absent = ["not reached" if any(system.curve) else ABSENT for system in comparison.systems]
    return [
        _row(f"{level.bleu:g} BLEU", level.seconds, duration, absent) for level in comparison.time_to_bleu
    ]


def fault_rows(test_set: TestSet) -> list[Row]:
    """How many translations are visibly wrong, and how long they are."""

    def counted(label: str, counts: Sequence[int | None]) -> Row:
        cells = []
        for count in counts:
            if count is None:
                cells.append(Cell(ABSENT))
            else:
                share = f" ({100 * count / test_set.sentences:.1f}%)" if count else ""
                cells.append(Cell(f"{count:,}{share}"))
        return Row(label, tuple(cells))

    results = test_set.results
    rows = [
        counted("empty", [result.empty for result in results]),
        counted("copied from the source", [result.copied for result in results]),
        counted("saying the same again and again", [result.repeated for result in results]),
        counted("far too long", [result.overlong for result in results]),
        Row("length, references = 1", tuple(_plain(result.length_ratio, 3) for result in results)),
    ]
    if any(result.nats_per_char is not None for result in results):
        nats = tuple(_plain(result.nats_per_char, 4) for result in results)
        rows.append(Row("surprise at the references, nats per character", nats))
    return rows


def _plain(value: float | None, digits: int) -> Cell:
    return Cell(ABSENT if value is None else f"{value:.{digits}f}")


def _row(
    label: str,
    values: Sequence[float | None],
    show: Callable[[float], str],
    absent: Sequence[str] | None = None,
) -> Row:
    cells = []
    first = values[0]
    for index, value in enumerate(values):
        if value is None:
            cells.append(Cell(absent[index] if absent else ABSENT))
        else:
            ratio = f"× {value / first:.2f}" if index and first else ""
            cells.append(Cell(show(value), _share(value, values), ratio))
    return Row(label, tuple(cells))


def _share(value: float, values: Sequence[float | None]) -> float:
    largest = max((other for other in values if other is not None), default=0)
    return 100 * value / largest if largest > 0 else 0.0


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _count(value: float) -> str:
    """12,345 in full, larger numbers in millions or billions."""
    for unit, name in ((1e9, " billion"), (1e6, " million")):
        if value >= unit:
            return f"{value / unit:.1f}{name}"
    return f"{value:,.0f}"
