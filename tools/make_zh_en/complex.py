"""Statements of several clauses: reasons, conditions, stories, reported speech.

Scope: joined and embedded clauses without their final mark.
"""

from dataclasses import replace
from random import Random

from . import clauses as c
from .clauses import COMMA, Predicate, clause, copula, degree
from .facts import weather
from .noun_phrases import NounPhrase, any_pronoun, definite_thing, pronoun, relative_of, somebody
from .nouns import nouns_with, places_with, qualities_of
from .phrase import EMPTY, Builder, Phrase, arrange, sequence, unit
from .predicates import (
    FREQUENCY,
    PURPOSES,
    WISHES,
    activity,
    at_place,
    bare_activity,
    buying_for,
    doing,
    going,
    going_to,
    habitual,
    shopping,
)
from .qualities import STATES
from .relatives import relative_thing
from .statements import statement
from .times import when
from .verbs import ACTIVITIES, TRANSITIVES

# What one may do beside something else.
BESIDES = {
    ("听", "音乐"),
    ("唱", "歌"),
    ("打", "电话"),
    ("说", "中文"),
    ("说", "英语"),
    ("开", "玩笑"),
}
THINKING = (("觉得", "think that"), ("知道", "know that"), ("听说", "hear that"), ("说", "say that"))
HOPING = ("希望", "hope that")


def _pair(rng: Random) -> tuple[NounPhrase, NounPhrase]:
    subject = somebody(rng, gendered=True)
    return subject, _again(subject)


def _again(subject: NounPhrase) -> NounPhrase:
    return pronoun(subject.pronoun)


def _swapped(subject: NounPhrase, again: NounPhrase) -> tuple[NounPhrase, NounPhrase]:
    """Both mentions of a person when English turns the clauses round: each language has the name first."""
    first = replace(subject, subject=Phrase(subject.subject.zh, again.subject.en), agreement=again.agreement)
    second = replace(again, subject=Phrase(again.subject.zh, subject.subject.en), agreement=subject.agreement)
    return first, second


def _state(rng: Random, subject: NounPhrase, *, poor: bool) -> Phrase:
    """A reason: lack of money if `poor`, else lack of time or a state of mind."""
    if not poor and rng.random() < 0.75:
        adjective = rng.choice([state for state in qualities_of(STATES) if state.en != "happy"])
        return clause(subject, copula(degree("很", "very", adjective.zh, adjective.en)), c.HABIT)
    lacking = ("钱", "money") if poor else ("时间", "time")
    return clause(subject, Predicate((("有", "have"),), unit(*lacking)), c.HABIT, negative=True)


def _plan(rng: Random, subject: NounPhrase, *, costly: bool) -> Predicate:
    """Something one may have in mind: an activity, a trip, a certain thing; if `costly`, buying it."""
    if costly and rng.random() < 0.4:
        return buying_for(rng)
    kind = rng.random()
    if not costly and kind < 0.5:
        return replace(activity(rng, subject), extent=EMPTY)
    if not costly and kind < 0.65:
        return going(rng, subject)
    verb = TRANSITIVES[0] if costly else rng.choice([verb for verb in TRANSITIVES if verb.told != "past"])
    noun = rng.choice(nouns_with(verb.takes))
    thing = relative_thing(rng, noun, other_than=verb.zh) if kind < 0.85 else definite_thing(rng, noun)
    return Predicate(((verb.zh, verb.en),), thing.object)


def _refusal(rng: Random, subject: NounPhrase, *, costly: bool) -> Phrase:
    """What follows from a state: not wanting to, not being able to."""
    predicate = _plan(rng, subject, costly=costly)
    if costly or rng.random() < 0.5:
        return clause(subject, predicate, c.CAN, negative=True)
    return clause(subject, c.with_verb(predicate, WISHES[0]), c.HABIT, negative=True)


def because(rng: Random) -> Phrase:
    """因为…，所以…: a state or rain, and what it keeps one from; English gives the reason last."""
    subject, again = _swapped(*_pair(rng))
    why, so = unit("因为", "because"), unit("所以", "")
    if rng.random() < 0.3:
        reason, result = weather(rng, subject, may_fail=False), _refusal(rng, somebody(rng), costly=False)
    else:
        poor = rng.random() < 0.2
        reason, result = _state(rng, subject, poor=poor), _refusal(rng, again, costly=poor)
    return arrange(zh=(why, reason, COMMA, so, result), en=(result, why, reason))


def although(rng: Random) -> Phrase:
    """虽然…，但是…: a state, and what is done all the same; English gives the deed first."""
    subject, again = _swapped(*_pair(rng))
    though, but = unit("虽然", "although"), unit("但是", "")
    poor = rng.random() < 0.2
    first = _state(rng, subject, poor=poor)
    predicate = _plan(rng, again, costly=poor)
    if poor or rng.random() < 0.5:
        second = clause(again, c.with_verb(predicate, rng.choice(PURPOSES)), c.HABIT)
    else:
        second = clause(again, predicate, c.MUST)
    return arrange(zh=(though, first, COMMA, but, second), en=(second, though, first))


def if_then(rng: Random) -> Phrase:
    """如果…，就…: English gives the condition last, in the present."""
    condition = rng.choice((_if_it_rains, _if_there_is_time, _if_one_wants))
    first, second = condition(rng)
    if_ = unit("如果", "if")
    return arrange(zh=(if_, first, COMMA, second), en=(second, if_, first))


def _then(subject: NounPhrase, predicate: Predicate, *, negative: bool = False) -> Phrase:
    return clause(
        subject, replace(predicate, extent=EMPTY), c.FUTURE, adverb=unit("就", ""), negative=negative
    )


def _if_it_rains(rng: Random) -> tuple[Phrase, Phrase]:
    """Bad weather: staying at home, or giving up a plan outside."""
    subject = somebody(rng)
    it = NounPhrase(unit("", "it"), EMPTY, "it")
    zh, en = rng.choice((("雨", "rain"), ("雪", "snow")))
    rain = clause(it, Predicate((("下", en),), unit(zh, "")), c.HABIT, time=when(rng, "future", exact=False))
    if rng.random() < 0.4:
        return rain, _then(subject, going(rng, subject), negative=True)
    places = ("home",) if (inside := rng.random() < 0.5) else ("sport", "walk")
    deed = rng.choice(
        [a for a in ACTIVITIES if a.places in places and (subject.my or "{my}" not in a.en_object)]
    )
    predicate = bare_activity(deed, subject.my)
    place = rng.choice([place for place in places_with(deed.places) if not inside or place.zh == "家"])
    return rain, _then(subject, c.with_modifier(predicate, at_place(place)), negative=not inside)


def _if_there_is_time(rng: Random) -> tuple[Phrase, Phrase]:
    subject, again = _swapped(*_pair(rng))
    have = Predicate((("有", "have"),), unit("时间", "time"))
    time = when(rng, "future", exact=False)
    return clause(subject, have, c.HABIT, time=time), _then(again, doing(rng, again))


def _if_one_wants(rng: Random) -> tuple[Phrase, Phrase]:
    """Who wants to do something goes where one does it."""
    subject, again = _swapped(*_pair(rng))
    deed = rng.choice(
        [a for a in ACTIVITIES if a.places not in ("-", "minor", "home") and "{my}" not in a.en_object]
    )
    first = clause(subject, c.with_verb(bare_activity(deed, ""), WISHES[0]), c.HABIT)
    return first, _then(again, going_to(rng, rng.choice(places_with(deed.places))))


def when_clause(rng: Random) -> Phrase:
    """…的时候，…; …以前，…; …以后，…: English gives the time last, after its conjunction."""
    subject, again = _swapped(*_pair(rng))
    joint_zh, joint_en = rng.choice((("的 时候", "when"), ("以前", "before"), ("以后", "after")))
    joint = unit(joint_zh, joint_en)
    first = clause(subject, activity(rng, subject, simple=True, minor=joint_en != "when"), c.HABIT)
    if joint_en == "when":
        deed = bare_activity(rng.choice([a for a in ACTIVITIES if (a.verb, a.object) in BESIDES]), again.my)
    else:
        deed = habitual(rng, again)
    second = clause(again, deed, c.HABIT, adverb=unit(*rng.choice(FREQUENCY)))
    return arrange(zh=(first, joint, COMMA, second), en=(second, joint, first))


def contrast(rng: Random) -> Phrase:
    """我喜欢…，但是我弟弟喜欢…."""
    subject, other = any_pronoun(rng), relative_of(rng, owner="我")
    likes = rng.choice(WISHES[:2])
    first = clause(subject, c.with_verb(activity(rng, subject, simple=True, lasting=True), likes), c.HABIT)
    second = clause(other, c.with_verb(activity(rng, other, simple=True, lasting=True), likes), c.HABIT)
    return sequence(first, COMMA, unit("但是", "but"), second)


def also(rng: Random) -> Phrase:
    """他不但会…，而且会…: not only … but also."""
    subject = somebody(rng)
    deeds = rng.sample(
        [a for a in ACTIVITIES if a.places in ("home", "sport", "study") and "{my}" not in a.en_object], 2
    )
    can = rng.choice((("会", "can"), ("应该", "should")))
    first, second = (sequence(unit(a.verb, a.en_verb), unit(a.object, a.en_object)) for a in deeds)
    auxiliary, verb_zh = unit(can[0], can[1]), can[0]
    not_only, but_also = unit("不但", "not only"), unit("而且", "but also")
    return arrange(
        zh=(subject.subject, not_only, auxiliary, first, COMMA, but_also, verb_zh, second),
        en=(subject.subject, auxiliary, not_only, first, but_also, second),
    )


def story(rng: Random, steps: int) -> Phrase:
    """昨天他先…，然后…，最后…: one thing after the other, in one tense."""
    subject, again = _pair(rng)
    sort, aspect = rng.choice((("past", c.PAST), ("future", c.FUTURE)))
    first = clause(subject, _step(rng, subject), aspect, time=when(rng, sort), time_first=rng.random() < 0.4)
    parts = [first]
    for index in range(1, steps):
        last = index == steps - 1 and steps > 2
        then = unit("最后", "and finally") if last else unit("然后", "and then")
        parts += [COMMA, then, clause(again, _step(rng, again), aspect)]
    return sequence(*parts)


def short_story(rng: Random) -> Phrase:
    """Two deeds, one after the other."""
    return story(rng, 2)


def _step(rng: Random, subject: NounPhrase) -> Predicate:
    kind = rng.random()
    if kind < 0.08:
        return shopping(rng, 2)
    if kind < 0.4:
        return going(rng, subject)
    return replace(doing(rng, subject, minor=True), extent=EMPTY)


def bought_things(rng: Random) -> Phrase:
    """我昨天在商店买了一本书、两件毛衣和一条裤子."""
    subject = somebody(rng)
    return clause(
        subject, shopping(rng, 4), c.PAST, time=when(rng, "past", far=True), time_first=rng.random() < 0.4
    )


def thinking(rng: Random, content: Phrase | None = None) -> Phrase:
    """我觉得…, 他说…."""
    subject = somebody(rng)
    if content is None and rng.random() < 0.25:
        other = somebody(rng)
        predicate = replace(doing(rng, other), extent=EMPTY)
        hoped = clause(other, predicate, c.FUTURE, time=when(rng, "future", far=predicate.far))
        return clause(subject, Predicate((HOPING,), hoped), c.HABIT)
    return clause(subject, Predicate((rng.choice(THINKING),), content or statement(rng)), c.HABIT)


def wanted_thing(rng: Random) -> Phrase:
    """他想买我昨天看的那本书: an object with a relative clause."""
    subject = somebody(rng)
    verb = rng.choice([verb for verb in TRANSITIVES if verb.told != "past"])
    noun = rng.choice(nouns_with(verb.takes))
    thing = relative_thing(rng, noun, other_than=verb.zh)
    predicate = Predicate(((verb.zh, verb.en),), thing.object)
    if rng.random() < 0.6:
        return clause(
            subject, c.with_verb(predicate, rng.choice(PURPOSES)), c.HABIT, negative=rng.random() < 0.2
        )
    return clause(
        subject, predicate, c.FUTURE, time=when(rng, "future"), time_first=True, negative=rng.random() < 0.2
    )


COMPLEX: dict[Builder, float] = {
    because: 5, although: 4, if_then: 5, when_clause: 5, contrast: 2, also: 2, bought_things: 1, thinking: 6,
    wanted_thing: 8, short_story: 2,
}  # fmt: skip


def complex_statement(rng: Random) -> Phrase:
    """Two or more clauses in one, without the final mark."""
    return rng.choices(list(COMPLEX), weights=list(COMPLEX.values()))[0](rng)


def joined(rng: Random) -> Phrase:
    """Two statements of one sentence, at least one complex: A，而且B; A，但是B."""
    first, second = complex_statement(rng), rng.choice((complex_statement, statement))(rng)
    return add(rng, first, second)


def add(rng: Random, first: Phrase, second: Phrase) -> Phrase:
    """Join two statements by "and" or "but", the latter at most once in a sentence."""
    contrary = rng.random() < 0.4 and not any(word == "但是" for word, _ in (*first.zh, *second.zh))
    return sequence(first, COMMA, unit("但是", "but") if contrary else unit("而且", "and"), second)
