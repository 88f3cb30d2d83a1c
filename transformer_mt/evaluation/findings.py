"""A comparison -> what it has found, in sentences, and its numbers as people write them.

Knows no page: plain text comes out.
"""

from __future__ import annotations

from collections.abc import Iterator

from transformer_mt.evaluation.comparison import Comparison, MetricResult, SystemResult, TestSet
from transformer_mt.evaluation.scores import LABELS

SIGNIFICANT = 0.05
"""Differences with both p-values below are called significant."""

ABSENT = "–"
"""Stands where a number is not known."""

# Times nearer to each other are called equal.
_NOTABLY_SLOWER = 1.05


def findings(comparison: Comparison) -> list[str]:
    """The sentences at the head of a report: who is ahead, set by set, and who learns faster."""
    found = [_ahead(test_set) for test_set in comparison.sets]
    return [*found, *_faster(comparison)]


def label(metric: str) -> str:
    """The name of a score as papers write it."""
    return LABELS.get(metric, metric)


def metric_of(result: SystemResult, metric: str) -> MetricResult | None:
    """The score of that name; None where the system has none."""
    return next((score for score in result.scores if score.name == metric), None)


def gain(score: MetricResult, first: MetricResult) -> float:
    """By how much a score is better than another, in points; negative where it is worse."""
    difference = score.value - first.value
    return -difference if score.lower_is_better else difference


def p_value(score: MetricResult) -> float | None:
    """The larger of the p-values against the first system; None where there is none."""
    return max((p for p in (score.p_bootstrap, score.p_randomisation) if p is not None), default=None)


def is_significant(score: MetricResult, first: MetricResult) -> bool | None:
    """Whether both p-values are small; None where there is none.

    They are of the first seeds: where those differ the other way than the means over seeds, they say nothing,
    and neither do they of means that are level in the digits shown.
    """
    p = p_value(score)
    if p is None:
        return None
    return p < SIGNIFICANT and not is_level(score, first) and not _is_reversed(score, first)


def is_level(score: MetricResult, first: MetricResult) -> bool:
    """Whether two scores differ by nothing in the digits shown."""
    return points(score.name, abs(gain(score, first))) == points(score.name, 0.0)


def _is_reversed(score: MetricResult, first: MetricResult) -> bool:
    return (score.values[0] - first.values[0]) * (score.value - first.value) < 0


def points(metric: str, value: float) -> str:
    """A score in its usual digits: 41.3 BLEU, but 0.832 COMET."""
    return f"{value:.1f}" if metric in LABELS or abs(value) >= 10 else f"{value:.3f}"


def probability(p: float | None) -> str:
    """0.0009990 -> 0.001: the smallest p that a thousand resamples can show."""
    if p is None:
        return ABSENT
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"


def duration(seconds: float | None) -> str:
    """Two units: 1 h 05 min, 12 min 30 s, 4.2 s."""
    if seconds is None:
        return ABSENT
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60:,} h {minutes % 60:02} min"


def _ahead(test_set: TestSet) -> str:
    first, *others = test_set.results
    metric = first.scores[0].name
    ours = first.scores[0]
    rivals = [(score, result.name) for result in others if (score := metric_of(result, metric))]
    if not rivals:
        return f"{first.name} reaches {points(metric, ours.value)} {label(metric)} on {test_set.name}"
    best, name = max(rivals, key=lambda rival: gain(rival[0], ours))
    lead, p = gain(best, ours), p_value(best)
    ahead, behind = (name, first.name) if lead >= 0 else (first.name, name)
    distance = f"{points(metric, abs(lead))} {label(metric)}"
    if is_level(best, ours):
        reached = f"{points(metric, best.value)} {label(metric)}"
        return f"{ahead} and {behind} are level on {test_set.name} ({reached})"
    if p is None:
        return (
            f"{ahead} is {distance} ahead of {behind} on {test_set.name}, but its significance is not known"
        )
    tail = f"p {probability(p)}" if p < 0.0005 else f"p = {probability(p)}"
    if len(ours.values) > 1 or len(best.values) > 1:
        tail += " for the first seeds"
    if is_significant(best, ours):
        return f"{ahead} is {distance} ahead of {behind} on {test_set.name} ({tail})"
    if _is_reversed(best, ours):
        tail += ", which differ the other way"
    return (
        f"No significant difference between {ahead} and {behind} on {test_set.name} "
        f"({distance} apart, {tail})"
    )


def _faster(comparison: Comparison) -> Iterator[str]:
    """The highest level that more than one system has reached."""
    names = [system.name for system in comparison.systems]
    for level in reversed(comparison.time_to_bleu):
        reached = sorted(
            (seconds, index)
            for index, seconds in enumerate(level.seconds)
            if seconds is not None and seconds > 0
        )
        if len(reached) > 1:
            (fast, quick), (slow, late) = reached[0], reached[-1]
            if slow / fast < _NOTABLY_SLOWER:
                return
            costs = [*comparison.systems[quick].cost, *comparison.systems[late].cost]
            alike = len({(cost.machine, cost.threads, cost.precision, cost.torch) for cost in costs}) < 2
            ratio = f"{slow / fast:.1f} times as long" if alike else "not trained alike: see the warnings"
            yield (
                f"{names[quick]} reaches {level.bleu:g} validation BLEU after {duration(fast)} of training, "
                f"{names[late]} after {duration(slow)} ({ratio})"
            )
            return
