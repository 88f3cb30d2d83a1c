"""What `translate` reads: lines of text or JSON Lines, each with the prefix its translation shall begin with.

Knows nothing of models; what is done with a line, and written about it, is not known here either.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transformer_mt.cli.input_lines import checked, is_json, made_of_lines, object_of
from transformer_mt.errors import DataError
from transformer_mt.text.arrivals import Line, lines_of
from transformer_mt.text.json_lines import text_of
from transformer_mt.text.lines import is_blank

INPUT_FORMATS = ("text", "jsonl")


@dataclass(frozen=True)
class SourceLine:
    """One line to translate.

    raw is the line as it was read, or the JSON object that holds the text; prefix is what its
    translation shall begin with.
    """

    text: str
    raw: str
    is_json: bool
    prefix: str

    @property
    def key(self) -> bytes:
        """All that its translation depends on."""
        return f"{self.raw}\n{self.prefix}\n{self.is_json}".encode()


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
            prefix_file: file with one prefix a line, or `-`, for all sources together.
            taken: fields that a JSON object must not have, since they will be added.
        """
        self._files = list(files)
        self._kind = kind
        self._fields, self._field = fields, fields[0]
        self._prefix_field = prefix_field
        self._prefix_file = prefix_file
        self._taken = frozenset(taken)

    @property
    def named(self) -> list[str]:
        """All files that are read, and `-`."""
        return [*self._files, self._prefix_file] if self._prefix_file else self._files

    def count(self) -> int | None:
        """Number of lines, if no source is a stream; see `checked`."""
        return checked(self.named, self.buffers)

    def buffers(self, size: int) -> Iterator[list[SourceLine]]:
        """The lines in order, as they come; see `made_of_lines`.

        Raises:
            DataError: unreadable files, bytes that are not UTF-8, a line that is no JSON object with a text,
                not as many prefixes as lines; the lines before come first.
        """
        self._field = self._fields[0]
        prefixes = lines_of(self._prefix_file) if self._prefix_file else None
        yield from made_of_lines(self._files, size, lambda line: self._source_line(line, prefixes))
        if prefixes is not None and (more := sum(1 for _ in prefixes)):
            raise DataError(f"{self._prefix_file}: has {more} more lines than the source; give it one a line")

    def _source_line(self, line: Line, prefixes: Iterator[str] | None) -> SourceLine:
        raw, text, prefix = line.text, line.text, ""
        from_json = is_json(line.file, self._kind)
        if from_json and is_blank(raw):
            raw = json.dumps({self._field: text}, ensure_ascii=False)  # an object like those around it
        elif from_json:
            text, prefix = self._from_json(line)
        if prefixes is not None:
            found = next(prefixes, None)
            if found is None:
                raise DataError(
                    f"{self._prefix_file}: has no line for {line.file}:{line.number}; give it one a line"
                )
            prefix = found
        return SourceLine(text, raw, from_json, "" if is_blank(prefix) else prefix)

    def _from_json(self, line: Line) -> tuple[str, str]:
        where = f"{line.file}:{line.number}"
        record, columns = object_of(line, where, self._taken)
        field = next((name for name in self._fields if name in columns), None)
        if field is None:
            raise DataError(
                f"{where}: has no field {' or '.join(self._fields)}, only {', '.join(columns) or 'none'}; "
                "name that of the source text with --source-field"
            )
        self._field = field
        return text_of(columns[field], where, field), self._prefix_of(record, where)

    def _prefix_of(self, record: dict[str, Any], where: str) -> str:
        if self._prefix_field is None or record.get(self._prefix_field) is None:
            return ""
        return text_of(record[self._prefix_field], where, self._prefix_field)
