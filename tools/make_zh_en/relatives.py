"""Noun phrases with a relative clause of their own: 我昨天买的那本书, 住在北京的那位老师.

Scope: the clause inside the noun phrase. Knows nothing of the sentence around it.
"""

from dataclasses import replace
from random import Random

from . import clauses as c
from .clauses import Predicate, clause
from .noun_phrases import NounPhrase, person_with_relative_clause, somebody, with_relative_clause
from .nouns import PERSONS, PLACES, Noun
from .phrase import EMPTY
from .predicates import PURPOSES, activity, at_place, transitive
from .times import when
from .verbs import TRANSITIVES, Transitive

USED_UP = {"吃", "喝"}
MAKING = Transitive("做", "make", "dish", "once")
# The subject inside a subject relative clause: nothing, since 的 stands for "who".
WHO = NounPhrase(EMPTY, EMPTY, "it")


def relative_thing(rng: Random, noun: Noun, other_than: str = "") -> NounPhrase:
    """A thing that somebody bought, wants to read, …: an object relative clause, not with the verb given."""
    verbs = [verb for verb in TRANSITIVES if verb.takes in noun.tags and verb.zh != other_than]
    if not verbs:
        verbs = [MAKING] if "dish" in noun.tags else [verb for verb in TRANSITIVES if verb.takes in noun.tags]
    verb = rng.choice(verbs)
    predicate = Predicate(((verb.zh, verb.en),))
    subject = somebody(rng)
    if verb.told == "past" or (verb.zh not in USED_UP and rng.random() < 0.6):
        body = clause(subject, predicate, c.PAST, time=when(rng, "past"), gap=True)
    else:
        body = clause(subject, c.with_verb(predicate, rng.choice(PURPOSES)), c.HABIT, gap=True)
    return with_relative_clause(rng, body, noun)


def relative_person(rng: Random) -> NounPhrase:
    """A person who does something: a subject relative clause."""
    person = rng.choice(PERSONS)
    kind = rng.random()
    if kind < 0.3:
        place = rng.choice([place for place in PLACES if place.tags & {"city", "work", "medical", "shop"}])
        if "city" in place.tags:
            body = clause(WHO, Predicate((("住", "live"),), at_place(place)), c.HABIT)
        else:
            person = rng.choice([person for person in PERSONS if person.profession])
            body = clause(WHO, Predicate((("工作", "work"),), modifiers=(at_place(place),)), c.HABIT)
    elif kind < 0.6:
        body = clause(WHO, replace(activity(rng, WHO, lasting=True), extent=EMPTY), c.PROGRESSIVE)
    else:
        predicate = transitive(rng) if kind < 0.8 else activity(rng, WHO)
        predicate = replace(predicate, extent=EMPTY)
        body = clause(WHO, predicate, c.PAST, time=when(rng, "past"), gap=True)
    return person_with_relative_clause(body, person)
