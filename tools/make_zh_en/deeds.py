"""Statements of what somebody does, did, will do, wants or may do: one function a tense or mood.

Scope: declarative clauses without their final mark. The predicates come from `predicates`.
"""

from dataclasses import replace
from random import Random

from . import clauses as c
from .clauses import Predicate, clause
from .noun_phrases import NounPhrase, maybe_adjective, measured, pronoun
from .nouns import nouns_with
from .phrase import EMPTY, Phrase, unit
from .predicates import (
    FREQUENCY,
    WHOLE_DAYS,
    WISHES,
    activity,
    bare_activity,
    doing,
    habitual,
    how_long,
    transitive,
    wished,
)
from .times import when
from .verbs import ACTIVITIES

# What one has "just" done: 刚起床.
MOMENTARY = [a for a in ACTIVITIES if a.places == "minor" and a.verb in "起上下开关"]


def _time_and_order(rng: Random, sort: str, predicate: Predicate) -> tuple[Phrase, bool]:
    return when(rng, sort, far=predicate.far), rng.random() < 0.15


def past(rng: Random, subject: NounPhrase) -> Phrase:
    """他昨天买了一本书: what somebody did or did not do."""
    predicate = doing(rng, subject, past=True, minor=True)
    time, first = _time_and_order(rng, "past", predicate)
    negative = rng.random() < 0.12 and not predicate.counted and not predicate.extent.zh
    return clause(subject, predicate, c.PAST, time=time, time_first=first, negative=negative)


def lasting(rng: Random, subject: NounPhrase) -> Phrase:
    """他昨天看了三个小时书."""
    predicate = activity(rng, subject, lasting=True)
    days = predicate.verbs[-1][0] in WHOLE_DAYS
    predicate = replace(predicate, extent=how_long(rng, days=days))
    time = when(rng, "past", far=days, near=not days, exact=False)
    return clause(subject, predicate, c.PAST, time=time, time_first=rng.random() < 0.15)


def future(rng: Random, subject: NounPhrase) -> Phrase:
    """明天他会/要…: will, going to."""
    predicate = doing(rng, subject, minor=True)
    time, first = _time_and_order(rng, "future", predicate)
    aspect = rng.choice((c.FUTURE, c.GOING))
    negative = aspect is c.FUTURE and rng.random() < 0.2
    return clause(subject, predicate, aspect, time=time, time_first=first, negative=negative)


def habit(rng: Random, subject: NounPhrase) -> Phrase:
    """他每天…, 他常常…: what somebody does as a rule."""
    predicate = habitual(rng, subject)
    if rng.random() < 0.5:
        adverb = unit(*rng.choice(FREQUENCY))
        return clause(subject, predicate, c.HABIT, adverb=adverb)
    time, first = _time_and_order(rng, "habit", predicate)
    adverb = unit("都", "") if rng.random() < 0.4 else EMPTY
    return clause(subject, predicate, c.HABIT, time=time, time_first=first, adverb=adverb)


def ongoing(rng: Random, subject: NounPhrase) -> Phrase:
    """他正在…: is doing."""
    of_thing = rng.random() < 0.5
    predicate = transitive(rng, worn=False) if of_thing else activity(rng, subject, lasting=True)
    predicate = replace(predicate, extent=EMPTY)
    return clause(subject, predicate, c.PROGRESSIVE, negative=not of_thing and rng.random() < 0.25)


def dressed(rng: Random, subject: NounPhrase) -> Phrase:
    """他穿着一件红毛衣: is wearing."""
    zh, tag = rng.choice((("穿", "clothes"), ("戴", "accessory")))
    noun = rng.choice(nouns_with(tag))
    object_ = measured(None, noun, adjective=maybe_adjective(rng, noun, 0.6))
    return clause(subject, Predicate(((f"{zh} 着", "be wearing"),), object_), c.HABIT)


def experience(rng: Random, subject: NounPhrase) -> Phrase:
    """他去过北京, 他没骑过马."""
    predicate = replace(doing(rng, subject), extent=EMPTY)
    return clause(subject, predicate, c.EXPERIENCE, negative=rng.random() < 0.45)


def already(rng: Random, subject: NounPhrase) -> Phrase:
    """他已经…了, 他刚…."""
    if rng.random() < 0.3:
        return clause(subject, bare_activity(rng.choice(MOMENTARY), subject.my), c.JUST)
    predicate = replace(doing(rng, subject, past=True, minor=True), extent=EMPTY)
    return clause(subject, predicate, c.ALREADY)


def wish(rng: Random, subject: NounPhrase) -> Phrase:
    """他想…, 他喜欢…."""
    return clause(subject, wished(rng, subject), c.HABIT, negative=rng.random() < 0.25)


def modal(rng: Random, subject: NounPhrase) -> Phrase:
    """他能/应该/必须/可以…, 他会游泳."""
    aspect = rng.choice((c.CAN, c.SHOULD, c.MUST, c.MAY, c.SKILL))
    negative = aspect in (c.CAN, c.SHOULD, c.SKILL) and rng.random() < 0.3
    skill = aspect is c.SKILL
    minor = not skill and not negative
    predicate = replace(activity(rng, subject, simple=skill, lasting=skill, minor=minor), extent=EMPTY)
    return clause(subject, predicate, aspect, negative=negative)


def too(rng: Random, subject: NounPhrase) -> Phrase:
    """他也…: also."""
    aspect = rng.choice((c.HABIT, c.FUTURE, c.SHOULD))
    return clause(subject, activity(rng, subject, simple=True), aspect, adverb=unit("也", "also"))


def all_of_them(rng: Random, subject: NounPhrase) -> Phrase:
    """我们都…: all."""
    subject = pronoun(rng.choice(("我们", "他们", "你们")))
    predicate = c.with_verb(activity(rng, subject, simple=True, lasting=True), rng.choice(WISHES))
    return clause(subject, predicate, c.HABIT, adverb=unit("都", "all"))
