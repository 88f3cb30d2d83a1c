"""How sure the scores of systems are: intervals, and paired tests of each system against the first.

sacreBLEU's own bootstrap and approximate randomisation for its scores, the same two tests over means of
segment scores for outside metrics. Knows nothing of how the outputs came about.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.base import Metric as Scorer
from sacrebleu.significance import PairedTest, Result, estimate_ci

from transformer_mt.evaluation.comparison import System

SEED = 12345
RESAMPLES = 1000
TRIALS = 10_000
MOST_LINES = 20_000
"""sacreBLEU's tests hold all resamples at once: about 0.13 GiB for every thousand lines."""

_SEED_VARIABLE = "SACREBLEU_SEED"
# Numbers that the tests of segment scores draw at a time: 32 MiB.
_BLOCK_NUMBERS = 1 << 22
# Sums of the same numbers in another order may differ in their last digits.
_ROUNDING = 1e-9

_HOW = (
    f"95% intervals by {RESAMPLES:,} bootstrap resamples. p-values: two-sided, against the first system, "
    f"by paired bootstrap ({RESAMPLES:,} resamples), paired approximate randomisation ({TRIALS:,} trials), "
    f"seed {SEED}."
)
"""What `paired_tests` does, in words."""


def how(systems: Sequence[System]) -> str:
    """What was done to find out how sure the scores are, and to which runs, in words."""
    tested = [f"{one.name} by {one.sources[0]}" for one in systems if len(one.sources) > 1]
    if not tested:
        return _HOW
    return f"{_HOW} Of systems with several runs the first alone was tested: {', '.join(tested)}."


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Significance:
    """Mean and half width of the 95% interval of a system, and its p-values; None where none make sense."""

    mean: float | None = None
    interval: float | None = None
    p_bootstrap: float | None = None
    p_randomisation: float | None = None


def why_untested(lines: int) -> str:
    """Why a set of so many lines is not tested; "" where it is."""
    if lines < 2:
        return "1 line: there is nothing to resample, so no interval and no p-value means anything"
    if lines > MOST_LINES:
        return (
            f"over {MOST_LINES:,} lines: intervals and p-values are left out, they would need too much memory"
        )
    return ""


def paired_tests(outputs: Sequence[Sequence[str]], scorer: Scorer) -> list[Significance]:
    """Intervals and p-values of a sacreBLEU score, for systems that translated the same lines.

    A p-value never goes below 2 / 2^k for two outputs that differ in k lines: exchanging them can do no more,
    and the strict comparison inside sacreBLEU would call two equal systems different.

    Args:
        outputs: texts of each system, one for each line of the references that `scorer` holds.
    """
    if why_untested(len(outputs[0])):
        return [Significance()] * len(outputs)
    named = [(str(number), texts) for number, texts in enumerate(outputs)]
    bootstrap, randomisation = (_run(named, scorer, kind) for kind in ("bs", "ar"))
    found = [Significance(float(bootstrap[0].mean or 0.0), float(bootstrap[0].ci or 0.0))]
    for texts, resampled, shuffled in zip(outputs[1:], bootstrap[1:], randomisation[1:], strict=True):
        floor = _smallest_p(outputs[0], texts, equal=resampled.score == bootstrap[0].score)
        found.append(
            Significance(
                float(resampled.mean or 0.0),
                float(resampled.ci or 0.0),
                max(float(resampled.p_value or 0.0), floor),
                max(float(shuffled.p_value or 0.0), floor),
            )
        )
    return found


def paired_segment_tests(segments: Sequence[Sequence[float]]) -> list[Significance]:
    """The same two tests for the mean of segment scores, for outside metrics.

    Args:
        segments: scores of each system, one for each line.
    """
    scores = np.asarray(segments, dtype=np.float64)  # (systems, N)
    lines = scores.shape[1]
    if why_untested(lines):
        return [Significance()] * len(scores)
    generator = np.random.default_rng(SEED)
    resamples = (generator.integers(lines, size=(rows, lines)) for rows in _blocks(RESAMPLES, lines))
    means = np.hstack([scores[:, chosen].mean(axis=2) for chosen in resamples])  # (systems, resamples)
    # A trial exchanges the outputs of about half of the lines, which turns the sign of their differences.
    trials = (generator.integers(2, size=(rows, lines)) * 2.0 - 1.0 for rows in _blocks(TRIALS, lines))
    shuffled = np.hstack([(scores - scores[0]) @ signs.T for signs in trials]) / lines  # (systems, trials)
    found = []
    for number, (row, resampled) in enumerate(zip(scores, means, strict=True)):
        mean, interval = estimate_ci(resampled)
        if not number:
            found.append(Significance(float(mean), float(interval)))
            continue
        difference = abs(float((row - scores[0]).mean()))
        spread = np.abs(resampled - means[0])
        found.append(
            Significance(
                float(mean),
                float(interval),
                _share_of(spread - spread.mean(), difference),
                _share_of(np.abs(shuffled[number]), difference),
            )
        )
    return found


def _blocks(rows: int, lines: int) -> Iterator[int]:
    """So many rows of so many numbers, in blocks that take little memory; the numbers are the same."""
    most = max(_BLOCK_NUMBERS // lines, 1)
    for start in range(0, rows, most):
        yield min(most, rows - start)


def remembering(scorer: Scorer) -> Scorer:
    """The scorer, which from now on reads each list of texts once.

    The score and both tests ask for the same statistics; for TER they are nearly all of the work.
    """
    extract, known = scorer._extract_corpus_statistics, {}

    def remembered(hypotheses: Sequence[str], references: Sequence[Sequence[str]] | None) -> Any:
        if id(hypotheses) not in known:
            # The texts are kept as well, so that no other list can get their id.
            known[id(hypotheses)] = (hypotheses, extract(hypotheses, references))
        return known[id(hypotheses)][1]

    scorer._extract_corpus_statistics = remembered  # type: ignore[method-assign]
    return scorer


def _run(named: list[tuple[str, Sequence[str]]], scorer: Scorer, kind: str) -> list[Result]:
    samples = RESAMPLES if kind == "bs" else TRIALS
    with _fixed_seed():
        test = PairedTest(named, {"score": scorer}, None, test_type=kind, n_samples=samples)
    _, columns = test()
    del columns["System"]
    (results,) = columns.values()
    return [result for result in results if isinstance(result, Result)]


@contextlib.contextmanager
def _fixed_seed() -> Iterator[None]:
    """sacreBLEU reads its seed from the environment; ours is always the same one."""
    before = os.environ.get(_SEED_VARIABLE)
    os.environ[_SEED_VARIABLE] = str(SEED)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SEED_VARIABLE]
        else:
            os.environ[_SEED_VARIABLE] = before


def _smallest_p(first: Sequence[str], other: Sequence[str], *, equal: bool) -> float:
    """2 / 2^k for outputs that differ in k lines; 1 where the scores are equal."""
    differing = sum(a != b for a, b in zip(first, other, strict=True))
    return 1.0 if equal else min(1.0, 2.0 ** (1 - min(differing, 1000)))


def _share_of(values: Floats, difference: float) -> float:
    """Share of trials that differ at least as much, the observed one counted among them."""
    return float((np.sum(values >= difference * (1.0 - _ROUNDING)) + 1) / (len(values) + 1))
