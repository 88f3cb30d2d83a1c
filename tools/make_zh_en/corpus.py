"""The splits of the corpus: drawn from the grammar, free of repeats and leaks, and written as plain text.

Scope: which sentence goes where, and the files. Knows nothing of how a sentence is built.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from .nouns import KIN, NAMES, PERSONS
from .phrase import Phrase, chinese_text, dictionary_pairs, english_text, is_reordered
from .sentences import long_sentence, sentence

SEED = 20240229
SIZES = {"train": 12000, "valid": 500, "test": 500, "test_long": 300}
LENGTHS = {"train": (3, 45), "valid": (3, 45), "test": (3, 45), "test_long": (46, 80)}
# A word of valid, test or test_long occurs at least so often in train: they ask for combining, not guessing.
MIN_TRAIN_COUNT = 5


PEOPLE = {entry.zh for entry in (*NAMES, *KIN)} | {person.zh for person in PERSONS}


class Pair(NamedTuple):
    """One sentence pair, with what the difficulty measures need."""

    zh: str
    en: str
    zh_words: tuple[str, ...]
    dictionary: tuple[tuple[str, str], ...]
    reordered: bool


def english_words(text: str) -> list[str]:
    """Lower-case word tokens; a contraction or a hyphenated numeral is one word."""
    return re.findall(r"[a-z0-9'-]+", text.lower())


def _pair(phrase: Phrase) -> Pair:
    words = tuple(word for word, _ in phrase.zh)
    return Pair(
        chinese_text(phrase),
        english_text(phrase),
        words,
        tuple(dictionary_pairs(phrase)),
        is_reordered(phrase),
    )


def _new_pairs(
    rng: Random, build: Callable[[Random], Phrase], lengths: tuple[int, int], seen: set[str]
) -> Iterator[Pair]:
    """Pairs of allowed length, neither side of which was seen before."""
    shortest, longest = lengths
    while True:
        pair = _pair(build(rng))
        if _names_somebody_twice(pair):
            continue
        if shortest <= len(pair.zh) <= longest and pair.zh not in seen and pair.en not in seen:
            seen.update((pair.zh, pair.en))
            yield pair


def _names_somebody_twice(pair: Pair) -> bool:
    """True for "Mary met Mary": the grammar draws people independently of each other."""
    return any(pair.zh_words.count(name) > 1 for name in PEOPLE)


def make_corpus(
    seed: int = SEED, sizes: dict[str, int] = SIZES, min_train_count: int = MIN_TRAIN_COUNT
) -> dict[str, list[Pair]]:
    """All splits, a pure function of the arguments.

    Args:
        seed: of all choices.
        sizes: pairs of each split; train comes first.
        min_train_count: how often the words of the other splits must occur in train.
    """
    rng = Random(seed)
    seen: set[str] = set()
    zh_counts: Counter[str] = Counter()
    en_counts: Counter[str] = Counter()
    corpus: dict[str, list[Pair]] = {}
    for split, size in sizes.items():
        build = long_sentence if split == "test_long" else sentence
        pairs: list[Pair] = []
        for pair in _new_pairs(rng, build, LENGTHS[split], seen):
            if split == "train":
                zh_counts.update(pair.zh_words)
                en_counts.update(english_words(pair.en))
            elif min(_train_counts(pair, zh_counts, en_counts)) < min_train_count:
                continue
            pairs.append(pair)
            if len(pairs) == size:
                break
        corpus[split] = pairs
    return corpus


def _train_counts(pair: Pair, zh_counts: Counter[str], en_counts: Counter[str]) -> Iterator[int]:
    yield from (zh_counts[word] for word in pair.zh_words)
    yield from (en_counts[word] for word in english_words(pair.en))


def corpus_files(corpus: dict[str, list[Pair]]) -> dict[str, bytes]:
    """File name -> content: UTF-8, one sentence a line, every line ended by "\\n"."""
    files: dict[str, bytes] = {}
    for split, pairs in corpus.items():
        files[f"{split}.zh"] = "".join(pair.zh + "\n" for pair in pairs).encode()
        files[f"{split}.en"] = "".join(pair.en + "\n" for pair in pairs).encode()
    return files


def write_corpus(folder: Path, corpus: dict[str, list[Pair]]) -> None:
    """Write the files of all splits."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in corpus_files(corpus).items():
        (folder / name).write_bytes(content)
