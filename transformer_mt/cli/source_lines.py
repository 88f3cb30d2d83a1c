"""What `translate` reads: lines of text or JSON Lines, each with the prefix its translation shall begin with.

Knows nothing of models; what is done with a line, and written about it, is not known here either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transformer_mt.errors import DataError
from transformer_mt.text.arrivals import STDIN, Line, arriving_lines, is_regular
from transformer_mt.text.json_lines import columns_of, parse_json, text_of
from transformer_mt.text.lines import PACKED_SUFFIXES, is_blank, read_lines

INPUT_FORMATS = ("text", "jsonl")
_JSON_SUFFIXES = tuple(f".jsonl{suffix}" for suffix in PACKED_SUFFIXES)
# So many lines at a time are looked at before the first is translated.
_CHECKED_TOGETHER = 4096


@dataclass(frozen=True)
class SourceLine:
    """One line to translate.

    raw is the line as it was read, which may be a JSON object that holds the text; prefix is what its
    translation shall begin with.
    """

    text: str
    raw: str
    is_json: bool
    prefix: str

    @property
    def key(self) -> bytes:
        """All that its translation depends on."""
        return f"{self.raw}\n{self.prefix}".encode()


class SourceLines:
    """The lines of files and streams, in buffers."""

    def __init__(
        self,
        files: Sequence[str],
        *,
        kind: str | None = None,
        fields: Sequence[str] = ("src",),
        prefix_field: str | None = None,
        prefix_file: str | None = None,
        taken: Collection[str] = (),
    ) -> None:
        """Name the sources; nothing is read yet.

        Args:
            files: paths, or `-` for standard input.
            kind: text or jsonl; None tells it by the name of each file.
            fields: where in a JSON object the source text is: the first of them that it has.
            prefix_field: where in a JSON object the prefix is, if anywhere.
            prefix_file: file with one prefix a line, for all sources together.
            taken: fields that a JSON object must not have, since they will be added.
        """
        self.files = list(files)
        self._kind = kind
        self._fields = fields
        self._prefix_field = prefix_field
        self._prefix_file = prefix_file
        self._taken = frozenset(taken)

    def count(self) -> int | None:
        """Read everything once: what cannot be used shows before anything is done.

        Returns:
            Number of lines; None where a source is a stream, which cannot be read twice.

        Raises:
            DataError: as `buffers`.
        """
        named = [*self.files, self._prefix_file] if self._prefix_file else self.files
        if STDIN in named or not all(map(is_regular, named)):
            for file in named:
                if file != STDIN and is_regular(file):
                    next(read_lines(file), None)  # one that cannot be opened is told at once all the same
            return None
        return sum(map(len, self.buffers(_CHECKED_TOGETHER)))

    def buffers(self, size: int) -> Iterator[list[SourceLine]]:
        """The lines in order, as they come; see `arriving_lines`.

        Raises:
            DataError: unreadable files, bytes that are not UTF-8, a line that is no JSON object with a text,
                not as many prefixes as lines; the lines before come first.
        """
        prefixes = read_lines(self._prefix_file) if self._prefix_file else None
        for lines in arriving_lines(self.files, size):
            done: list[SourceLine] = []
            try:
                for line in lines:
                    done.append(self._source_line(line, prefixes))
            except DataError:
                if done:
                    yield done
                raise
            yield done
        if prefixes is not None and (more := sum(1 for _ in prefixes)):
            raise DataError(f"{self._prefix_file}: has {more} more lines than the source; give it one a line")

    def _source_line(self, line: Line, prefixes: Iterator[str] | None) -> SourceLine:
        is_json = _is_json(line.file, self._kind) and not is_blank(line.text)
        text, prefix = self._from_json(line) if is_json else (line.text, "")
        if prefixes is not None:
            found = next(prefixes, None)
            if found is None:
                raise DataError(
                    f"{self._prefix_file}: has no line for {line.file}:{line.number}; give it one a line"
                )
            prefix = found
        return SourceLine(text, line.text, is_json, "" if is_blank(prefix) else prefix)

    def _from_json(self, line: Line) -> tuple[str, str]:
        where = f"{line.file}:{line.number}"
        record = parse_json(line.text, where)
        columns = columns_of(record, where)
        field = next((name for name in self._fields if name in columns), None)
        if field is None:
            raise DataError(
                f"{where}: has no field {' or '.join(self._fields)}, only {', '.join(columns) or 'none'}; "
                "name that of the source text with --source-field"
            )
        if clash := next((name for name in record if name in self._taken), None):
            raise DataError(
                f"{where}: has a field {clash} already; give those that are added other names, "
                "such as mt_translation with --added-prefix mt_"
            )
        return text_of(columns[field], where, field), self._prefix_of(record, where)

    def _prefix_of(self, record: dict[str, Any], where: str) -> str:
        if self._prefix_field is None or record.get(self._prefix_field) is None:
            return ""
        return text_of(record[self._prefix_field], where, self._prefix_field)


def reads_json(files: Sequence[str], kind: str | None) -> bool:
    """Whether any of the files is JSON Lines; see `SourceLines`."""
    return any(_is_json(file, kind) for file in files)


def _is_json(file: str, kind: str | None) -> bool:
    return kind == "jsonl" if kind else file.endswith(_JSON_SUFFIXES)
