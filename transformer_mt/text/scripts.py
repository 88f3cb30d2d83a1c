"""The script a character belongs to, by Unicode, under the name people give it. Knows nothing of tokens."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from fontTools import unicodedata as unicode_scripts

# Unicode's "Common", "Inherited" and "Unknown": characters that no script has for itself.
_NO_SCRIPT = frozenset({"Zyyy", "Zinh", "Zzzz"})
_KINDS = {
    "L": "letters of several scripts",
    "M": "combining marks",
    "N": "numbers",
    "P": "punctuation",
    "S": "symbols and emoji",
    "Z": "spaces",
    "C": "control and unassigned characters",
}


@lru_cache(maxsize=65_536)
def script_of(character: str) -> str:
    """`Han`, `Cyrillic`, …; what belongs to no script is named by its kind (`symbols and emoji`, …)."""
    script = unicode_scripts.script(character)
    if script in _NO_SCRIPT:
        return _KINDS[unicodedata.category(character)[0]]
    return str(unicode_scripts.script_name(script))
