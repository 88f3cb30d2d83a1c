"""Parts of a set by length and by rare words."""

from __future__ import annotations

import pytest

from transformer_mt.evaluation.buckets import bucket_scores, by_length, by_rarity, training_words
from transformer_mt.evaluation.scores import score


def test_edges_belong_to_the_longer_part() -> None:
    """Pins 9 | 10 words and 29 | 30 characters, and that parts without a line are left out."""
    texts = ["w " * 9, "w " * 10, "w " * 70, ""]
    assert by_length(texts) == [("0-9", [0, 3]), ("10-14", [1]), ("60+", [2])]
    assert by_length(["书" * 29, "书" * 30]) == [("20-29", [0]), ("30-39", [1])]


def test_the_rarest_word_decides() -> None:
    """Pins unseen | 1-4 | 5-19 | 20-99 | 100+; a line without words is in no part."""
    lines = ["a"] * 100 + ["b c"] * 4 + ["B."] + ["d"] * 20
    references = ["a", "a d", "a b", "c a", "a new", "..."]
    training = training_words("train.en", iter(lines), references)
    assert training.counts == {"a": 100, "d": 20, "b": 5, "c": 4, "new": 0}
    assert str(training) == "times that the rarest word of the reference is in train.en"
    assert by_rarity(references, training) == [
        ("0", [4]),
        ("1-4", [3]),
        ("5-19", [2]),
        ("20-99", [1]),
        ("100+", [0]),
    ]


def test_characters_are_the_words_of_chinese() -> None:
    training = training_words("train.zh", ["书书"], ["书", "本书"])
    assert str(training).startswith("times that the rarest character")
    assert by_rarity(["书", "本书"], training) == [("0", [1]), ("1-4", [0])]


def test_bleu_of_a_part_is_that_of_its_lines_alone() -> None:
    """B171: corpus BLEU, not a mean; against all streams."""
    references = [["a b c d e", "f g h i j", "k l m n o"], ["x", "f g h i k", "y"]]
    outputs = [["a b c d e", "f g h i k", "k l m q o"], ["a b c d x", "f g h i j", "k l m n o"]]
    first, second = bucket_scores([("p", [0, 2]), ("q", [1])], outputs, references, "en")
    expected = score(["a b c d e", "k l m q o"], [[s[0], s[2]] for s in references], ("bleu",), "en")[0].value
    assert (first.label, first.sentences, first.bleu[0]) == ("p", 2, expected)
    assert 0 < expected < 100
    assert second.bleu == (pytest.approx(100.0), pytest.approx(100.0))
