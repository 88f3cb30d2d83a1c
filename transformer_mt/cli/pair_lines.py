"""What `score` reads: sources with translations of them, as two files, as two columns, or as JSON Lines.

Knows nothing of models; what is written about a line is not known here either.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from transformer_mt.cli.input_lines import checked, is_json, made_of_lines, object_of
from transformer_mt.errors import DataError
from transformer_mt.text.arrivals import Line
from transformer_mt.text.corpus import line_pairs, record_pair, tsv_pair
from transformer_mt.text.json_lines import text_of
from transformer_mt.text.lines import is_blank

INPUT_FORMATS = ("tsv", "jsonl")


@dataclass(frozen=True)
class PairLine:
    """A source and a translation of it; raw is the JSON object that they stood in, or empty."""

    src: str
    tgt: str
    raw: str = ""


class PairLines:
    """The pairs of files and streams, in buffers."""

    def __init__(
        self,
        files: Sequence[str],
        *,
        sides: tuple[str, str] | None = None,
        kind: str | None = None,
        languages: tuple[str, str] = ("src", "tgt"),
        fields: tuple[str, str] | None = None,
        taken: Collection[str] = (),
    ) -> None:
        """Name the sources; nothing is read yet.

        Args:
            files: columns or JSON Lines, or `-` for standard input.
            sides: a file of sources and one of translations instead; either may be `-`.
            kind: tsv or jsonl; None tells it by the name of each file.
            languages: where in a JSON object the texts are, if not in src and tgt.
            fields: where they are in any case.
            taken: fields that a JSON object must not have, since they will be added.
        """
        self._files = list(files)
        self._sides = sides
        self._kind = kind
        self._languages, self._fields = languages, fields
        self._taken = frozenset(taken)

    def count(self) -> int | None:
        """Number of lines, if no source is a stream; see `checked`."""
        return checked(self._sides or self._files, self.buffers)

    def buffers(self, size: int) -> Iterator[list[PairLine]]:
        """The pairs in order, as they come; see `made_of_lines`.

        Raises:
            DataError: unreadable files, bytes that are not UTF-8, a line that is not a pair, unequal numbers
                of lines; the lines before come first.
        """
        if self._sides is None:
            yield from made_of_lines(self._files, size, self._pair_line)
            return
        pairs = line_pairs(*self._sides)
        while buffer := [PairLine(*pair) for pair in islice(pairs, size)]:
            yield buffer

    def _pair_line(self, line: Line) -> PairLine:
        from_json = is_json(line.file, self._kind)
        if is_blank(line.text):
            names = self._fields or ("src", "tgt")
            return PairLine("", "", json.dumps(dict.fromkeys(names, "")) if from_json else "")
        where = f"{line.file}:{line.number}"
        if not from_json:
            return PairLine(*tsv_pair(line.text, where))
        record, columns = object_of(line, where, self._taken)
        if self._fields is None:
            return PairLine(*record_pair(record, where, *self._languages), line.text)
        if missing := next((name for name in self._fields if name not in columns), None):
            raise DataError(
                f"{where}: has no field {missing}, only {', '.join(columns) or 'none'}; name another"
            )
        source, target = (text_of(columns[name], where, name) for name in self._fields)
        return PairLine(source, target, line.text)
