"""Any statement of one clause, drawn by weight.

Scope: the choice of the construction, so that sentences can embed and join statements.
"""

from collections.abc import Callable
from random import Random

from . import clauses as c
from .clauses import Predicate, clause
from .deeds import (
    all_of_them,
    already,
    dressed,
    experience,
    future,
    habit,
    lasting,
    modal,
    ongoing,
    past,
    too,
    wish,
)
from .facts import age, calendar, existence, having, location, price, weather
from .handling import disposal, passive, topic
from .noun_phrases import NounPhrase, somebody
from .phrase import Phrase
from .qualities import comparison, identity, person_quality, thing_quality
from .relatives import relative_person

Statement = Callable[[Random, NounPhrase], Phrase]


def about_relative_person(rng: Random, subject: NounPhrase) -> Phrase:
    """住在北京的那位老师…: a subject with a relative clause."""
    who = relative_person(rng)
    return rng.choice((past, habit, wish, person_quality))(rng, who)


def meeting_relative_person(rng: Random, subject: NounPhrase) -> Phrase:
    """我认识那位…的老师: an object with a relative clause."""
    who = relative_person(rng)
    zh, en, aspect, negative = rng.choice(
        (("认识", "know", c.HABIT, False), ("认识", "know", c.HABIT, True), ("帮助", "help", c.SHOULD, False),
         ("喜欢", "like", c.HABIT, False), ("等", "wait for", c.PROGRESSIVE, False))
    )  # fmt: skip
    return clause(subject, Predicate(((zh, en),), who.object), aspect, negative=negative)


SHORT: dict[Statement, float] = {
    past: 12, lasting: 4, future: 10, habit: 10, ongoing: 6, experience: 6, already: 6, wish: 8, modal: 7,
    too: 2, all_of_them: 2, dressed: 2, thing_quality: 7, person_quality: 4, comparison: 6, identity: 3,
    disposal: 9, passive: 5, topic: 5, about_relative_person: 9, meeting_relative_person: 5, having: 3,
    existence: 5, location: 3, weather: 3, calendar: 5, price: 3, age: 2,
}  # fmt: skip


def statement(rng: Random, subject: NounPhrase | None = None) -> Phrase:
    """Any statement of one clause."""
    construction = rng.choices(list(SHORT), weights=list(SHORT.values()))[0]
    return construction(rng, subject or somebody(rng))
