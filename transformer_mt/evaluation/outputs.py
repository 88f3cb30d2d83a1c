"""What is wrong with translations at a glance: empty, copied, repeating or far too long ones, counted.

Knows texts only; whether a translation is good is for the scores to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_mt.text.lines import is_blank, trimmed
from transformer_mt.text.oddities import repeats
from transformer_mt.text.words import counts_characters, units

_FACTOR, _ALLOWANCE = 2, 10


@dataclass(frozen=True)
class OutputCounts:
    """Numbers of lines; `copied` is None without sources."""

    empty: int
    copied: int | None
    repeated: int
    overlong: int


def count_outputs(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] | None
) -> OutputCounts:
    """Count the lines that look broken, none of which would be if it were the reference.

    Empty: no visible character, though the first reference has one. Copied: equal to the source, though no
    reference is. Repeated: a sequence of words (characters, in text without spaces) three times in a row, or
    one word four times, though no reference does such a thing. Over-long: more than 2 L + 10 words or
    characters for a longest reference of L.

    Args:
        hypotheses: N texts.
        references: streams of N texts each.
        sources: N texts.
    """
    characters = counts_characters(references[0])
    rows = list(zip(hypotheses, *references, strict=True))
    cut = [[units(text, characters=characters) for text in row] for row in rows]
    return OutputCounts(
        empty=sum(is_blank(row[0]) and not is_blank(row[1]) for row in rows),
        copied=None if sources is None else _copied(rows, sources),
        repeated=sum(repeats(row[0]) and not any(map(repeats, row[1:])) for row in cut),
        overlong=sum(len(row[0]) > _FACTOR * max(map(len, row[1:])) + _ALLOWANCE for row in cut),
    )


def _copied(rows: Sequence[tuple[str, ...]], sources: Sequence[str]) -> int:
    count = 0
    for (hypothesis, *references), source in zip(rows, map(trimmed, sources), strict=True):
        same = trimmed(hypothesis) == source and not is_blank(source)
        count += same and source not in map(trimmed, references)
    return count
