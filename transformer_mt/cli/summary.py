"""What `translate` says at the end: how much was translated, how fast, and which lines deserve a look.

Counts; translates and prints nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from transformer_mt.decoding.translation import LIMIT
from transformer_mt.text.presplit import count_presplit, presplit_note

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Translation


def unfit_note(output: str, unfit: Sequence[int]) -> str:
    """What to do about lines that did not fit into the memory: their numbers, at least one."""
    more = f" and {len(unfit) - 1} more" if len(unfit) > 1 else ""
    return (
        f"{output}: line {unfit[0]}{more} did not fit into the memory and stayed blank; translate what is "
        "missing by itself, in shorter lines, with a lower --beam-size or more memory"
    )


class Summary:
    """Adds up translations, buffer by buffer."""

    def __init__(self) -> None:
        self.lines = 0
        self.blank = 0
        self.src_tokens = 0
        self.tgt_tokens = 0
        self.seconds = 0.0
        """Spent on translating alone: not on loading, nor on waiting for lines."""
        self.flags: Counter[str] = Counter()
        self.retried = 0
        self._presplit = 0
        self._flagged: list[int] = []
        self._split: list[int] = []
        self._cut: list[int] = []

    def look_at(self, sources: Iterable[str]) -> None:
        """Take in the lines of a buffer."""
        self._presplit += count_presplit(sources)

    def add(self, first: int, translations: Sequence[Translation], seconds: float) -> None:
        """Take in the translations of a buffer.

        Args:
            first: number of its first line, from 1.
            translations: of its lines.
            seconds: that they took.
        """
        self.lines += len(translations)
        self.seconds += seconds
        for number, one in enumerate(translations, start=first):
            self.blank += not one.num_src_tokens
            self.src_tokens += one.num_src_tokens
            self.tgt_tokens += len(one.ids)
            wrong = [flag for flag in one.flags if flag != LIMIT]  # which is told by itself
            self.flags.update(wrong)
            self.retried += one.retried
            for met, numbers in (
                (wrong, self._flagged),
                (one.num_parts > 1, self._split),
                (one.at_limit, self._cut),
            ):
                if met:
                    numbers.append(number)

    def told(self) -> list[str]:
        """The summary, one matter a line."""
        speed = f", {self.lines / self.seconds:.1f} lines/s" if self.seconds else ""
        told = [
            f"{self.lines} lines ({self.blank} blank), {self.src_tokens} source and {self.tgt_tokens} target "
            f"tokens, {self.seconds:.1f} s{speed}"
        ]
        if note := presplit_note(self._presplit, self.lines, "lines"):
            told.append(f"warning: {note}")
        if self._cut:
            told.append(
                f"note: {len(self._cut)} of {self.lines} translations were cut off at their longest length, "
                f"first in line {self._cut[0]}; see --max-len-a and --max-len-b"
            )
        if self._split:
            told.append(
                f"note: {len(self._split)} of {self.lines} lines are more than the model knows and "
                f"were translated in parts, first line {self._split[0]}; see --split-long"
            )
        if self._flagged:
            kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.flags.items()))
            told.append(
                f"note: {len(self._flagged)} of {self.lines} translations look wrong ({kinds}; {self.retried}"
                f" lines searched twice), first in line {self._flagged[0]}; --format tsv marks them"
            )
        return told
