"""Numbers and rules -> verdicts on claims, and the statistics they rest on.

A rule is a threshold and a direction: numbers the other way round give the other verdict. Pure functions that
know neither files nor models.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from transformer_mt.studies.study_file import ClaimSection
from transformer_mt.studies.values import At, Measured

Outcome = Literal["confirmed", "not confirmed", "undecided"]

# Runs -> standard errors between mean and threshold that chance explains in 5 of 100 studies at most
# (Student's t, one-sided): few runs know little of their own spread.
_SURE = {2: 6.31, 3: 2.92, 4: 2.35, 5: 2.13}
_SURE_OF_MANY = 2.02


@dataclass(frozen=True)
class Value:
    """One number of a study: who it is of, and what was measured."""

    variant: str
    seed: int | None
    measured: Measured


@dataclass(frozen=True)
class Summary:
    """Several runs of the same: mean, spread and extremes; one run has no spread."""

    mean: float
    sd: float | None
    low: float
    high: float
    runs: int

    @property
    def error(self) -> float | None:
        """Standard error of the mean."""
        return None if self.sd is None else self.sd / math.sqrt(self.runs)


@dataclass(frozen=True)
class Verdict:
    """What became of a claim."""

    claim: str
    rule: str
    """What is judged, and the threshold."""
    outcome: Outcome
    found: Summary | None
    """What was judged; None where it was not measured."""


def judge(claim: ClaimSection, values: Sequence[Value]) -> Verdict:
    """Apply the rule of a claim to the numbers of a study.

    Runs of two variants with the same seed are a pair: what is judged is the mean of the differences, or
    of the ratios, of all pairs. Several runs decide nothing where chance may have put their mean on its side
    of the threshold; one run is judged by its number alone.
    """
    found = summary(_judged(claim, values))
    return Verdict(claim.claim, rule_text(claim), _outcome(claim, found), found)


def summary(numbers: Iterable[float]) -> Summary | None:
    """Mean and spread of some runs, None of none."""
    several = list(numbers)
    if not several:
        return None
    sd = statistics.stdev(several) if len(several) > 1 else None
    return Summary(statistics.fmean(several), sd, min(several), max(several), len(several))


def by_seed(values: Iterable[Value], variant: str, metric: str, at: At) -> dict[int | None, float]:
    """Seed -> the mean of what that run measured there; without the runs that could not measure all of it."""
    found: dict[int | None, list[float | None]] = {}
    for value in values:
        one = value.measured
        if value.variant == variant and one.metric == metric and at.items() <= one.at.items():
            found.setdefault(value.seed, []).append(one.value)
    means = {}
    for seed, numbers in found.items():
        there = [number for number in numbers if number is not None]
        if len(there) == len(numbers):
            means[seed] = statistics.fmean(there)
    return means


def rule_text(claim: ClaimSection) -> str:
    """The rule for people: "bf16 / fp32 of peak_mib at length 3072: at most 0.55"."""
    sign = {"ratio": " / ", "difference": " - "}.get(claim.by or "", "")
    whose = f"{claim.variant}{sign}{claim.against or ''}"
    bound = f"at most {claim.at_most:g}" if claim.at_most is not None else f"at least {claim.at_least:g}"
    return f"{whose}, {claim.metric}{at_text(claim.at)}: {bound}"


def at_text(at: At) -> str:
    """Where something was measured: " at length 512, beam 5"."""
    return " at " + ", ".join(f"{key} {value}" for key, value in at.items()) if at else ""


def _judged(claim: ClaimSection, values: Sequence[Value]) -> list[float]:
    own = by_seed(values, claim.variant, claim.metric, claim.at)
    if claim.against is None:
        return list(own.values())
    other = by_seed(values, claim.against, claim.metric, claim.at)
    pairs = [(own[seed], other[seed]) for seed in own if seed in other]
    if claim.by == "difference":
        return [ours - theirs for ours, theirs in pairs]
    return [ours / theirs for ours, theirs in pairs if theirs]


def _outcome(claim: ClaimSection, found: Summary | None) -> Outcome:
    if found is None:
        return "undecided"
    if claim.at_most is not None:
        over = found.mean - claim.at_most
    else:
        assert claim.at_least is not None, "the schema has checked it"
        over = claim.at_least - found.mean
    if found.error is not None and abs(over) < _SURE.get(found.runs, _SURE_OF_MANY) * found.error:
        return "undecided"
    return "confirmed" if over <= 0 else "not confirmed"
