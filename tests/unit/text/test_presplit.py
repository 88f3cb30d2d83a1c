"""Text that was cut into pieces before it came here."""

from __future__ import annotations

from transformer_mt.text.presplit import count_presplit, presplit_note


def test_marks_in_a_line_or_two_are_text() -> None:
    """B161, B028: a tenth of the lines may hold what looks like marks; more of them are a mistake."""
    lines = ["a b", "mail@@ x", "\u2581a \u2581b", "a@@b", "x ##y", ""]
    assert count_presplit(lines) == 2
    assert presplit_note(2, 20, "lines") is None
    assert presplit_note(0, 0, "lines") is None
    note = presplit_note(3, 20, "source lines")
    assert note is not None
    assert note.startswith('3 of 20 source lines hold U+2581 or "@@ "')
