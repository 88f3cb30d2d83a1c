"""Intervals and p-values: those of sacreBLEU where systems differ, sense where its comparison has none."""

from __future__ import annotations

import math
import os
import tracemalloc

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from transformer_mt.evaluation import significance
from transformer_mt.evaluation.scores import scorer
from transformer_mt.evaluation.significance import (
    MOST_LINES,
    Significance,
    paired_segment_tests,
    paired_tests,
    remembering,
    why_untested,
)

REFERENCES = [f"a line of words about number {i} and then some {i * i}" for i in range(40)]
BAD = [text.replace("words", "birds").replace("then", "than") for text in REFERENCES]


def differing(lines: int) -> list[str]:
    """The references, of which the first lines are spoilt."""
    return BAD[:lines] + REFERENCES[lines:]


@pytest.mark.parametrize("environment", [None, "7"])
def test_numbers_are_those_of_sacrebleu_with_one_seed(
    environment: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins means, intervals and both p-values, whatever the environment says about seeds."""
    outputs = [differing(20), differing(36), [*REFERENCES[:18], *BAD[18:]]]
    named = [(str(number), texts) for number, texts in enumerate(outputs)]
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    expected = {}
    for kind in ("bs", "ar"):
        _, columns = PairedTest(named, {"x": BLEU()}, [REFERENCES], test_type=kind)()
        expected[kind] = columns["BLEU"]
    if environment is None:
        monkeypatch.delenv("SACREBLEU_SEED")
    else:
        monkeypatch.setenv("SACREBLEU_SEED", environment)
    found = paired_tests(outputs, scorer("bleu", "en", [REFERENCES]))
    assert os.environ.get("SACREBLEU_SEED") == environment
    for one, resampled, shuffled in zip(found, expected["bs"], expected["ar"], strict=True):
        assert (one.mean, one.interval) == (pytest.approx(resampled.mean), pytest.approx(resampled.ci))
        assert (one.p_bootstrap, one.p_randomisation) == (resampled.p_value, shuffled.p_value)
    assert found[0].p_bootstrap is found[0].p_randomisation is None
    assert found[1].p_randomisation is not None and found[1].p_randomisation < 0.05


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_equal_systems_are_not_called_different(metric: str) -> None:
    """B178: sacreBLEU compares strictly and gives p = 0.0001 for a system against itself."""
    _, same = paired_tests([differing(9), differing(9)], scorer(metric, "en", [REFERENCES]))  # type: ignore[arg-type]
    assert (same.p_bootstrap, same.p_randomisation) == (1.0, 1.0)


@pytest.mark.parametrize(("lines", "least"), [(1, 1.0), (2, 0.5), (5, 0.0625)])
def test_few_lines_that_differ_prove_little(lines: int, least: float) -> None:
    """Pins 2 / 2^k: exchanging k lines has 2^k outcomes, two of which are as far apart as what was seen."""
    _, other = paired_tests([REFERENCES, differing(lines)], scorer("bleu", "en", [REFERENCES]))
    assert other.p_randomisation == pytest.approx(least, abs=0.02)
    assert other.p_randomisation >= least
    assert other.p_bootstrap is not None and other.p_bootstrap >= least


def test_a_single_line_and_too_many_lines_are_not_tested() -> None:
    """Pins that no interval and no p-value is made up where there is none."""
    assert paired_tests([["a b"], ["a c"]], scorer("bleu", "en", [["a b"]])) == [
        Significance(),
        Significance(),
    ]
    assert paired_segment_tests([[0.1], [0.2]]) == [Significance(), Significance()]
    assert why_untested(1).startswith("1 line: ")
    assert (why_untested(2), why_untested(MOST_LINES)) == ("", "")
    assert f"over {MOST_LINES:,} lines" in why_untested(MOST_LINES + 1)


def test_statistics_of_one_list_are_computed_once() -> None:
    """Pins the saving, and that a list with the same id as a forgotten one cannot be taken for it."""
    one = remembering(scorer("ter", "en", [REFERENCES]))
    hypotheses = differing(3)
    first = one.corpus_score(hypotheses, None).score
    assert first == scorer("ter", "en").corpus_score(hypotheses, [REFERENCES]).score > 0
    hypotheses[:] = REFERENCES  # would show if they were read again
    assert one.corpus_score(hypotheses, None).score == first
    values = {one.corpus_score(list(REFERENCES), None).score for _ in range(5)}
    assert values == {0.0}


def test_segment_means_by_hand() -> None:
    """Pins mean, interval, direction-free p-values, and p = 1 for equal systems."""
    base = [0.5 + 0.001 * (i % 7) for i in range(200)]
    better = [score + 0.1 * (i % 3) for i, score in enumerate(base)]
    first, same, other = paired_segment_tests([base, base, better])
    assert first.mean == pytest.approx(sum(base) / 200, abs=1e-3)
    assert first.interval is not None and 0 < first.interval < 0.001
    assert (first.p_bootstrap, first.p_randomisation) == (None, None)
    assert (same.p_bootstrap, same.p_randomisation) == (1.0, 1.0)
    assert other.p_bootstrap == pytest.approx(1 / 1001)
    assert other.p_randomisation == pytest.approx(1 / 10001)


def test_segment_tests_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins blocks that draw the same numbers: all at once they took 3.2 GiB for 20,000 lines."""
    segments = [[math.sin(line * (1 + system)) for line in range(500)] for system in range(3)]
    whole = paired_segment_tests(segments)
    monkeypatch.setattr(significance, "_BLOCK_NUMBERS", 1 << 16)
    tracemalloc.start()
    in_blocks = paired_segment_tests(segments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    for one, other in zip(whole, in_blocks, strict=True):
        assert (one.p_bootstrap, one.p_randomisation) == (other.p_bootstrap, other.p_randomisation)
        assert (one.mean, one.interval) == (pytest.approx(other.mean), pytest.approx(other.interval))


def test_segment_scores_of_one_differing_line_prove_nothing() -> None:
    _, other = paired_segment_tests([[0.1] * 30, [0.1] * 29 + [0.9]])
    assert other.p_randomisation == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_noise_alone_is_rarely_significant(seed: int) -> None:
    """Pins p-values of segments as probabilities: with equal means, far from the smallest ones."""
    import numpy as np

    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(2, 300))
    _, other = paired_segment_tests(scores - scores.mean(axis=1, keepdims=True))  # type: ignore[arg-type]
    assert other.p_randomisation == pytest.approx(1.0, abs=0.01)
