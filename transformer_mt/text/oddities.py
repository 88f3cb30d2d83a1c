"""What looks wrong in a translation at a glance, from the two texts alone.

None of the signs proves anything, and what shows none may still be wrong: models loop, copy and stop early in
ways that these find, and whether a translation is good they cannot say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from transformer_mt.text.lines import is_blank, trimmed
from transformer_mt.text.proportion import Proportion
from transformer_mt.text.split import ends_sentence
from transformer_mt.text.words import WITHOUT_SPACES, counts_characters, needs_no_space, units

# How often something stands in a row before it counts as repeated.
_TIMES, _TIMES_SINGLE = 3, 4
# So many words, or characters, are a loop when they stand twice in a row.
_TWICE_WORDS, _TWICE_CHARACTERS = 5, 10
# Inside a word, or where no words are: one to ten characters four times, because people write "hahaha"; marks
# alone eight times, because they write rows of them.
_STUTTER = re.compile(r"([^\W\d_][^\s\d]{0,9}?)\1{3}|([^\s\d]{1,10}?)\2{7}")
_CHUNK = re.compile(rf"[{WITHOUT_SPACES}]|[^\s{WITHOUT_SPACES}]+")
_MARKS = ".,;:!?…\"'’”“„‚‘«»()[]-–—"
# What is written so is no sentence: code, addresses, paths.
_CODE = re.compile(r"[=<>{}\\|_@#$^~`]|\w[(\[]|://|::|\w/\w|;$")
# The share of words that must come back in a copy, and how many words a copy has that is not exact.
_COPIED, _FEWEST_COPIED = 0.75, 3
# Fewer words, or characters, may be a name or a title, if no letter case and no final mark tells.
_FEWEST_OF_A_SENTENCE, _FEWEST_WITHOUT_CASE = 3, 5


def oddities(source: str, target: str, proportion: Proportion | None = None) -> tuple[str, ...]:
    """What looks wrong, in this order, each at most once.

    - empty: nothing to see, though the source shows something.
    - loop: words or characters over and over, though the source has nothing of the kind.
    - copy: the source again, though it is no name, number, address or code.
    - short, long: out of proportion; known only with a `Proportion`.
    """
    if is_blank(target):
        return () if is_blank(source) else ("empty",)
    signs = {
        "loop": loops(target) and not loops(source),
        "copy": copies(source, target),
        "short": proportion is not None and proportion.is_short(source, target),
        "long": proportion is not None and proportion.is_long(source, target),
    }
    return tuple(name for name, seen in signs.items() if seen)


def loops(text: str) -> bool:
    """Whether something stands in a row too often: see `repeats`; of five words or ten characters, twice; a
    piece of a word, four times."""
    characters, text = counts_characters([text]), text.lower()
    sequence = units(text, characters=characters)
    twice = _TWICE_CHARACTERS if characters else _TWICE_WORDS
    return repeats(sequence, twice=twice) or _STUTTER.search(text) is not None


def repeats(sequence: Sequence[str], *, twice: int | None = None) -> bool:
    """Whether one unit stands four times in a row, or a longer sequence of units three times.

    Args:
        sequence: units of a text.
        twice: a sequence of at least so many units counts when it stands there twice.
    """
    length = len(sequence)
    for period in range(1, length // 2 + 1):
        times = _TIMES_SINGLE if period == 1 else _TIMES
        if twice is not None and period >= twice:
            times = 2
        needed = period * (times - 1)
        if period + needed > length:
            continue
        # So many equal neighbours in a row hold a multiple of the period: long lines take no time squared.
        for place in range(period, length, period):
            if sequence[place] == sequence[place - period] and _stands(sequence, place, period, needed):
                return True
    return False


def _stands(sequence: Sequence[str], place: int, period: int, needed: int) -> bool:
    """Whether `needed` places in a row, this one among them, equal those a period before."""
    start, end = place, place + 1
    while end < len(sequence) and end - start < needed and sequence[end] == sequence[end - period]:
        end += 1
    while start > period and end - start < needed and sequence[start - 1] == sequence[start - 1 - period]:
        start -= 1
    return end - start >= needed


def copies(source: str, target: str) -> bool:
    """Whether the target is the source again, exactly or in three of four words, and should not be.

    Only words that any language would change count: letters alone, not capitalised as names are. In scripts
    without spaces every character is one.
    """
    words = _changing(source)
    needed = _FEWEST_COPIED
    if trimmed(source) == trimmed(target):
        needed = 1 if ends_sentence(source) and len(_words(source)) >= _FEWEST_OF_A_SENTENCE else 2
        if not ends_sentence(source) and source.lower() == source.upper():
            needed = _FEWEST_WITHOUT_CASE
    if len(set(words)) < needed or _CODE.search(source):
        return False
    kept = Counter(words) & Counter(_words(target.lower()))
    return kept.total() >= _COPIED * len(words)


def _changing(source: str) -> list[str]:
    """The words of a source that a translation does not keep, in lower case."""
    words = _words(source)
    if source.isupper():
        return [word.lower() for word in words] if len(words) >= _FEWEST_COPIED else []
    return [word for word in words if word[0] == word[0].lower() and (len(word) > 1 or needs_no_space(word))]


def _words(text: str) -> list[str]:
    """Words of letters alone, without marks around them; single characters of scripts without spaces."""
    bare = (chunk.strip(_MARKS) for chunk in _CHUNK.findall(text))
    return [word for word in bare if word.isalpha() or (word[:1].isalpha() and not word.isascii())]
