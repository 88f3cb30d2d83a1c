"""What must survive a translation as it is: tags and protected strings of a line, both or either.

Tags come out first and go back last, so that protected strings are looked for in the text between them, and
no tag comes to stand inside of one. Knows neither tokens nor models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_mt.text.lines import is_blank, one_line
from transformer_mt.text.markup import Stripped, take_out
from transformer_mt.text.placing import Alignment, Span
from transformer_mt.text.protection import (
    compile_patterns,
    guard,
    is_all_protected,
    lacks_protected,
    protected_spans,
)
from transformer_mt.text.tag_layout import put_back


@dataclass(frozen=True)
class Source:
    """A line that is ready for a model.

    text: what the model shall translate, without tags. untouched: the whole line, if it is its own
    translation and no model shall see it: there is nothing in it but tags, protected strings and marks.
    """

    text: str
    untouched: str | None
    stripped: Stripped
    spans: list[Span]


class Verbatim:
    """Takes out of lines, and puts into their translations, what must stay as it is."""

    def __init__(self, protect: Sequence[str] = (), *, tags: bool = False) -> None:
        """Say what must stay.

        Args:
            protect: regular expressions; each match in a line stands in its translation, as often as in the
                line or more.
            tags: whether tags of HTML and XML are taken out and put back; else they are text.

        Raises:
            ConfigError: a regular expression that cannot be used.
        """
        self._patterns = compile_patterns(protect)
        self._tags = tags

    def source(self, line: str) -> Source:
        """Make a line ready. Numbers of units in alignments are those of `Source.text`."""
        line = one_line(line)
        stripped = take_out(line) if self._tags else Stripped(line, [])
        spans = protected_spans(stripped.text, self._patterns)
        alone = is_all_protected(stripped.text, spans) or (is_blank(stripped.text) and bool(stripped.tags))
        return Source(stripped.text, line if alone else None, stripped, spans)

    def needs_alignment(self, source: Source, translation: str) -> bool:
        """Whether `finish` has to know which words belong together."""
        return bool(source.stripped.tags) or lacks_protected(
            source.text, source.spans, translation, self._patterns
        )

    def finish(
        self, source: Source, translation: str, alignment: Alignment
    ) -> tuple[str, list[tuple[int, int]]]:
        """Put into a translation what must stand in it.

        Args:
            source: the line.
            translation: of `source.text`.
            alignment: between both; may be empty where `needs_alignment` says no.

        Returns:
            The text, and the alignment with the protected strings that came in: its target units are those of
            the text without tags.

        Raises:
            ValueError: the alignment names a unit that is not there.
        """
        guarded = guard(source.text, source.spans, translation, alignment, self._patterns)
        text = put_back(guarded.text, source.stripped, guarded.alignment, guarded.spans)
        return text, guarded.alignment
