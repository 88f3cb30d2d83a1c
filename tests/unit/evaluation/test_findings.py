"""Sentences and numbers of a report against values computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import hand_made_comparison as made
from transformer_mt.evaluation.comparison import TimeToBleu
from transformer_mt.evaluation.findings import duration, findings, points, probability
from transformer_mt.evaluation.report_rows import score_rows


@pytest.mark.parametrize(
    ("bleu", "p", "sentence"),
    [
        ((36.5, 40.7), 0.000999, "transformer is 4.2 BLEU ahead of lstm on test2016 (p = 0.001)"),
        ((36.5, 40.7), 0.0001, "transformer is 4.2 BLEU ahead of lstm on test2016 (p < 0.001)"),
        ((40.7, 36.5), 0.049, "lstm is 4.2 BLEU ahead of transformer on test2016 (p = 0.049)"),
        (
            (36.5, 36.8),
            0.05,
            "No significant difference between transformer and lstm on test2016 (0.3 BLEU apart, p = 0.050)",
        ),
        (
            (36.5, 40.7),
            None,
            "transformer is 4.2 BLEU ahead of lstm on test2016, but its significance is not known",
        ),
    ],
)
def test_who_is_ahead(bleu: tuple[float, float], p: float | None, sentence: str) -> None:
    """Pins winner, distance, and that the first system may win."""
    assert findings(made.comparison(made.test_set(bleu=bleu, p=p)))[0] == sentence


def test_both_tests_must_agree() -> None:
    """Pins that the larger p decides."""
    one = made.test_set()
    score = replace(one.results[1].scores[0], p_bootstrap=0.01, p_randomisation=0.2)
    one = replace(one, results=(one.results[0], replace(one.results[1], scores=(score,))))
    assert findings(made.comparison(one))[0].endswith("(4.2 BLEU apart, p = 0.200)")


@pytest.mark.parametrize(
    ("first_seeds", "sentence"),
    [
        ((36.0, 40.0), "transformer is 4.2 BLEU ahead of lstm on test2016 (p = 0.001 for the first seeds)"),
        (
            (40.0, 36.0),
            "No significant difference between transformer and lstm on test2016 (4.2 BLEU apart, p = 0.001 "
            "for the first seeds, which differ the other way)",
        ),
    ],
)
def test_a_p_of_the_first_seeds_does_not_speak_for_means_that_differ_the_other_way(
    first_seeds: tuple[float, float], sentence: str
) -> None:
    one = made.test_set()
    results = tuple(
        replace(result, scores=(replace(result.scores[0], values=(seed, result.scores[0].value)),))
        for result, seed in zip(one.results, first_seeds, strict=True)
    )
    one = replace(one, results=results)
    assert findings(made.comparison(one))[0] == sentence
    assert score_rows(one, "bleu")[1].significant is (first_seeds[0] < first_seeds[1])


def test_the_best_rival_is_named() -> None:
    """Pins that with several systems the headline is about the best of them."""
    one = made.test_set(names=("a", "b", "c"), bleu=(30.0, 31.0, 33.0), hypotheses=("x", "x", "x"))
    assert findings(made.comparison(one, names=("a", "b", "c")))[0].startswith("c is 3.0 BLEU ahead of a")


def test_what_looks_equal_is_level() -> None:
    """Pins that nobody is 0.0 BLEU ahead, however sure a test is of the difference behind the digits."""
    one = made.test_set(bleu=(36.51, 36.54), p=0.001)
    assert findings(made.comparison(one))[0] == "transformer and lstm are level on test2016 (36.5 BLEU)"
    row = score_rows(one, "bleu")[1]
    assert (row.against, row.significant) == ("level", False)


def test_less_is_more_for_ter() -> None:
    """Pins the direction of the one score that counts faults."""
    one = made.test_set()
    results = tuple(replace(r, scores=r.scores[1:]) for r in one.results)
    assert findings(made.comparison(replace(one, results=results)))[0].startswith(
        "transformer is 4.2 TER ahead of lstm"
    )


def test_every_set_has_its_sentence_and_the_highest_shared_level_counts() -> None:
    """Pins one sentence a set, then one about time, without a level that one system alone has reached."""
    full = made.comparison(made.test_set(), made.test_set("test2017"))
    assert [sentence.split(" on ")[0] for sentence in findings(full)] == [
        "transformer is 4.2 BLEU ahead of lstm",
        "transformer is 4.2 BLEU ahead of lstm",
        "transformer reaches 20 validation BLEU after 5 min 00 s of training, lstm after 10 min 00 s "
        "(2.0 times as long)",
    ]
    one, other = full.systems
    elsewhere = replace(other, cost=(replace(other.cost[0], machine="another machine"),))
    assert findings(replace(full, systems=(one, elsewhere)))[-1].endswith(
        "after 5 min 00 s of training, lstm after 10 min 00 s (not trained alike: see the warnings)"
    )
    for seconds in ((None, 900.0), (900.0, 910.0)):
        assert len(findings(replace(full, time_to_bleu=(TimeToBleu(40.0, seconds),)))) == 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (4.21, "4.2 s"),
        (59.97, "1 min 00 s"),
        (750.0, "12 min 30 s"),
        (3599.7, "1 h 00 min"),
        (3930.0, "1 h 06 min"),
        (50400.0, "14 h 00 min"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    """Pins units and rounding, 60 s never among them."""
    assert duration(seconds) == text


def test_digits() -> None:
    """Pins one digit for scores up to 100, three for metrics around 1, and no p of zero."""
    assert points("bleu", 41.26) == "41.3"
    assert points("COMET", 0.83249) == "0.832"
    assert points("COMET", 83.249) == "83.2"
    assert [probability(p) for p in (None, 0.0004, 0.000999, 0.0512)] == ["–", "< 0.001", "0.001", "0.051"]
