"""Text -> the units that its length and its rare words are counted in, and that alignments number.

Units are words between spaces; where most letters belong to a script that is written without spaces (Chinese,
Japanese, Thai, Lao, Khmer, Burmese) or is counted in characters by custom (Korean), they are characters. The
text decides, not a language code.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""The letters of scripts that are written without spaces, as they stand in a character class."""
_KOREAN = "\uac00-\ud7a3"
# As wide as the characters of such scripts: a sentence may end at one, with no space after it.
_WIDE_MARKS = "\u3001-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_COUNTED = re.compile(f"[{WITHOUT_SPACES}{_KOREAN}]")
_ALONE = re.compile(f"[{WITHOUT_SPACES}{_WIDE_MARKS}]")
_UNIT = re.compile(rf"{_ALONE.pattern}|(?:(?!{_ALONE.pattern})\S)+")
# So many lines tell what script a text is in.
_ENOUGH_LINES = 1000


def counts_characters(texts: Sequence[str]) -> bool:
    """Whether these texts are counted in characters, not in words."""
    text = "".join(texts[:_ENOUGH_LINES])
    letters = sum(map(str.isalpha, text))
    return 2 * len(_COUNTED.findall(text)) > letters


def units(text: str, *, characters: bool) -> list[str]:
    """The words of a text, or its characters without white space."""
    return list("".join(text.split())) if characters else text.split()


def unit_spans(text: str) -> list[tuple[int, int]]:
    """Where the units that an alignment numbers stand in one line.

    They are the words between spaces; of a script that is written without them each character is one, with
    the marks above and below it. A line may mix both: a link in a Chinese line is a word among characters.

    Returns:
        Of each unit, in order, the place of its first character and the place after its last.
    """
    spans: list[tuple[int, int]] = []
    for match in _UNIT.finditer(text):
        start, end = match.span()
        if spans and spans[-1][1] == start and unicodedata.category(text[start]).startswith("M"):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def needs_no_space(character: str) -> bool:
    """Whether a character is written without spaces around it: of such a script, or one of its wide marks."""
    return _ALONE.match(character) is not None


def words(text: str, *, characters: bool) -> list[str]:
    """The units that are words: in lower case, without punctuation around them."""
    return [word for unit in units(text.lower(), characters=characters) if (word := _bare(unit))]


def word_counts(lines: Iterable[str], wanted: Iterable[str], *, characters: bool) -> dict[str, int]:
    """How often each wanted word stands in the lines; 0 for one that never does."""
    counts = dict.fromkeys(wanted, 0)
    raw: Counter[str] = Counter()
    for line in lines:
        raw.update(units(line.lower(), characters=characters))
    for unit, number in raw.items():
        word = _bare(unit)
        if word in counts:
            counts[word] += number
    return counts


def _bare(unit: str) -> str:
    """The unit from its first letter or digit to its last visible mark that is not punctuation."""
    start, end = 0, len(unit)
    while start < end and not unit[start].isalnum():
        start += 1
    while end > start and not unit[end - 1].isalnum():
        end -= 1
    return unit[start:end]
