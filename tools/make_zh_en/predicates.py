"""Predicates drawn from the lexicon: what somebody does, with whom, where and for how long.

Scope: choices that make sense together. Knows nothing of tense.
"""

from dataclasses import replace
from random import Random

from .clauses import Predicate, with_modifier, with_verb
from .noun_phrases import (
    NounPhrase,
    definite_thing,
    generic_thing,
    indefinite,
    list_of_things,
    measured,
    named,
    other_person,
    relative_of,
)
from .nouns import PLACES, Place, nouns_with, places_with
from .phrase import EMPTY, Phrase, arrange, sequence, unit
from .times import counted, period
from .verbs import ACTIVITIES, PERSON_VERBS, TRANSITIVES, Activity

# What one remembers for months, so that dates and years go with it.
FAR_VERBS = {"买", "卖", "写", "修", "丢", "见", "遇到", "拜访", "帮助", "种", "旅行"}
ONE_AT_A_TIME = {"穿", "戴", "开", "骑", "用", "养", "带"}
WHOLE_DAYS = {"旅行"}
WISHES = (("想", "want to"), ("喜欢", "like to"), ("打算", "plan to"), ("需要", "need to"))
FREQUENCY = (
    ("常常", "often"),
    ("总是", "always"),
    ("有时候", "sometimes"),
    ("很少", "rarely"),
    ("一般", "usually"),
)
PURPOSES = tuple(wish for wish in WISHES if wish[0] != "喜欢")
TRANSPORT = (
    ("坐 飞机", "by plane"), ("坐 火车", "by train"), ("坐 地铁", "by subway"), ("坐 公共汽车", "by bus"),
    ("骑 自行车", "by bicycle"), ("开 车", "by car"), ("走 路", "on foot"),
)  # fmt: skip


def at_place(place: Place) -> Phrase:
    """在图书馆, "in the library"."""
    preposition, _, name = place.at.partition(" ")
    return sequence(unit("在", preposition), unit(place.zh, name))


def companion(rng: Random) -> Phrase:
    """跟小明一起, "with Xiaoming"."""
    person = rng.choice((other_person, relative_of))(rng)
    with_ = unit("跟", "with")
    return arrange(zh=(with_, person.object, "一起"), en=(with_, person.object))


def activity(
    rng: Random, subject: NounPhrase, *, simple: bool = False, lasting: bool = False, minor: bool = False
) -> Predicate:
    """A set activity; unless `simple`, perhaps with a place, a companion, or how long it lasts.

    Args:
        rng: source of choices.
        subject: who does it; without a known possessive, "wash one's hands" is not chosen.
        simple: nothing but the activity.
        lasting: only what can last, which is also what people like to do.
        minor: small acts too ("turn off the light").
    """
    choice = rng.choice(
        [
            a
            for a in ACTIVITIES
            if (subject.my or "{my}" not in a.en_object)
            and (a.lasting or not lasting)
            and (minor or a.places != "minor")
        ]
    )
    predicate = bare_activity(choice, subject.my)
    if simple:
        return predicate
    if choice.lasting and choice.verb != "睡" and rng.random() < 0.35:
        predicate = with_modifier(predicate, companion(rng))
    if choice.places not in ("-", "minor") and rng.random() < 0.5:
        predicate = with_modifier(predicate, at_place(rng.choice(places_with(choice.places))))
    if choice.lasting and choice.verb not in WHOLE_DAYS and rng.random() < 0.1:
        predicate = replace(predicate, extent=how_long(rng, days=False))
    return predicate


def wished(rng: Random, subject: NounPhrase) -> Predicate:
    """A deed under a wish; only what is done for pleasure is liked, and without number: 喜欢看小说."""
    wish = rng.choice(WISHES)
    if wish[0] == "喜欢":
        liked = activity(rng, subject, lasting=True) if rng.random() < 0.7 else transitive(rng, generic=True)
        return with_verb(replace(liked, extent=EMPTY), wish)
    return with_verb(replace(doing(rng, subject), extent=EMPTY), wish)


def bare_activity(choice: Activity, my: str) -> Predicate:
    """The predicate of one row of the table."""
    object_ = unit(choice.object, choice.en_object.format(my=my)) if choice.object else EMPTY
    return Predicate(((choice.verb, choice.en_verb),), object_, far=choice.verb in FAR_VERBS)


def how_long(rng: Random, *, days: bool) -> Phrase:
    """三个小时, "for three hours"; 三次, "three times"."""
    if rng.random() < 0.75:
        length = period(rng, days=days)
        return arrange(zh=(length,), en=("for", length))
    times = rng.randint(1, 6)
    if times < 3:
        return unit(("一 次", "两 次")[times - 1], ("once", "twice")[times - 1])
    return sequence(counted(times), unit("次", "times"))


def transitive(
    rng: Random,
    *,
    listed: int = 1,
    past: bool = False,
    definite: bool = False,
    generic: bool = False,
    worn: bool = True,
) -> Predicate:
    """A transitive verb with a fitting object.

    Args:
        rng: source of choices.
        listed: above 1, a list of up to so many objects.
        past: verbs that are only told of the past too.
        definite: "this book", not "a book".
        generic: "books", as what one often does or likes.
        worn: "wear" too.
    """
    verb = rng.choice(
        [
            v
            for v in TRANSITIVES
            if (past or v.told != "past") and (not generic or v.told == "often") and (worn or v.en != "wear")
        ]
    )
    nouns = nouns_with(verb.takes)
    if generic:
        return Predicate(((verb.zh, verb.en),), generic_thing(rng.choice(nouns)), far=verb.zh in FAR_VERBS)
    if listed > 1:
        object_ = list_of_things(rng, nouns, listed)
    elif definite:
        object_ = definite_thing(rng, rng.choice(nouns)).object
    elif verb.zh in ONE_AT_A_TIME:
        object_ = measured(None, rng.choice(nouns))
    else:
        object_ = indefinite(rng, rng.choice(nouns)).object
    return Predicate(((verb.zh, verb.en),), object_, counted=True, far=verb.zh in FAR_VERBS)


def shopping(rng: Random, most: int) -> Predicate:
    """Buying a list of things, at a shop."""
    object_ = list_of_things(rng, nouns_with("buy"), most)
    return Predicate(
        (("买", "buy"),), object_, (at_place(rng.choice(places_with("shop"))),), counted=True, far=True
    )


def buying_for(rng: Random) -> Predicate:
    """给妈妈买一件毛衣, "buy a sweater for my mother"."""
    person = rng.choice((named, relative_of))(rng)
    for_ = sequence(unit("给", "for"), person.object)
    object_ = indefinite(rng, rng.choice(nouns_with("buy"))).object
    return Predicate((("买", "buy"),), object_, (for_,), counted=True, far=True)


def with_person(rng: Random, *, past: bool = False) -> Predicate:
    """A verb whose object is a person."""
    verb = rng.choice([verb for verb in PERSON_VERBS if past or verb.told != "past"])
    return Predicate(((verb.zh, verb.en),), other_person(rng).object, counted=True, far=verb.zh in FAR_VERBS)


def going(rng: Random, subject: NounPhrase) -> Predicate:
    """Going somewhere, for itself or to do something there: 去公园打篮球."""
    place = rng.choice(PLACES)
    if rng.random() < 0.5:
        choices = [
            a for a in ACTIVITIES if a.places in place.tags and (subject.my or "{my}" not in a.en_object)
        ]
        if choices and place.zh != "家":
            deed = replace(bare_activity(rng.choice(choices), subject.my), far="city" in place.tags)
            return with_verb(deed, ("去", "go to"), (place.zh, f"{place.en} to"))
    return going_to(rng, place)


def going_to(rng: Random, place: Place) -> Predicate:
    """The way to a place, perhaps with the means of transport."""
    zh, en = rng.choice(TRANSPORT[:2] if "city" in place.tags else TRANSPORT[2:])
    verb = ("回", "go") if place.zh == "家" else ("去", "go to")
    modifiers = (unit(zh, en),) if rng.random() < 0.7 and "inside" not in place.tags else ()
    return Predicate((verb,), unit(place.zh, place.en), modifiers, far="city" in place.tags)


def doing(rng: Random, subject: NounPhrase, *, past: bool = False, minor: bool = False) -> Predicate:
    """Something that somebody does; `past` and `minor` let in more verbs, see `transitive` and `activity`."""
    kind = rng.random()
    if kind < 0.45:
        return activity(rng, subject, minor=minor)
    if kind < 0.7:
        return transitive(rng, past=past)
    if kind < 0.79:
        return with_person(rng, past=past)
    if kind < 0.81:
        return transitive(rng, listed=2, past=past)
    if kind < 0.9:
        return buying_for(rng)
    return going(rng, subject)


def habitual(rng: Random, subject: NounPhrase) -> Predicate:
    """Something that somebody does often."""
    kind = rng.random()
    if kind < 0.55:
        return activity(rng, subject, minor=True)
    return transitive(rng, generic=True) if kind < 0.8 else going(rng, subject)
