"""What must survive a translation as it is: tags and protected strings of a line, both or either.

Tags come out first and go back last, so that protected strings are looked for in the text between them, and
no tag comes to stand inside of one. Between tags entities are read, and written again in what goes back.
Knows neither tokens nor models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from transformer_mt.text.entities import Readable, read_entities, write_entities
from transformer_mt.text.lines import is_blank, one_line
from transformer_mt.text.markup import Stripped, take_out
from transformer_mt.text.placing import Alignment, Span
from transformer_mt.text.protection import (
    compile_patterns,
    guard,
    is_all_protected,
    lacks_protected,
    protected_spans,
    united,
)
from transformer_mt.text.tag_layout import put_back


@dataclass(frozen=True)
class Source:
    """A line that is ready for a model.

    text: what the model shall translate, without tags and entities. untouched: the whole line, if it is its
    own translation and no model shall see it: there is nothing in it but tags, protected strings and marks.
    """

    text: str
    untouched: str | None
    stripped: Stripped
    readable: Readable
    spans: list[Span]

    @property
    def is_plain(self) -> bool:
        """Whether a translation is right as the model writes it."""
        return not (self.spans or self.stripped.tags or self.readable.has_entities)


class Verbatim:
    """Takes out of lines, and puts into their translations, what must stay as it is."""

    def __init__(self, protect: Sequence[str] = (), *, tags: bool = False) -> None:
        """Say what must stay.

        Args:
            protect: regular expressions; each match in a line stands in its translation, as often as in the
                line or more. With tags, what they match with entities, or with what these stand for.
            tags: whether tags and entities of HTML and XML are no text.

        Raises:
            ConfigError: a regular expression that cannot be used.
        """
        self._patterns = compile_patterns(protect)
        self._tags = tags

    def source(self, line: str) -> Source:
        """Make a line ready. Numbers of units in alignments are those of `Source.text`."""
        line = one_line(line)
        stripped, readable = (
            _read(take_out(line)) if self._tags else (Stripped(line, []), Readable(line, line))
        )
        text = stripped.text
        spans = protected_spans(text, self._patterns)
        if readable.has_entities:
            spans = united([*map(readable.whole, spans), *self._protected_as_written(readable)])
        alone = is_all_protected(text, spans) or (is_blank(text) and not is_blank(line))
        return Source(text, line if alone else None, stripped, readable, spans)

    def _protected_as_written(self, readable: Readable) -> Iterator[Span]:
        """What the patterns match where entities are not read, if no entity is cut: 39 is none of `&#39;`."""
        line = "".join(readable.written)
        spans = protected_spans(line, self._patterns)
        places = readable.places(place for span in spans for place in span)
        for (start, end), first, last in zip(spans, places[::2], places[1::2], strict=True):
            if "".join(readable.written[first:last]) == line[start:end]:
                yield first, last

    def needs_alignment(self, source: Source, translation: str) -> bool:
        """Whether `finish` has to know which words belong together."""
        return bool(source.stripped.tags) or lacks_protected(
            source.text, source.spans, translation, self._patterns
        )

    def finish(
        self, source: Source, translation: str, alignment: Alignment, *, prefix: str = ""
    ) -> tuple[str, list[tuple[int, int]]]:
        """Put into a translation what must stand in it.

        Args:
            source: the line.
            translation: of `source.text`.
            alignment: between both; may be empty where `needs_alignment` says no.
            prefix: what the translation was made to begin with; it stays as it is.

        Returns:
            The text, and the alignment with the protected strings that came in: its target units are those of
            the text without tags.

        Raises:
            ValueError: the alignment names a unit that is not there.
        """
        guarded = guard(source.text, source.spans, translation, alignment, self._patterns)
        written = None
        if source.stripped.tags or source.readable.has_entities:
            typed = len(prefix) if guarded.text.startswith(prefix) else 0
            written = write_entities(guarded.text, source.readable, guarded.copies, typed=typed)
        text = put_back(guarded.text, source.stripped, guarded.alignment, guarded.spans, written)
        return text, guarded.alignment


def _read(stripped: Stripped) -> tuple[Stripped, Readable]:
    """A line without tags, with its entities read; the tags keep their places."""
    readable = read_entities(stripped.text)
    if not readable.has_entities:
        return stripped, readable
    places = readable.places(tag.place for tag in stripped.tags)
    tags = [replace(tag, place=place) for tag, place in zip(stripped.tags, places, strict=True)]
    return Stripped(readable.text, tags), readable
