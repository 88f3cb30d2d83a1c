"""Sloppy writing, drawn: a source shouted, in title case, with slips of the finger, without its final mark.

Only sources are noised, targets stay as written: a model then learns to translate sloppy text into clean
text. A draw is a row of numbers that is a pure function of (seed, epoch, example), and the noised text a pure
function of text, rates and row. Upper case is `str.upper`, which knows no language: ß becomes SS, i becomes I
in Turkish too, σ and ς both become Σ. Knows nothing of tokens or of where a seed comes from.
"""

from __future__ import annotations

import random
import re
import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from transformer_mt.text.lines import is_blank
from transformer_mt.text.words import counts_characters

Draws = npt.NDArray[np.float64]
"""(N, 3) numbers in [0, 1): letter case, slips and final mark of N examples."""

_NUM_DRAWS = 3
# Keeps these draws apart from others that are seeded with (seed, epoch, number).
_STREAM = 0x6E6F697365
_MOST_TYPOS = 3
_LETTERS_PER_TYPO = 10
_KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_FIRST_LETTER = re.compile(r"(?<!\S)([^\w\s]*)(\w)")
# Marks at the end of a sentence in any script; what closes a quotation or a bracket may stand behind them.
_FINAL_MARKS = re.compile(
    r"\s*[.!?…;\u037e\u0589\u061f\u06d4\u0964\u0965\u0f0d\u104a\u104b\u1362\u1367\u17d4\u17d5\u203c\u2047-\u2049"
    r"\u3002\uff01\uff0e\uff1f\uff61]+"
    r"(?=[\s\"'’”“»«›‹)\]』」）】》]*$)"
)


class NoiseRates(NamedTuple):
    """Shares of the sources, 0 … 1. Upper and title case exclude each other; the rest is drawn by itself."""

    upper: float = 0.0
    """The whole source in upper case."""
    title: float = 0.0
    """Every word of it capitalised."""
    typos: float = 0.0
    """One to three letters of it mistyped."""
    no_final_punctuation: float = 0.0
    """Its final mark removed."""

    def touched(self, draws: Draws) -> npt.NDArray[np.bool_]:
        """(N,) which examples are noised at all; their text may come out as it was all the same."""
        limits = (self.upper + self.title, self.typos, self.no_final_punctuation)
        hits: npt.NDArray[np.bool_] = np.any(draws < np.array(limits), axis=1)
        return hits

    def apply(self, text: str, draw: Draws) -> str:
        """The text as one row of draws wants it; never blank where the text is not."""
        case, slips, final = draw.tolist()
        noised = text
        if final < self.no_final_punctuation:
            noised = without_final_punctuation(noised)
        if slips < self.typos:
            noised = with_typos(noised, random.Random(int(slips * 2**53)))
        if case < self.upper:
            noised = noised.upper()
        elif case < self.upper + self.title:
            noised = title_case(noised)
        return text if is_blank(noised) else noised


def noise_draws(seed: int, epoch: int, start: int, count: int) -> Draws:
    """The draws of `count` examples from `start` on; each is the same whatever it is asked for with."""
    numbers = np.random.PCG64([seed, epoch, _STREAM]).advance(_NUM_DRAWS * start)
    return np.random.Generator(numbers).random((count, _NUM_DRAWS))


def title_case(text: str) -> str:
    """The first letter of every word in upper case; the others stay: `str.title` changes "don't"."""
    return _FIRST_LETTER.sub(lambda found: found[1] + found[2].title(), text)


def without_final_punctuation(text: str) -> str:
    """The text without the marks that end its last sentence; quotes and brackets behind them stay."""
    return _FINAL_MARKS.sub("", text)


def with_typos(text: str, generator: random.Random) -> str:
    """The text with one to three letters mistyped, fewer where it is short.

    A letter is left out, typed twice, exchanged with the next one, or (a-z) hit on the key beside it, on an
    English keyboard. In scripts without spaces, where one sign is a word, signs are left out or exchanged.
    """
    places = _letters(text)
    signs = list(text)
    slips = ("drop", "swap") if counts_characters([text]) else ("drop", "swap", "double", "key")
    most = min(_MOST_TYPOS, len(places) // _LETTERS_PER_TYPO + 1, len(places))
    for place in generator.sample(places, generator.randint(min(1, most), most)):
        _mistype(signs, place, generator.choice(slips), generator)
    return "".join(signs)


def _letters(text: str) -> list[int]:
    """Places of letters that carry no mark and are followed by another such letter of the same word.

    So the last letter is left alone, and so are digits, marks, and words of one letter.
    """
    bare = [
        sign.isalpha() and not unicodedata.category(after).startswith("M")
        for sign, after in zip(text, f"{text} "[1:], strict=True)
    ]
    return [place for place in range(len(text) - 1) if bare[place] and bare[place + 1]]


def _mistype(signs: list[str], place: int, slip: str, generator: random.Random) -> None:
    """Do one slip, in place; a letter that has no key is typed twice."""
    sign = signs[place]
    if slip == "drop":
        signs[place] = ""
    elif slip == "swap":
        signs[place], signs[place + 1] = signs[place + 1], sign
    else:
        beside = _keys_beside(sign.lower()) if slip == "key" else ""
        typed = generator.choice(beside) if beside else 2 * sign
        signs[place] = typed.upper() if beside and sign.isupper() else typed


def _keys_beside(letter: str) -> str:
    """The keys left and right of a letter's; none where the letter has no key."""
    for row in _KEY_ROWS:
        place = row.find(letter)
        if place >= 0:
            return row[max(place - 1, 0) : place] + row[place + 1 : place + 2]
    return ""
