"""All numbers of one set, put together from the parts."""

from __future__ import annotations

import statistics

import pytest

from transformer_mt.errors import DataError
from transformer_mt.evaluation.buckets import training_words
from transformer_mt.evaluation.compare import Output, SetTexts, compare_set
from transformer_mt.evaluation.scores import score

REFERENCES = [f"a line of words about number {number} and more" for number in range(30)]
GOOD = [text.replace("words", "birds") if number < 3 else text for number, text in enumerate(REFERENCES)]
BAD = [text.replace("number", "numbers") for text in REFERENCES]
WORSE = ["", *BAD[1:]]
SOURCES = [f"eine Zeile {number}" for number in range(30)]


def test_every_number_by_hand_or_by_the_scorer() -> None:
    """Pins seeds (mean, sd), first seeds elsewhere, ratios, counts, wins and what is None for the first."""
    outputs = [
        Output("bad", [BAD, WORSE], nats_per_char=0.5, sentences_per_second=12.0),
        Output("good", [GOOD]),
    ]
    found = compare_set(SetTexts("set", SOURCES, [REFERENCES]), outputs, "en", "left out")
    assert (found.name, found.sentences, found.note) == ("set", 30, "")
    bad, good = found.results
    values = [score(seed, [REFERENCES], ("bleu", "chrf", "ter"), "en") for seed in (BAD, WORSE)]
    for place, metric in enumerate(bad.scores):
        expected = tuple(one[place].value for one in values)
        assert metric.values == expected and expected[0] != expected[1]
        assert metric.value == pytest.approx(statistics.fmean(expected))
        assert metric.sd == pytest.approx(abs(expected[0] - expected[1]) / 2**0.5)
        assert (metric.name, metric.signature) == (values[0][place].name, values[0][place].signature)
        assert metric.interval_mean == pytest.approx(expected[0], abs=2.0)
        assert (metric.p_bootstrap, metric.p_randomisation) == (None, None)
    assert [one.sd for one in good.scores] == [None] * 3
    assert all(one.p_randomisation is not None and one.p_randomisation < 0.01 for one in good.scores)
    assert (bad.wins, bad.ties, bad.losses) == (None, None, None)
    assert (good.wins, good.ties, good.losses) == (27, 0, 3)
    assert (bad.empty, good.empty, bad.copied, bad.length_ratio) == (0, 0, 0, 1.0)
    assert (bad.nats_per_char, bad.sentences_per_second) == (0.5, 12.0)
    assert found.length_of == "source words"
    assert [(one.label, one.sentences) for one in found.by_length] == [("0-9", 30)]
    assert found.by_length[0].bleu == (bad.scores[0].values[0], good.scores[0].value)
    assert (found.rarity_of, found.by_rarity) == ("left out", ())
    assert found.examples[0].examples[0].hypotheses == (BAD[3], GOOD[3])


def test_equal_outputs_are_told() -> None:
    """Pins a note about one run under two names, or copied to be a second seed; never about a single line."""
    outputs = [Output("a", [BAD, GOOD]), Output("b", [GOOD])]
    note = compare_set(SetTexts("set", None, [REFERENCES]), outputs, "en", "left out").note
    assert note == "seed 2 of a and b are equal in every line: is it one system under two names?"
    single = [Output("a", [BAD[:1]]), Output("b", [BAD[:1]])]
    assert (
        "equal in every line"
        not in compare_set(SetTexts("set", None, [REFERENCES[:1]]), single, "en", "").note
    )


def test_without_sources_references_are_measured_and_nothing_is_a_copy() -> None:
    outputs = [Output("a", [BAD]), Output("b", [GOOD])]
    training = training_words("train", ["a line of words about number and more"], REFERENCES)
    found = compare_set(SetTexts("set", None, [REFERENCES]), outputs, "en", training)
    assert found.length_of == "reference words"
    assert [result.copied for result in found.results] == [None, None]
    assert found.rarity_of == "times that the rarest word of the reference is in train"
    assert [(one.label, one.sentences) for one in found.by_rarity] == [("0", 30)]
    assert found.examples[0].examples[0].source is None


def test_chinese_is_scored_and_measured_in_characters() -> None:
    """B164: tok:zh by itself, lengths in characters, a length ratio in the same tokens."""
    references = ["我昨天在商店买了三本新书。", "他不喜欢喝茶。"]
    outputs = [Output("a", [["我昨天在商店买了书。", "他不喜欢喝茶。"]]), Output("b", [references])]
    found = compare_set(SetTexts("set", None, [references]), outputs, "zh", "")
    assert "tok:zh" in found.results[0].scores[0].signature
    assert found.results[0].scores[0].value > 50
    assert found.length_of == "reference characters"
    assert [one.label for one in found.by_length] == ["0-9", "10-14"]
    assert found.results[0].length_ratio == pytest.approx(17 / 20)


def test_outside_metrics_stand_beside_the_others() -> None:
    segments = [[0.1 * (number % 3) for number in range(30)], [0.1 * (number % 4) for number in range(30)]]
    outputs = [
        Output(name, [texts], segments={"COMET": column})
        for name, texts, column in zip("ab", (BAD, GOOD), segments, strict=True)
    ]
    found = compare_set(SetTexts("set", None, [REFERENCES]), outputs, "en", "")
    metrics = [result.scores[-1] for result in found.results]
    assert [one.name for one in metrics] == ["COMET", "COMET"]
    assert metrics[1].value == pytest.approx(statistics.fmean(segments[1]))
    assert (metrics[1].values, metrics[1].signature) == ((metrics[1].value,), "")
    assert metrics[0].p_bootstrap is None and metrics[1].p_bootstrap is not None


def test_one_line_has_scores_but_no_significance() -> None:
    outputs = [Output("a", [["a b c d e"]]), Output("b", [["a b c d f"]])]
    found = compare_set(SetTexts("set", None, [["a b c d e"]]), outputs, "en", "")
    assert found.note.startswith("1 line: ")
    metric = found.results[1].scores[0]
    assert metric.value > 0
    assert (metric.interval, metric.p_bootstrap, metric.p_randomisation) == (None, None, None)


def test_empty_references_have_no_length_ratio() -> None:
    """Pins None instead of an infinity, which JSON cannot hold."""
    found = compare_set(SetTexts("s", None, [["", ""]]), [Output("a", [["x", "y"]])] * 2, "en", "")
    assert [result.length_ratio for result in found.results] == [None, None]


def test_unequal_numbers_of_lines_are_refused() -> None:
    """B167: before anything is computed; sacreBLEU itself would cut the longer side."""
    outputs = [Output("a", [BAD]), Output("b", [GOOD[:-1]])]
    with pytest.raises(DataError, match="29 hypotheses but 30 references in stream 1"):
        compare_set(SetTexts("set", None, [REFERENCES]), outputs, "en", "")
