"""Good translations -> broken ones as models make them: loops, copies of the source, early ends.

Everything is drawn from a generator that is handed in. Knows no detector.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from transformer_mt.text.words import counts_characters

CUTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""What is left of a translation that ends early."""
_LETTERS = re.compile(r"[^\W\d_]+")


def _units(text: str) -> tuple[list[str], str]:
    """Words or characters, and what joins them again."""
    return (list(text), "") if counts_characters([text]) else (text.split(), " ")


def looped(source: str, target: str, draw: random.Random) -> str:
    """The target up to some place, and then its last one to six words again and again."""
    words, glue = _units(target)
    end = draw.randint(1, len(words))
    phrase = words[max(end - draw.randint(1, 6), 0) : end]
    times = draw.randint(4 if len(phrase) == 1 else 3, 12)
    return glue.join([*words[:end], *phrase * (times - 1)])


def stuttering(source: str, target: str, draw: random.Random) -> str:
    """One of its words up to some letter, the last one to four of them 4 to 12 times, and the rest."""
    words = list(_LETTERS.finditer(target))
    if not words:
        return target
    word = draw.choice(words)
    end = draw.randint(word.start() + 1, word.end())
    piece = target[max(end - draw.randint(1, 4), word.start()) : end]
    return target[:end] + piece * draw.randint(3, 11) + target[end:]


def copied(source: str, target: str, draw: random.Random) -> str:
    """The source as it is."""
    return source


def nearly_copied(source: str, target: str, draw: random.Random) -> str:
    """The source with every tenth of its words, at least one, left out or replaced by one of the target."""
    words, glue = _units(source)
    others = _units(target)[0]
    for place in draw.sample(range(len(words)), -(-len(words) // 10)):
        words[place] = draw.choice(["", draw.choice(others)])
    return glue.join(word for word in words if word)


def cut(share: float) -> Callable[[str, str, random.Random], str]:
    """Leaves a share of the words of the target, at least one."""

    def shorten(source: str, target: str, draw: random.Random) -> str:
        words, glue = _units(target)
        return glue.join(words[: max(int(len(words) * share), 1)])

    return shorten


def cut_somewhere(source: str, target: str, draw: random.Random) -> str:
    """Leaves less than 60% of the target."""
    return cut(draw.uniform(0.0, 0.6))(source, target, draw)


PLANTED: dict[str, Callable[[str, str, random.Random], str]] = {
    "loop": looped,
    "stutter": stuttering,
    "copy": copied,
    "near copy": nearly_copied,
    "cut below 60%": cut_somewhere,
}
