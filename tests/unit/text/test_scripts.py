"""Names of scripts and of kinds of characters."""

from __future__ import annotations

import pytest

from transformer_mt.text.scripts import script_of


@pytest.mark.parametrize(
    ("characters", "name"),
    [
        ("aßıＡ", "Latin"),
        ("я", "Cyrillic"),
        ("猫々", "Han"),
        ("ひ", "Hiragana"),
        ("한", "Hangul"),
        ("ع", "Arabic"),
        ("😀€+", "symbols and emoji"),
        (",。“", "punctuation"),
        ("5½", "numbers"),
        (" \u3000", "spaces"),
        ("\u0301", "combining marks"),
        ("\x00\u200d\xad\x85\u0378", "control and unassigned characters"),
        ("ー", "letters of several scripts"),
    ],
)
def test_a_character_is_named(characters: str, name: str) -> None:
    """What people would look for in a report; no character is without a name."""
    assert {script_of(character) for character in characters} == {name}
