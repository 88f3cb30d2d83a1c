"""The plain table: aligned whatever the names are, narrow, and with every number that was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import hand_made_comparison as made
from transformer_mt.evaluation.comparison import MetricResult
from transformer_mt.evaluation.table import format_comparison, short_name, width

NAMES = ("猫システム", "transformer-with-a-very-long-name-indeed")


def table(names: tuple[str, ...] = NAMES) -> list[str]:
    comparison = made.comparison(made.test_set(names=names), names=names, warnings=("w\x1b[31m" + "x " * 90,))
    return format_comparison(comparison).split("\n")


def rows(lines: list[str], start: str, count: int) -> list[str]:
    place = next(number for number, line in enumerate(lines) if start in line)
    return lines[place : place + count]


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("猫", 2), ("e\u0301", 1), ("ｱ", 1), ("Ａ", 2)])
def test_width_is_that_of_a_terminal(text: str, columns: int) -> None:
    assert width(text) == columns


def test_long_names_lose_their_middle() -> None:
    assert short_name("transformer-with-a-very-long-name-indeed") == "transformer…name-indeed"
    assert width(short_name("猫" * 20)) <= 24
    assert short_name("a\tb\n") == "a�b�"


def test_columns_stand_below_each_other_for_wide_names_too() -> None:
    lines = table()
    for block in (rows(lines, "p bootstrap", 5), rows(lines, "over-long", 3), rows(lines, "1-10", 4)):
        assert len({width(line) for line in block}) == 1
    assert max(map(width, lines)) <= 120
    assert not any("\x1b" in line for line in lines)


def test_all_that_was_measured_is_there() -> None:
    """Pins scores, intervals, p-values, counts, buckets, cost and times, by hand."""
    lines = table(("lstm", "transformer"))
    scores = rows(lines, "p bootstrap", 5)
    assert scores[1].split() == ["BLEU", "lstm", "36.50", "–", "36.50", "1.50", "–", "–"]
    assert scores[2].split() == ["transformer", "40.70", "–", "40.70", "1.50", "0.001", "0.001"]
    assert scores[3].split()[:3] == ["TER", "lstm", "63.50"]
    outputs = rows(lines, "over-long", 3)[2].split()
    assert " ".join(outputs) == "transformer 0.980 0.4000 2 – 5 1 600 250 150 31.5"
    buckets = rows(lines, "BLEU by length in source words", 5)
    assert buckets[2].split() == ["lines", "600", "400"]
    assert buckets[4].split() == ["transformer", "40.70", "35.70"]
    assert "  BLEU by rare words: no training text" in lines
    cost = rows(lines, "cost of training", 5)
    expected = "lstm 11,200,000 4,000 7,300,000 50 min 00 s 4,100 2.25 bf16 2 4,000"
    assert " ".join(cost[2].split()) == expected
    assert cost[4] == "  on a machine, torch 2.13.0"
    assert "transformer  transformer" not in "\n".join(lines)


def test_several_seeds_have_a_row_each_and_a_deviation() -> None:
    comparison = made.comparison(made.test_set())
    several = replace(
        comparison.systems[1], sources=("runs/x", "runs/y"), cost=comparison.systems[1].cost * 2
    )
    comparison = replace(comparison, systems=(comparison.systems[0], several))
    text = format_comparison(comparison)
    assert "transformer #1 " in text and "transformer #2 " in text
    assert "  transformer  runs/x\n               runs/y\n" in text


def test_plain_text_has_no_costs_and_small_scores_keep_their_digits() -> None:
    one = made.test_set()
    outside = MetricResult(
        "COMET", 0.83217, None, (0.83217,), 0.832, 0.01, "", None, None, lower_is_better=False
    )
    results = tuple(replace(result, scores=(*result.scores, outside)) for result in one.results)
    comparison = made.comparison(replace(one, results=results, note="1 line: nothing"))
    systems = tuple(replace(system, kind="text", cost=(), curve=()) for system in comparison.systems)
    text = format_comparison(replace(comparison, systems=systems, time_to_bleu=()))
    assert "cost of training" not in text and "wall time" not in text
    assert "  note: 1 line: nothing\n" in text
    assert "  COMET higher is better\n" in text
    assert ["COMET", "lstm", "0.8322", "–", "0.8320", "0.0100", "–", "–"] in map(str.split, text.split("\n"))
