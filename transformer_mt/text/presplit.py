"""Text that another program has cut into pieces already: it would be cut twice, and score nothing.

Marks of pieces in a line or two are somebody's text; marks in many lines are a mistake. Knows nothing of
where lines come from.
"""

from __future__ import annotations

from collections.abc import Iterable

SPACE_MARK = "\u2581"
"""SentencePiece's mark for a space; decoded, it always becomes one."""
_JOINER = "@@ "
# Nobody writes these marks in a tenth of all lines.
_SHARE = 0.1


def count_presplit(texts: Iterable[str]) -> int:
    """How many texts hold a mark of pieces: U+2581, or "@@ " between the parts of a word."""
    return sum(SPACE_MARK in text or _JOINER in text for text in texts)


def presplit_note(found: int, lines: int, what: str) -> str | None:
    """What to say of so many texts with marks among all, if they are too many to be anybody's text.

    Args:
        what: what the texts are, for instance `source lines`.
    """
    if found <= _SHARE * lines:
        return None
    return (
        f'{found} of {lines} {what} hold U+2581 or "@@ ", marks of text that is cut into pieces already; '
        "give plain text, the tokenizer does the cutting"
    )
