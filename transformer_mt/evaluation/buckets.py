"""The lines of a set, parted by length or by their rarest word, and BLEU of every part.

Knows texts only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transformer_mt.evaluation.comparison import Bucket
from transformer_mt.evaluation.scores import score
from transformer_mt.evaluation.words import counts_characters, units, words

Part = tuple[str, list[int]]
"""A label, and the lines it stands for, from 0."""

_LENGTHS = (0, 10, 15, 20, 30, 40, 60)
_FREQUENCIES = (0, 1, 5, 20, 100)


def by_length(texts: Sequence[str]) -> list[Part]:
    """Parts of like length, in words or characters, shortest first; those without a line are left out."""
    characters = counts_characters(texts)
    return _parts([len(units(text, characters=characters)) for text in texts], _LENGTHS)


def by_rarity(references: Sequence[str], frequencies: Mapping[str, int]) -> list[Part]:
    """Parts by the training frequency of the rarest word of the reference, rarest first.

    Args:
        references: N texts; those without a word are in no part.
        frequencies: occurrences in the training data of every word of the references.
    """
    characters = counts_characters(references)
    found = [words(text, characters=characters) for text in references]
    return _parts([min((frequencies[word] for word in one), default=-1) for one in found], _FREQUENCIES)


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
