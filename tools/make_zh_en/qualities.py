"""Statements of what somebody or something is like: qualities, comparison, profession.

Scope: declarative clauses without their final mark.
"""

from random import Random

from . import clauses as c
from .clauses import Predicate, clause, copula, degree
from .english import CONTRACTED, be
from .noun_phrases import (
    SINGULAR_THIRD,
    NounPhrase,
    definite_thing,
    measured,
    other_person,
    possessed,
    relative_of,
    somebody,
)
from .nouns import ADJECTIVES, NOUNS, PERSONS, Adjective, Noun, qualities_of
from .phrase import EMPTY, Phrase, arrange, unit
from .relatives import relative_thing

STATES = frozenset({"state"})
PERSON = frozenset({"person"})
UNWELCOME = {
    "old",
    "big",
    "small",
    "expensive",
    "difficult",
    "heavy",
    "busy",
    "tired",
    "hungry",
    "angry",
}


def gradable(noun: Noun) -> list[Adjective]:
    """The adjectives one may say of the noun with "very"."""
    return [adjective for adjective in qualities_of(noun.tags) if adjective.comparative != "-"]


def _noun_and_quality(rng: Random) -> tuple[Noun, Adjective]:
    """An adjective and a noun that has it; adjectives of few nouns come as often as others."""
    adjective = rng.choice([adjective for adjective in ADJECTIVES if adjective.comparative != "-"])
    nouns = [noun for noun in NOUNS if adjective.tags & noun.tags]
    return (rng.choice(nouns), adjective) if nouns else _noun_and_quality(rng)


def _quality(rng: Random, adjective: Adjective) -> tuple[Predicate, bool]:
    """A predicate of quality and whether it is to be negated."""
    kind = rng.random()
    word = unit(adjective.zh, adjective.en)
    if kind < 0.2 and not adjective.zh.startswith("有"):
        return copula(word), True
    if kind < 0.3:
        too = unit("太", "too")
        return copula(arrange(zh=(too, word, "了"), en=(too, word))), False
    zh, en = rng.choice((("很", "very"), ("很", "very"), ("非常", "extremely"), ("有点儿", "a little")))
    if zh == "有点儿" and adjective.en not in UNWELCOME:
        zh, en = "很", "very"
    return copula(degree(zh, en, adjective.zh, adjective.en)), False


def thing_quality(rng: Random, subject: NounPhrase) -> Phrase:
    """这本书很有意思; also of a thing named by a relative clause."""
    noun, adjective = _noun_and_quality(rng)
    thing = relative_thing(rng, noun) if rng.random() < 0.5 else definite_thing(rng, noun, described=False)
    predicate, negative = _quality(rng, adjective)
    return clause(thing, predicate, c.HABIT, negative=negative)


def person_quality(rng: Random, subject: NounPhrase) -> Phrase:
    """我妈妈很忙."""
    adjective = rng.choice(qualities_of(STATES | PERSON))
    predicate, negative = _quality(rng, adjective)
    return clause(subject, predicate, c.HABIT, negative=negative)


def comparison(rng: Random, subject: NounPhrase) -> Phrase:
    """A比B高, A没有B高, A跟B一样高; of people or of things."""
    if rng.random() < 0.55:
        first, second = somebody(rng), other_person(rng)
        adjective = rng.choice(qualities_of(STATES | PERSON))
    else:
        noun, adjective = _noun_and_quality(rng)
        first = NounPhrase(p := measured(unit("这", "this"), noun), p, "it")
        second = NounPhrase(p := measured(unit("那", "that"), noun), p, "it")
    kind = rng.random()
    word = unit(adjective.zh, adjective.en)
    if kind < 0.2:
        than = unit("没有", "as")
        as_ = unit("", "as")
        phrase = arrange(zh=(than, second.object, word), en=(as_, word, than, second.object))
        return _negated_be(first, phrase)
    if kind < 0.4:
        same, with_ = unit("一样", "as"), unit("跟", "as")
        phrase = arrange(zh=(with_, second.object, same, word), en=(same, word, with_, second.object))
        return clause(first, copula(phrase), c.HABIT)
    more, than = unit(adjective.zh, adjective.comparative), unit("比", "than")
    much = rng.choice((EMPTY, EMPTY, unit("得 多", "much"), unit("一点儿", "a little")))
    phrase = arrange(zh=(than, second.object, more, much), en=(much, more, than, second.object))
    return clause(first, copula(phrase), c.HABIT)


def _negated_be(subject: NounPhrase, complement: Phrase) -> Phrase:
    is_not = CONTRACTED[be(subject.agreement)]
    return arrange(zh=(subject.subject, complement), en=(subject.subject, is_not, complement))


def identity(rng: Random, subject: NounPhrase) -> Phrase:
    """他是一位医生, 他是我的老师."""
    if subject.agreement == "they" or not subject.pronoun:
        subject = relative_of(rng)
    person = rng.choice([person for person in PERSONS if person.profession])
    noun = Noun(person.zh, person.measure, person.singular, person.plural, "-", frozenset())
    if rng.random() < 0.5:
        complement = measured(None, noun)
    else:
        owner = rng.choice(
            ("他们", "我们", "你们") if subject.pronoun in ("我", "你", *SINGULAR_THIRD) else ("我",)
        )
        complement = possessed(noun, owner).object
    return clause(subject, copula(complement, "是"), c.HABIT, negative=rng.random() < 0.15)
