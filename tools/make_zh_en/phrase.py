"""Paired phrases: Chinese and English built side by side, with word alignment.

Scope: concatenation and rendering. Knows no word of either language.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, eq=False)
class Unit:
    """Word sequences that translate each other; compared by identity, so that each use is one link."""

    zh: tuple[str, ...]
    en: str


Word = tuple[str, Unit | None]


@dataclass(frozen=True)
class Phrase:
    """A Chinese and an English word sequence; a word may belong to a `Unit` that ties both sides."""

    zh: tuple[Word, ...] = ()
    en: tuple[Word, ...] = ()


EMPTY = Phrase()
Part = Phrase | str
Builder = Callable[[Random], Phrase]
"""What draws a phrase."""


def unit(zh: str, en: str) -> Phrase:
    """One aligned unit; both sides are words divided by spaces, and either may be empty."""
    link = Unit(tuple(zh.split()), en)
    return Phrase(tuple((word, link) for word in link.zh), tuple((word, link) for word in en.split()))


def arrange(zh: Sequence[Part], en: Sequence[Part]) -> Phrase:
    """Join the Chinese sides of `zh` and the English sides of `en`, each in its own order.

    A plain string contributes words that are aligned to nothing.
    """
    return Phrase(tuple(_words(zh, "zh")), tuple(_words(en, "en")))


def sequence(*parts: Phrase) -> Phrase:
    """Join phrases that stand in the same order in both languages."""
    return arrange(zh=parts, en=parts)


def zh_only(phrase: Phrase) -> Phrase:
    """The Chinese side alone, for a phrase whose English side stands elsewhere."""
    return Phrase(phrase.zh, ())


def en_only(phrase: Phrase) -> Phrase:
    """The English side alone."""
    return Phrase((), phrase.en)


def _words(parts: Sequence[Part], side: str) -> Iterator[Word]:
    for part in parts:
        if isinstance(part, str):
            yield from ((word, None) for word in part.split())
        else:
            yield from part.zh if side == "zh" else part.en


def chinese_text(phrase: Phrase) -> str:
    """The Chinese sentence as one writes it: no spaces."""
    return "".join(word for word, _ in phrase.zh)


def english_text(phrase: Phrase) -> str:
    """The English sentence as one writes it."""
    return english_line(word for word, _ in phrase.en)


def english_line(words: Iterable[str]) -> str:
    """Words and marks as one writes them: spaces, a capital first letter, no space before a mark."""
    text = " ".join(words)
    for mark in (",", ".", "?", "!"):
        text = text.replace(" " + mark, mark)
    return text[:1].upper() + text[1:]


def is_reordered(phrase: Phrase) -> bool:
    """True if the word alignment has a crossing: two linked units in opposite order in the two languages.

    A unit stands where its first word stands; units without a word on one of the sides do not count.
    """
    first_en: dict[Unit, int] = {}
    for position, (_, link) in enumerate(phrase.en):
        if link is not None:
            first_en.setdefault(link, position)
    order: dict[Unit, int] = {}
    for _, link in phrase.zh:
        if link is not None and link in first_en:
            order.setdefault(link, first_en[link])
    positions = list(order.values())
    return positions != sorted(positions)


def dictionary_pairs(phrase: Phrase) -> Iterator[tuple[str, str]]:
    """(Chinese word, English side of its unit) for every unit of one Chinese word, in Chinese order."""
    for word, link in phrase.zh:
        if link is not None and len(link.zh) == 1:
            yield word, link.en
