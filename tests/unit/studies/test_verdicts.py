"""Rules on numbers: every outcome, and that numbers the other way round turn it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from transformer_mt.studies.study_file import ClaimSection
from transformer_mt.studies.values import Measured
from transformer_mt.studies.verdicts import Summary, Value, by_seed, judge, summary


def claim(**keys: Any) -> ClaimSection:
    """A claim that half the memory is needed, with other keys laid over it."""
    return ClaimSection.model_validate(
        {
            "claim": "half the memory",
            "metric": "mib",
            "at": {"length": 512},
            "variant": "narrow",
            "against": "wide",
            "by": "ratio",
            "at_most": 0.55,
            **keys,
        }
    )


def values(narrow: list[float | None], wide: list[float | None], length: int = 512) -> list[Value]:
    """Runs of two variants, seeds 1 and on."""
    return [
        Value(variant, seed, Measured("mib", number, {"length": length}))
        for variant, numbers in (("narrow", narrow), ("wide", wide))
        for seed, number in enumerate(numbers, start=1)
    ]


def test_one_run_is_judged_by_its_number_alone() -> None:
    """Pins both directions of both operations, and that the threshold itself is in."""
    assert judge(claim(), values([50.0], [100.0])).outcome == "confirmed"
    assert judge(claim(), values([55.0], [100.0])).outcome == "confirmed"
    assert judge(claim(), values([56.0], [100.0])).outcome == "not confirmed"
    differing = claim(by="difference", at_most=None, at_least=10)
    assert judge(differing, values([110.0], [100.0])).outcome == "confirmed"
    assert judge(differing, values([109.0], [100.0])).outcome == "not confirmed"


def test_the_verdict_turns_when_the_numbers_do() -> None:
    rule = claim(at_most=0.9)
    assert judge(rule, values([50.0, 51.0], [100.0, 101.0])).outcome == "confirmed"
    assert judge(rule, values([100.0, 101.0], [50.0, 51.0])).outcome == "not confirmed"


def test_runs_are_paired_by_their_seeds() -> None:
    """Seeds differ a hundredfold, ratios hardly; a seed that one variant lacks is left out."""
    verdict = judge(claim(), values([1.0, 100.0, 7.0], [2.0, 202.0]))
    assert verdict.found is not None
    assert (verdict.found.runs, verdict.outcome) == (2, "confirmed")
    assert verdict.found.mean == pytest.approx((0.5 + 100 / 202) / 2)


def test_a_mean_within_chance_of_the_threshold_decides_nothing() -> None:
    """Ratios 0.4 and 0.6: mean 0.5, standard error 0.1, threshold half of one away."""
    verdict = judge(claim(), values([40.0, 60.0], [100.0, 100.0]))
    assert verdict.outcome == "undecided"
    assert verdict.found is not None and verdict.found.error == pytest.approx(0.1)


def test_few_runs_must_be_further_from_the_threshold() -> None:
    """Ratios with mean 0.5; two runs, which hardly know their spread, must be 6.31 standard errors away."""
    for narrow, near, far in (
        ([40.0, 60.0], 1.12, 1.14),
        ([40.0, 50.0, 60.0], 0.66, 0.68),
        ([40.0, 60.0] * 5, 0.56, 0.58),
    ):
        found = values(narrow, [100.0] * len(narrow))
        assert judge(claim(at_most=near), found).outcome == "undecided"
        assert judge(claim(at_most=far), found).outcome == "confirmed"


@pytest.mark.parametrize(
    "found", [values([], [1.0]), values([None], [1.0]), values([1.0], [1.0], length=8), values([1.0], [0.0])]
)
def test_what_was_not_measured_is_undecided(found: list[Value]) -> None:
    verdict = judge(claim(), found)
    assert (verdict.outcome, verdict.found) == ("undecided", None)


def test_without_another_variant_the_value_itself_is_judged() -> None:
    rule = claim(against=None, by=None, at_most=None, at_least=30)
    assert judge(rule, values([31.0], [])).outcome == "confirmed"
    assert judge(rule, values([29.0], [])).outcome == "not confirmed"


def test_the_mean_is_taken_over_all_that_a_rule_leaves_open() -> None:
    """Two layers at one length; a layer that could not be measured takes its run out."""
    found = [
        Value("narrow", seed, Measured("mib", number, {"length": 512, "layer": layer}))
        for seed, layer, number in ((1, "a", 1.0), (1, "b", 3.0), (2, "a", 1.0), (2, "b", None))
    ]
    assert by_seed(found, "narrow", "mib", {"length": 512}) == {1: 2.0}
    assert by_seed(found, "narrow", "mib", {"layer": "a"}) == {1: 1.0, 2: 1.0}


def test_the_summary_of_runs() -> None:
    assert summary([]) is None
    assert summary([2.0]) == Summary(2.0, None, 2.0, 2.0, 1)
    several = summary([1.0, 2.0, 6.0])
    assert several is not None
    assert (several.mean, several.low, several.high, several.runs) == (3.0, 1.0, 6.0, 3)
    assert several.sd == pytest.approx(math.sqrt(7.0))


def test_a_rule_in_words() -> None:
    assert judge(claim(), []).rule == "narrow / wide, mib at length 512: at most 0.55"
    alone = claim(against=None, by=None, at={}, at_most=None, at_least=2)
    assert judge(alone, []).rule == "narrow, mib: at least 2"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"at_least": 1.0}, "at_most: give this or at_least"),
        ({"at_most": None}, "at_most: give this or at_least"),
        ({"against": None}, "by: difference or ratio must be said where `against` is"),
        ({"by": None}, "by: difference or ratio must be said where `against` is"),
    ],
)
def test_half_a_rule_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        claim(**keys)
