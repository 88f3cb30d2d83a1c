"""The lines of a set, parted by length or by their rarest word, and BLEU of every part.

Knows texts only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from transformer_mt.evaluation.comparison import Bucket
from transformer_mt.evaluation.scores import score
from transformer_mt.text.words import counts_characters, units, word_counts, words

Part = tuple[str, list[int]]
"""A label, and the lines it stands for, from 0."""

_LENGTHS = (0, 10, 15, 20, 30, 40, 60)
_FREQUENCIES = (0, 1, 5, 20, 100)


def by_length(texts: Sequence[str]) -> list[Part]:
    """Parts of like length, in words or characters, shortest first; those without a line are left out."""
    characters = counts_characters(texts)
    return _parts([len(units(text, characters=characters)) for text in texts], _LENGTHS)


@dataclass(frozen=True)
class TrainingWords:
    """How often the words of the references are in the training data.

    Attributes:
        name: what the training data are called.
        characters: whether words are characters.
        counts: word -> times; 0 for a word that training never met.
    """

    name: str
    characters: bool
    counts: Mapping[str, int]

    def __str__(self) -> str:
        unit = "character" if self.characters else "word"
        return f"times that the rarest {unit} of the reference is in {self.name}"


def training_words(name: str, lines: Iterable[str], references: Sequence[str]) -> TrainingWords:
    """Count the words of the references in the target side of the training data, which is read once."""
    characters = counts_characters(references)
    wanted = {word for line in references for word in words(line, characters=characters)}
    return TrainingWords(name, characters, word_counts(lines, wanted, characters=characters))


def by_rarity(references: Sequence[str], training: TrainingWords) -> list[Part]:
    """Parts by the training frequency of the rarest word of the reference, rarest first.

    Args:
        references: N texts among those that were counted; those without a word are in no part.
    """
    found = [words(text, characters=training.characters) for text in references]
    return _parts([min((training.counts[word] for word in one), default=-1) for one in found], _FREQUENCIES)


def bucket_scores(
    parts: Sequence[Part],
    outputs: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    tgt_lang: str,
) -> tuple[Bucket, ...]:
    """Corpus BLEU of the lines of each part, for every system.

    Args:
        outputs: texts of each system.
        references: streams.
    """

    def bleu(texts: Sequence[str], lines: Sequence[int]) -> float:
        chosen = [[stream[line] for line in lines] for stream in references]
        return score([texts[line] for line in lines], chosen, ("bleu",), tgt_lang)[0].value

    return tuple(
        Bucket(label, len(lines), tuple(bleu(texts, lines) for texts in outputs)) for label, lines in parts
    )


def _parts(values: Sequence[int], starts: Sequence[int]) -> list[Part]:
    parts = []
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        lines = [line for line, value in enumerate(values) if start <= value and (end is None or value < end)]
        if lines:
            parts.append((_label(start, end), lines))
    return parts


def _label(start: int, end: int | None) -> str:
    if end is None:
        return f"{start}+"
    return str(start) if end == start + 1 else f"{start}-{end - 1}"
