"""The bundled corpus as it is committed: reproducible, free of leaks, well formed, and hard enough."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU

from tools.make_zh_en.corpus import (
    LENGTHS,
    MIN_TRAIN_COUNT,
    SIZES,
    Pair,
    corpus_files,
    english_words,
    make_corpus,
)
from tools.make_zh_en.difficulty import nearest_neighbour, reordered_share, word_by_word

LANGUAGES = ("zh", "en")


@pytest.fixture(scope="module")
def folder(repository: Path) -> Path:
    """The folder of the committed files."""
    return repository / "data" / "zh_en"


@pytest.fixture(scope="module")
def generated() -> dict[str, list[Pair]]:
    """What the generator makes of its seed."""
    return make_corpus()


@pytest.fixture(scope="module")
def lines(folder: Path) -> dict[str, list[str]]:
    """The committed lines, by file name."""
    names = [f"{split}.{language}" for split in SIZES for language in LANGUAGES]
    return {name: (folder / name).read_bytes().decode("utf-8").split("\n")[:-1] for name in names}


def test_files_are_reproduced_byte_for_byte(folder: Path, generated: dict[str, list[Pair]]) -> None:
    """Pins an edit of data or generator without the other, and any dependence on hash order or platform."""
    for name, content in corpus_files(generated).items():
        assert (folder / name).read_bytes() == content, name


def test_files_are_plain_text(folder: Path) -> None:
    """Pins carriage returns, a lost final newline, tabs, double spaces, and a corpus above 3 MB."""
    files = [folder / f"{split}.{language}" for split in SIZES for language in LANGUAGES]
    assert sum(path.stat().st_size for path in files) <= 3_000_000
    for path in files:
        text = path.read_bytes().decode("utf-8")
        assert text.endswith("\n")
        assert not set(text) & set("\r\t\v\f\x1c\x1d\x1e\x85\u2028\u2029\ufeff")
        assert "  " not in text and "\n\n" not in text


def test_sizes_and_lengths(lines: dict[str, list[str]]) -> None:
    """Pins sides of unequal length, a test_long that overlaps train in length, and too few long sentences."""
    for split, size in SIZES.items():
        shortest, longest = LENGTHS[split]
        assert len(lines[f"{split}.zh"]) == len(lines[f"{split}.en"]) == size
        assert all(shortest <= len(line) <= longest for line in lines[f"{split}.zh"])
    assert min(map(len, lines["test_long.zh"])) > max(map(len, lines["train.zh"]))
    assert sum(len(line) >= 30 for line in lines["test.zh"]) >= 50


def test_no_line_occurs_twice(lines: dict[str, list[str]]) -> None:
    """Pins test sentences inside train, on either side, and duplicates anywhere."""
    for language in LANGUAGES:
        counts = Counter(line for split in SIZES for line in lines[f"{split}.{language}"])
        assert max(counts.values()) == 1


def test_test_words_are_known_from_training(
    lines: dict[str, list[str]], generated: dict[str, list[Pair]]
) -> None:
    """Pins words of a test set that training never, or hardly, showed."""
    zh = Counter(word for pair in generated["train"] for word in pair.zh_words)
    en = Counter(word for line in lines["train.en"] for word in english_words(line))
    assert len(zh) >= 400 and len(en) >= 400
    for split in ("valid", "test", "test_long"):
        assert all(min(zh[word] for word in pair.zh_words) >= MIN_TRAIN_COUNT for pair in generated[split])
        assert all(
            en[word] >= MIN_TRAIN_COUNT for line in lines[f"{split}.en"] for word in english_words(line)
        )


def test_english_is_well_formed(lines: dict[str, list[str]]) -> None:
    """Pins missing capitals and marks, doubled words, and a/an before the wrong sound."""
    for split in SIZES:
        for line in lines[f"{split}.en"]:
            words = line.rstrip(".?").split(" ")
            assert line[0].isupper() and line[-1] in ".?"
            # Rightly doubled: "says that that book", "the photo that we looked at at four o'clock".
            assert not any(a == b and a not in ("that", "at") for a, b in pairwise(words)), line
            for determiner, word in pairwise(words):
                if determiner in ("a", "an"):
                    assert (determiner == "an") == word.startswith(("a", "e", "i", "o", "u", "hour")), line


def test_word_by_word_translation_fails(
    lines: dict[str, list[str]], generated: dict[str, list[Pair]]
) -> None:
    """Pins a corpus that a dictionary solves: at most 30 BLEU."""
    outputs = word_by_word(lines["test.zh"], generated["train"])
    assert 5 < BLEU().corpus_score(outputs, [lines["test.en"]]).score <= 30


def test_copying_from_training_fails(lines: dict[str, list[str]]) -> None:
    """Pins a corpus whose test set is found in train but for a word: at most 45 BLEU."""
    outputs = nearest_neighbour(lines["test.zh"], lines["train.zh"], lines["train.en"])
    assert 5 < BLEU().corpus_score(outputs, [lines["test.en"]]).score <= 45


def test_most_pairs_are_reordered(generated: dict[str, list[Pair]]) -> None:
    """Pins a corpus in one order: at least half of the test pairs have a crossing in their alignment."""
    assert reordered_share(generated["test"]) >= 0.5
