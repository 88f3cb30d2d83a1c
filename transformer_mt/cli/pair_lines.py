"""What `score` reads: sources with translations of them, as two files, as two columns, or as JSON Lines.

Knows nothing of models; what is written about a line is not known here either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from transformer_mt.cli.source_lines import reads_json
from transformer_mt.errors import DataError
from transformer_mt.text.arrivals import STDIN, Line, arriving_lines, is_regular
from transformer_mt.text.corpus import line_pairs, record_pair, tsv_pair
from transformer_mt.text.json_lines import columns_of, parse_json, text_of
from transformer_mt.text.lines import is_blank

INPUT_FORMATS = ("tsv", "jsonl")
# So many lines at a time are looked at before the first is scored.
_CHECKED_TOGETHER = 4096


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
            sides: a file of sources and one of translations instead.
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
        """Read everything once: what cannot be used shows before anything is done.

        Returns:
            Number of lines; None where a source is a stream, which cannot be read twice.

        Raises:
            DataError: as `buffers`.
        """
        named = self._sides or self._files
        if STDIN in named or not all(map(is_regular, named)):
            return None
        return sum(map(len, self.buffers(_CHECKED_TOGETHER)))

    def buffers(self, size: int) -> Iterator[list[PairLine]]:
        """The pairs in order, as they come; see `arriving_lines`.

        Raises:
            DataError: unreadable files, bytes that are not UTF-8, a line that is not a pair, unequal numbers
                of lines; the lines before come first.
        """
        if self._sides is not None:
            pairs = line_pairs(*self._sides)
            while buffer := [PairLine(*pair) for pair in islice(pairs, size)]:
                yield buffer
            return
        for lines in arriving_lines(self._files, size):
            done: list[PairLine] = []
            try:
                done.extend(map(self._pair_line, lines))
            except DataError:
                if done:
                    yield done
                raise
            yield done

    def _pair_line(self, line: Line) -> PairLine:
        if is_blank(line.text):
            return PairLine("", "")
        where = f"{line.file}:{line.number}"
        if not reads_json([line.file], self._kind):
            return PairLine(*tsv_pair(line.text, where))
        record = parse_json(line.text, where)
        columns = columns_of(record, where)
        if clash := next((name for name in record if name in self._taken), None):
            raise DataError(
                f"{where}: has a field {clash} already; give those that are added other names, "
                "such as mt_score with --added-prefix mt_"
            )
        if self._fields is None:
            return PairLine(*record_pair(record, where, *self._languages), line.text)
        if missing := next((name for name in self._fields if name not in columns), None):
            raise DataError(f"{where}: has no field {missing}, only {', '.join(columns) or 'none'}")
        source, target = (text_of(columns[name], where, name) for name in self._fields)
        return PairLine(source, target, line.text)
