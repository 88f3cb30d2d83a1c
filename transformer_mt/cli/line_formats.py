"""Translations -> the lines that `translate` writes: text, columns, JSON Lines, Moses n-best lists.

Whatever a text holds, it cannot add a line or a column. Knows nothing of files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformer_mt.cli.source_lines import SourceLine
from transformer_mt.json_file import json_text

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Candidate, Translation

FORMATS = ("text", "tsv", "jsonl", "moses")
ADDED_FIELDS = ("translation", "score", "flags", "parts")
"""What a JSON object always gains; `nbest`, `alignment`, `tokens` and `token_scores` come when asked for."""
DIGITS = 6
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\r": "\\r", "\n": "\\n"})


@dataclass(frozen=True)
class LineFormat:
    """How translations are written.

    name is one of FORMATS; nbest says whether a line has several translations; added_prefix stands before the
    names of the fields that a JSON object gains; pieces spells target ids and the eos behind them, for token
    scores.
    """

    name: str
    nbest: bool = False
    alignment: bool = False
    token_scores: bool = False
    added_prefix: str = ""
    pieces: Callable[[Sequence[int]], list[str]] | None = None

    @property
    def added_fields(self) -> list[str]:
        """Every field that a JSON object gains."""
        nbest, alignment = ["nbest"] * self.nbest, ["alignment"] * self.alignment
        tokens = [] if not self.token_scores else ["tokens", "token_scores"]
        return [self.added_prefix + name for name in (*ADDED_FIELDS, *nbest, *alignment, *tokens)]

    def lines(
        self, first: int, sources: Sequence[SourceLine], translations: Sequence[Translation]
    ) -> list[str]:
        """What is written about these lines.

        Args:
            first: number of the first of them, from 1.
            sources: N lines as they were read.
            translations: of these lines, N.

        Returns:
            A line for each translation; of an n-best list in tsv and moses, one for each candidate.
        """
        write = {"text": self._text, "tsv": self._tsv, "jsonl": self._jsonl, "moses": self._moses}[self.name]
        found = enumerate(zip(sources, translations, strict=True), start=first)
        return [
            line for number, (source, translation) in found for line in write(number, source, translation)
        ]

    def _text(self, number: int, source: SourceLine, translation: Translation) -> list[str]:
        return [translation.text]

    def _tsv(self, number: int, source: SourceLine, translation: Translation) -> list[str]:
        rows = []
        for rank, one in enumerate(translation.nbest, start=1):
            row = [str(number), str(rank), decimal(one.score), ",".join(translation.flags), source.text]
            row.append(one.text)
            if self.alignment:
                row.append(_pharaoh(one))
            if self.token_scores:
                row += [" ".join(self._tokens(one)), " ".join(map(decimal, one.token_scores or ()))]
            rows.append(tab_separated(row))
        return rows

    def _jsonl(self, number: int, source: SourceLine, translation: Translation) -> list[str]:
        fields: dict[str, Any] = {
            **self._candidate(translation.nbest[0]),
            "flags": list(translation.flags),
            "parts": translation.num_parts,
        }
        if self.nbest:
            fields["nbest"] = [self._candidate(one) for one in translation.nbest]
        given = source.raw if source.is_json else json.dumps({"source": source.text}, ensure_ascii=False)
        return [with_fields(given, {self.added_prefix + name: value for name, value in fields.items()})]

    def _candidate(self, one: Candidate) -> dict[str, Any]:
        fields: dict[str, Any] = {"translation": one.text, "score": round(one.score, DIGITS)}
        if self.alignment:
            fields["alignment"] = _pharaoh(one)
        if self.token_scores:
            fields["tokens"] = self._tokens(one)
            fields["token_scores"] = [round(score, DIGITS) for score in one.token_scores or ()]
        return fields

    def _moses(self, number: int, source: SourceLine, translation: Translation) -> list[str]:
        lines = []
        for one in translation.nbest:
            features = f"Length= {len(one.ids)}"
            if self.token_scores:
                features = f"LogProb= {decimal(sum(one.token_scores or ()))} {features}"
            columns = [str(number - 1), one.text.replace("|||", "&#124;" * 3), features, decimal(one.score)]
            lines.append(" ||| ".join([*columns, _pharaoh(one)] if self.alignment else columns))
        return lines

    def _tokens(self, one: Candidate) -> list[str]:
        """As many as there are scores; a blank line has neither."""
        return self.pieces(one.ids) if self.pieces is not None and one.token_scores else []


def _pharaoh(one: Candidate) -> str:
    return " ".join(f"{src}-{tgt}" for src, tgt in one.alignment or ())


def tab_separated(columns: Sequence[str]) -> str:
    """One line; tabs, line ends and backslashes in a column are spelled \\t, \\r, \\n and \\\\."""
    return "\t".join(column.translate(_ESCAPES) for column in columns)


def with_fields(given: str, added: Mapping[str, Any]) -> str:
    """A JSON object as it was read, to the letter (numbers, escapes, doubled names), with fields behind."""
    opened = given.strip(" \t\r\n")[:-1].rstrip(" \t\r\n")
    return f"{opened}{'' if opened == '{' else ', '}{json_text(added)[1:]}"


def decimal(score: float) -> str:
    """A score as text."""
    return f"{score:.{DIGITS}f}"
