"""Statements of what there is: possession, existence, place, weather, calendar, price, age.

Scope: declarative clauses without their final mark.
"""

from random import Random

from . import clauses as c
from .clauses import Predicate, clause, copula
from .noun_phrases import (
    SINGULAR_THIRD,
    NounPhrase,
    definite_thing,
    indefinite,
    measured,
    pronoun,
    relative_of,
)
from .nouns import PLACES, Noun, nouns_with
from .phrase import EMPTY, Phrase, arrange, en_only, sequence, unit
from .times import any_date, clock, number, weekday, when

LOCALIZERS = (
    ("上", "on"), ("下面", "under"), ("旁边", "next to"), ("前面", "in front of"), ("后面", "behind"),
)  # fmt: skip


def having(rng: Random, subject: NounPhrase) -> Phrase:
    """他有两个孩子; 他没有自行车."""
    if rng.random() < 0.2:
        kin = rng.choice((("哥哥", "older brother"), ("姐姐", "older sister"), ("弟弟", "younger brother")))
        object_ = measured(None, Noun(kin[0], "个", kin[1], kin[1] + "s", "-", frozenset()))
    else:
        object_ = indefinite(rng, rng.choice(nouns_with("buy"))).object
    return clause(subject, Predicate((("有", "have"),), object_), c.HABIT)


def existence(rng: Random, subject: NounPhrase) -> Phrase:
    """桌子上有一本书: there is a book on the table."""
    if rng.random() < 0.6:
        base = rng.choice((("桌子", "table"), ("床", "bed"), ("椅子", "chair")))
        zh, en = rng.choice(LOCALIZERS)
        thing = indefinite(
            rng, rng.choice(nouns_with("portable") + nouns_with("clothes") + nouns_with("accessory"))
        )
    else:
        base = rng.choice(
            [(place.zh, place.en.removeprefix("the ")) for place in PLACES if place.en.startswith("the ")]
        )
        zh, en = rng.choice(LOCALIZERS[2:])
        thing = indefinite(rng, rng.choice(nouns_with("see")))
    spot, side = unit(*base), unit(zh, en)
    place_ = arrange(zh=(spot, side), en=(side, "the", spot))
    has = unit("有", "are" if thing.agreement == "they" else "is")
    return arrange(zh=(place_, has, thing.object), en=("there", has, thing.object, place_))


def location(rng: Random, subject: NounPhrase) -> Phrase:
    """我的书在桌子上."""
    thing = definite_thing(
        rng, rng.choice(nouns_with("portable") + nouns_with("accessory") + nouns_with("lose"))
    )
    base = rng.choice((("桌子", "the table"), ("床", "the bed"), ("椅子", "the chair")))
    zh, en = rng.choice(LOCALIZERS)
    spot, side = unit(*base), unit(zh, en)
    place = arrange(zh=(spot, side), en=(side, spot))
    return clause(thing, copula(place, "在"), c.HABIT)


def weather(rng: Random, subject: NounPhrase, *, may_fail: bool = True) -> Phrase:
    """昨天下雨了, 明天会下雪, 外面正在下雨."""
    it = NounPhrase(unit("", "it"), unit("", "it"), "it")
    sort, aspect = rng.choice((("past", c.PAST), ("future", c.FUTURE), ("", c.PROGRESSIVE)))
    rain = rng.choice((("雨", "rain"), ("雪", "snow")))
    predicate = Predicate((("下", rain[1]),), unit(rain[0], ""))
    if aspect is c.PROGRESSIVE:
        outside = unit("外面", "outside")
        body = clause(it, predicate, aspect)
        return arrange(zh=(outside, body), en=(body, outside))
    negative = may_fail and rng.random() < 0.2
    city = rng.choice([place for place in PLACES if "city" in place.tags])
    where = unit(city.zh, city.at) if rng.random() < 0.6 else EMPTY
    body = clause(it, predicate, aspect, negative=negative, time=when(rng, sort))
    # Chinese: place, time, rain; English: rain, place, time.
    time_start = len(en_only(clause(it, predicate, aspect, negative=negative)).en)
    head, time = Phrase((), body.en[:time_start]), Phrase((), body.en[time_start:])
    return arrange(zh=(where, body), en=(head, where, time))


def calendar(rng: Random, subject: NounPhrase) -> Phrase:
    """今天是星期三, 我的生日是三月五日, 现在八点一刻."""
    kind = rng.random()
    if kind < 0.3:
        today = rng.choice((("今天", "today"), ("明天", "tomorrow"), ("后天", "the day after tomorrow")))
        return sequence(unit(*today), unit("是", "is"), rng.choice((weekday, any_date))(rng))
    if kind < 0.6:
        who = relative_of(rng)
        owner, of = who.subject, unit("的 生日", "birthday")
        mine = Phrase(owner.zh, (*owner.en[:-1], (owner.en[-1][0] + "'s", owner.en[-1][1])))
        day = any_date(rng)
        return arrange(zh=(mine, of, unit("是", ""), day), en=(mine, of, "is on", day))
    now, hour = unit("现在", "now"), clock(rng)
    return arrange(zh=(now, hour), en=("it is", hour, now))


def price(rng: Random, subject: NounPhrase) -> Phrase:
    """这件衬衫三百二十块钱."""
    noun = rng.choice(nouns_with("buy"))
    thing = measured(unit(*rng.choice((("这", "this"), ("那", "that")))), noun)
    tens, hundreds = 10 * rng.randint(1, 9), 100 * rng.randint(1, 9)
    value = rng.choice((hundreds + tens, tens, hundreds))
    return arrange(
        zh=(thing, amount := number(value), yuan := unit("块 钱", "yuan")), en=(thing, "costs", amount, yuan)
    )


def age(rng: Random, subject: NounPhrase) -> Phrase:
    """他今年二十五岁."""
    if subject.agreement == "they":
        subject = pronoun(rng.choice(("我", *SINGULAR_THIRD)))
    value = number(rng.choice((*range(6, 21), 30, 40, 50, 60, 70)))
    body = arrange(zh=(value, "岁"), en=(value, "years old"))
    this_year = unit("今年", "this year")
    return clause(subject, copula(body), c.HABIT, time=this_year)
