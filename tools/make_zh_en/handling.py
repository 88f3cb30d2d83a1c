"""Statements of what is done with a certain thing: 把, 被, and the object as topic.

Scope: declarative clauses without their final mark.
"""

from dataclasses import replace
from random import Random

from . import clauses as c
from .clauses import Predicate, clause
from .english import participle
from .noun_phrases import NounPhrase, definite_thing, other_person, relative_of, somebody, the_thing
from .nouns import Noun, nouns_with
from .phrase import EMPTY, Phrase, arrange, en_only, sequence, unit, zh_only
from .predicates import PURPOSES, transitive
from .relatives import relative_thing
from .times import when
from .verbs import DISPOSALS, RECEIVER_DISPOSALS


def disposal(rng: Random, subject: NounPhrase) -> Phrase:
    """他把衣服洗干净了: the 把 construction."""
    if rng.random() < 0.3:
        return giving_away(rng, subject)
    verb = rng.choice(DISPOSALS)
    noun = rng.choice(nouns_with(verb.takes))
    thing = _disposed(rng, noun)
    object_ = arrange(zh=(), en=(thing.object, verb.after))
    return _with_ba(rng, subject, thing, Predicate(((verb.zh, verb.en),), object_))


def giving_away(rng: Random, subject: NounPhrase) -> Phrase:
    """他把书还给了图书馆…: giving a thing to a person."""
    zh, en, takes = rng.choice(RECEIVER_DISPOSALS)
    thing = _disposed(rng, rng.choice(nouns_with(takes)))
    receiver = rng.choice((other_person, relative_of))(rng).object
    object_ = arrange(zh=(receiver,), en=(thing.object, "to", receiver))
    return _with_ba(rng, subject, thing, Predicate(((zh, en),), object_))


def _disposed(rng: Random, noun: Noun) -> NounPhrase:
    kind = rng.random()
    if kind < 0.5:
        return the_thing(noun)
    if kind < 0.85:
        return definite_thing(rng, noun)
    return relative_thing(rng, noun)


def _with_ba(rng: Random, subject: NounPhrase, thing: NounPhrase, predicate: Predicate) -> Phrase:
    ba = zh_only(sequence(unit("把", ""), thing.object))
    predicate = c.with_modifier(predicate, ba)
    kind = rng.random()
    time_first = thing.heavy or rng.random() < 0.15
    if kind < 0.55:
        return clause(subject, predicate, c.PAST, time=when(rng, "past"), time_first=time_first)
    if kind < 0.75:
        return clause(subject, predicate, c.ALREADY)
    if kind < 0.9:
        return clause(subject, predicate, c.SHOULD, negative=rng.random() < 0.3)
    return clause(subject, predicate, c.FUTURE, time=when(rng, "future"), time_first=time_first)


def passive(rng: Random, subject: NounPhrase) -> Phrase:
    """我的自行车被他弟弟骑走了."""
    verb = rng.choice([verb for verb in DISPOSALS if verb.passive])
    noun = rng.choice(nouns_with(verb.takes))
    thing = definite_thing(rng, noun)
    agent = sequence(unit("被", "by"), somebody(rng).object)
    en = f"be {_participle(verb.en)} {verb.after}".strip()
    predicate = Predicate(((verb.zh, en),), modifiers=(agent,))
    time = when(rng, "past") if rng.random() < 0.6 else EMPTY
    return clause(thing, predicate, c.PAST, time=time)


def _participle(lemma: str) -> str:
    first, _, rest = lemma.partition(" ")
    return f"{participle(first)} {rest}".strip()


def topic(rng: Random, subject: NounPhrase) -> Phrase:
    """那本书我没看过: the object first."""
    predicate = transitive(rng, definite=True)
    thing = predicate.object
    zh_free = replace(predicate, object=en_only(thing))
    aspect, negative = rng.choice(
        (
            (c.EXPERIENCE, True),
            (c.EXPERIENCE, False),
            (c.ALREADY, False),
            (c.CAN, True),
            (c.SHOULD, True),
            (c.HABIT, True),
        )
    )
    if aspect is c.HABIT:
        zh_free = c.with_verb(zh_free, rng.choice(PURPOSES))
    body = clause(subject, zh_free, aspect, negative=negative)
    return arrange(zh=(thing, body), en=(body,))
