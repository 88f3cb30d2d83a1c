"""Scored pairs -> the lines that `score` writes, and what it says at the end. Knows nothing of files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformer_mt.cli.line_formats import DIGITS, decimal, tab_separated, with_fields
from transformer_mt.cli.pair_lines import PairLine
from transformer_mt.text.lines import is_blank

if TYPE_CHECKING:
    from transformer_mt.decoding.scorer import Scored

FORMATS = ("text", "tsv", "jsonl")


@dataclass(frozen=True)
class ScoreFormat:
    """How scores are written.

    name is one of FORMATS; added_prefix stands before the names of the fields that a JSON object gains.
    """

    name: str
    token_scores: bool = False
    added_prefix: str = ""

    @property
    def added_fields(self) -> list[str]:
        """Every field that a JSON object gains."""
        names = ["score", "log_prob", "num_tokens", *["tokens", "token_scores"] * self.token_scores]
        return [self.added_prefix + name for name in names]

    def lines(
        self,
        first: int,
        pairs: Sequence[PairLine],
        scored: Sequence[Scored],
        pieces: Callable[[Sequence[int]], list[str]],
    ) -> list[str]:
        """One line for each pair.

        Args:
            first: number of the first of them, from 1.
            pairs: N pairs as they were read.
            scored: N.
            pieces: spells target ids.
        """
        if self.name == "text":
            return [decimal(one.score) for one in scored]
        write = self._columns if self.name == "tsv" else self._object
        rows = enumerate(zip(pairs, scored, strict=True), start=first)
        return [write(number, pair, one, pieces(one.ids)) for number, (pair, one) in rows]

    def _columns(self, number: int, pair: PairLine, one: Scored, pieces: list[str]) -> str:
        row = [str(number), decimal(one.score), decimal(one.log_prob), str(len(one.ids)), pair.src, pair.tgt]
        if self.token_scores:
            row += [" ".join(pieces), " ".join(map(decimal, one.token_scores))]
        return tab_separated(row)

    def _object(self, number: int, pair: PairLine, one: Scored, pieces: list[str]) -> str:
        values: list[Any] = [round(one.score, DIGITS), round(one.log_prob, DIGITS), len(one.ids)]
        if self.token_scores:
            values += [pieces, [round(score, DIGITS) for score in one.token_scores]]
        given = pair.raw or json.dumps({"src": pair.src, "tgt": pair.tgt}, ensure_ascii=False)
        return with_fields(given, dict(zip(self.added_fields, values, strict=True)))


class ScoreSummary:
    """Adds up what is said at the end.

    Characters are those of the translations, and one for the end of each line, as in validation.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.blank = 0
        self.tokens = 0
        self.characters = 0
        self.log_prob = 0.0
        self.seconds = 0.0
        self._half_blank: list[int] = []

    def add(self, pairs: Sequence[PairLine], scored: Sequence[Scored], seconds: float) -> None:
        """Take in a buffer, and the seconds that it took."""
        for number, (pair, one) in enumerate(zip(pairs, scored, strict=True), start=self.lines + 1):
            self.blank += not one.ids
            self.tokens += len(one.ids)
            self.characters += len(pair.tgt) + 1 if one.ids else 0
            self.log_prob += one.log_prob
            if is_blank(pair.src) != is_blank(pair.tgt):
                self._half_blank.append(number)
        self.lines += len(pairs)
        self.seconds += seconds

    def told(self) -> list[str]:
        """The summary, one matter a line."""
        from transformer_mt.training.validation import perplexity

        speed = f", {self.lines / self.seconds:.1f} lines/s" if self.seconds else ""
        told = [
            f"{self.lines} lines ({self.blank} blank), {self.tokens} target tokens, "
            f"{self.seconds:.1f} s{speed}"
        ]
        if self.tokens:
            told.append(
                f"log-probability {self.log_prob:.2f}, perplexity "
                f"{perplexity(-self.log_prob / self.tokens):.4f} per target token, "
                f"{-self.log_prob / self.characters:.4f} nats per target character"
            )
        if self._half_blank:
            told.append(
                f"note: {len(self._half_blank)} of {self.lines} lines are blank on one side only, first line "
                f"{self._half_blank[0]}; is the text aligned?"
            )
        return told
