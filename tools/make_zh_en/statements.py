"""Statements of one clause, one function a construction.

Scope: declarative clauses without their final mark, so that sentences can embed and join them.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from . import clauses as c
from .clauses import Predicate, clause, copula, degree
from .english import participle
from .noun_phrases import (
    SINGULAR_THIRD,
    NounPhrase,
    definite_thing,
    indefinite,
    measured,
    other_person,
    person_with_relative_clause,
    possessed,
    pronoun,
    relative_of,
    somebody,
    the_thing,
    with_relative_clause,
)
from .nouns import NOUNS, PERSONS, PLACES, Adjective, Noun, nouns_with, qualities_of
from .phrase import EMPTY, Phrase, arrange, en_only, sequence, unit, zh_only
from .predicates import FREQUENCY, WHOLE_DAYS, WISHES, activity, at_place, doing, how_long, transitive, wished
from .times import any_date, clock, number, weekday, when
from .verbs import DISPOSALS, RECEIVER_DISPOSALS, TRANSITIVES

Statement = Callable[[Random, NounPhrase], Phrase]
LOCALIZERS = (
    ("上", "on"), ("下面", "under"), ("旁边", "next to"), ("前面", "in front of"), ("后面", "behind"),
)  # fmt: skip
STATES = frozenset({"state"})
PERSON = frozenset({"person"})


def _time_and_order(rng: Random, sort: str, predicate: Predicate) -> tuple[Phrase, bool]:
    return when(rng, sort, far=predicate.far), rng.random() < 0.15


def past(rng: Random, subject: NounPhrase) -> Phrase:
    """他昨天买了一本书: what somebody did or did not do."""
    predicate = doing(rng, subject, event=True)
    time, first = _time_and_order(rng, "past", predicate)
    negative = rng.random() < 0.12 and not predicate.counted and not predicate.extent.zh
    return clause(subject, predicate, c.PAST, time=time, time_first=first, negative=negative)


def lasting(rng: Random, subject: NounPhrase) -> Phrase:
    """他昨天看了三个小时书."""
    predicate = activity(rng, subject, lasting=True)
    days = predicate.verbs[-1][0] in WHOLE_DAYS
    predicate = replace(predicate, extent=how_long(rng, days=days))
    time = when(rng, "past", far=predicate.far, exact=False)
    return clause(subject, predicate, c.PAST, time=time, time_first=rng.random() < 0.15)


def future(rng: Random, subject: NounPhrase) -> Phrase:
    """明天他会/要…: will, going to."""
    predicate = doing(rng, subject)
    time, first = _time_and_order(rng, "future", predicate)
    aspect = rng.choice((c.FUTURE, c.GOING))
    negative = aspect is c.FUTURE and rng.random() < 0.2
    return clause(subject, predicate, aspect, time=time, time_first=first, negative=negative)


def habit(rng: Random, subject: NounPhrase) -> Phrase:
    """他每天…, 他常常…: what somebody does as a rule."""
    predicate = doing(rng, subject)
    if rng.random() < 0.5:
        adverb = unit(*rng.choice(FREQUENCY))
        return clause(subject, predicate, c.HABIT, adverb=adverb)
    time, first = _time_and_order(rng, "habit", predicate)
    adverb = unit("都", "") if rng.random() < 0.4 else EMPTY
    return clause(subject, predicate, c.HABIT, time=time, time_first=first, adverb=adverb)


def ongoing(rng: Random, subject: NounPhrase) -> Phrase:
    """他正在…: is doing."""
    predicate = rng.choice((lambda: activity(rng, subject, lasting=True), lambda: transitive(rng, worn=False)))()
    predicate = replace(predicate, extent=EMPTY)
    return clause(subject, predicate, c.PROGRESSIVE, negative=rng.random() < 0.15)


def dressed(rng: Random, subject: NounPhrase) -> Phrase:
    """他穿着一件红毛衣: is wearing."""
    zh, tag = rng.choice((("穿", "clothes"), ("戴", "accessory")))
    object_ = indefinite(rng, rng.choice(nouns_with(tag))).object
    return clause(subject, Predicate(((f"{zh} 着", "be wearing"),), object_), c.HABIT)


def experience(rng: Random, subject: NounPhrase) -> Phrase:
    """他去过北京, 他没骑过马."""
    predicate = replace(doing(rng, subject), extent=EMPTY)
    return clause(subject, predicate, c.EXPERIENCE, negative=rng.random() < 0.45)


def already(rng: Random, subject: NounPhrase) -> Phrase:
    """他已经…了, 他刚…."""
    predicate = replace(doing(rng, subject, event=True), extent=EMPTY)
    return clause(subject, predicate, rng.choice((c.ALREADY, c.ALREADY, c.JUST)))


def wish(rng: Random, subject: NounPhrase) -> Phrase:
    """他想…, 他喜欢…."""
    predicate = wished(rng, doing(rng, subject))
    return clause(subject, replace(predicate, extent=EMPTY), c.HABIT, negative=rng.random() < 0.25)


def modal(rng: Random, subject: NounPhrase) -> Phrase:
    """他能/应该/必须/可以…, 他会游泳."""
    aspect = rng.choice((c.CAN, c.SHOULD, c.MUST, c.MAY, c.SKILL))
    predicate = replace(activity(rng, subject, simple=aspect is c.SKILL), extent=EMPTY)
    negative = aspect in (c.CAN, c.SHOULD, c.SKILL) and rng.random() < 0.3
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


def _quality(rng: Random, adjective: Adjective) -> tuple[Predicate, bool]:
    """A predicate of quality and whether it is to be negated."""
    kind = rng.random()
    word = unit(adjective.zh, adjective.en)
    if kind < 0.2:
        return copula(word), True
    if kind < 0.3:
        too = unit("太", "too")
        return copula(arrange(zh=(too, word, "了"), en=(too, word))), False
    zh, en = rng.choice((("很", "very"), ("很", "very"), ("非常", "extremely"), ("有点儿", "a little"), ("最", "")))
    if zh == "最":
        return copula(unit(f"最 {adjective.zh}", f"the {_superlative(adjective)}")), False
    return copula(degree(zh, en, adjective.zh, adjective.en)), False


def _superlative(adjective: Adjective) -> str:
    if adjective.comparative.startswith("more "):
        return "most " + adjective.en
    return adjective.comparative.removesuffix("r") + "st"


def thing_quality(rng: Random, subject: NounPhrase) -> Phrase:
    """这本书很有意思; also of a thing named by a relative clause."""
    noun, adjective = _noun_and_quality(rng)
    thing = relative_thing(rng, noun) if rng.random() < 0.5 else definite_thing(rng, noun)
    predicate, negative = _quality(rng, adjective)
    return clause(thing, predicate, c.HABIT, negative=negative)


def person_quality(rng: Random, subject: NounPhrase) -> Phrase:
    """我妈妈很忙."""
    adjective = rng.choice(qualities_of(STATES | PERSON))
    predicate, negative = _quality(rng, adjective)
    return clause(subject, predicate, c.HABIT, negative=negative)


def _noun_and_quality(rng: Random) -> tuple[Noun, Adjective]:
    noun = rng.choice([noun for noun in NOUNS if _gradable(noun)])
    return noun, rng.choice(_gradable(noun))


def _gradable(noun: Noun) -> list[Adjective]:
    return [adjective for adjective in qualities_of(noun.tags) if adjective.comparative != "-"]


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
    be = {"I": "am not", "it": "isn't", "they": "aren't"}[subject.agreement]
    return arrange(zh=(subject.subject, complement), en=(subject.subject, be, complement))


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
    if kind < 0.55:
        return clause(subject, predicate, c.PAST, time=when(rng, "past"), time_first=rng.random() < 0.15)
    if kind < 0.75:
        return clause(subject, predicate, c.ALREADY)
    if kind < 0.9:
        return clause(subject, predicate, c.SHOULD, negative=rng.random() < 0.3)
    return clause(subject, predicate, c.FUTURE, time=when(rng, "future"))


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
        ((c.EXPERIENCE, True), (c.EXPERIENCE, False), (c.ALREADY, False), (c.CAN, True), (c.SHOULD, True), (c.HABIT, True))
    )
    if aspect is c.HABIT:
        zh_free = c.with_verb(zh_free, rng.choice(WISHES))
    body = clause(subject, zh_free, aspect, negative=negative)
    return arrange(zh=(thing, body), en=(body,))


def relative_thing(rng: Random, noun: Noun) -> NounPhrase:
    """A thing that somebody bought, is reading, wants, …: an object relative clause."""
    verbs = [verb for verb in TRANSITIVES if verb.takes in noun.tags] or [TRANSITIVES[0]]
    verb = rng.choice(verbs)
    predicate = Predicate(((verb.zh, verb.en),))
    subject = somebody(rng)
    if verb.event or rng.random() < 0.55:
        body = clause(subject, predicate, c.PAST, time=when(rng, "past"), gap=True)
    else:
        purpose = rng.choice([wish for wish in WISHES if wish[0] != "喜欢"])
        body = clause(subject, c.with_verb(predicate, purpose), c.HABIT, gap=True)
    return with_relative_clause(rng, body, noun)


# The subject inside a subject relative clause: nothing, since 的 stands for "who".
WHO = NounPhrase(EMPTY, EMPTY, "it")


def relative_person(rng: Random) -> NounPhrase:
    """A person who does something: a subject relative clause."""
    person = rng.choice(PERSONS)
    kind = rng.random()
    if kind < 0.3:
        place = rng.choice([place for place in PLACES if place.tags & {"city", "work", "medical", "shop"}])
        verb = ("住", "live") if "city" in place.tags else ("工作", "work")
        body = clause(WHO, Predicate((verb,), modifiers=(at_place(place),)), c.HABIT)
    elif kind < 0.6:
        body = clause(WHO, replace(activity(rng, WHO, lasting=True), extent=EMPTY), c.PROGRESSIVE)
    else:
        predicate = transitive(rng) if kind < 0.8 else activity(rng, WHO)
        predicate = replace(predicate, extent=EMPTY)
        body = clause(WHO, predicate, c.PAST, time=when(rng, "past"), gap=True)
    return person_with_relative_clause(body, person)


def about_relative_person(rng: Random, subject: NounPhrase) -> Phrase:
    """住在北京的那位老师…: a subject with a relative clause."""
    who = relative_person(rng)
    return rng.choice((past, habit, wish, person_quality, identity))(rng, who)


def meeting_relative_person(rng: Random, subject: NounPhrase) -> Phrase:
    """我认识那位…的老师: an object with a relative clause."""
    who = relative_person(rng)
    zh, en, aspect, negative = rng.choice(
        (("认识", "know", c.HABIT, False), ("认识", "know", c.HABIT, True), ("帮助", "help", c.SHOULD, False),
         ("喜欢", "like", c.HABIT, False), ("等", "wait for", c.PROGRESSIVE, False))
    )  # fmt: skip
    return clause(subject, Predicate(((zh, en),), who.object), aspect, negative=negative)


def identity(rng: Random, subject: NounPhrase) -> Phrase:
    """他是一位医生, 他是我的老师."""
    if subject.agreement == "they":
        subject = relative_of(rng)
    person = rng.choice([person for person in PERSONS if person.profession])
    noun = Noun(person.zh, person.measure, person.singular, person.plural, "-", frozenset())
    if rng.random() < 0.5:
        complement = measured(None, noun)
    else:
        owner = rng.choice(("他们", "我们", "你们") if subject.pronoun in ("我", "你", *SINGULAR_THIRD) else ("我",))
        complement = possessed(noun, owner).object
    return clause(subject, copula(complement, "是"), c.HABIT, negative=rng.random() < 0.15)


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
        base = rng.choice((("桌子", "table"), ("床", "bed"), ("椅子", "chair"), ("沙发", "sofa"), ("箱子", "suitcase")))
        zh, en = rng.choice(LOCALIZERS)
        thing = indefinite(rng, rng.choice(nouns_with("portable") + nouns_with("clothes") + nouns_with("accessory")))
    else:
        base = rng.choice([(place.zh, place.en.removeprefix("the ")) for place in PLACES if place.en.startswith("the ")])
        zh, en = rng.choice(LOCALIZERS[2:])
        thing = indefinite(rng, rng.choice(nouns_with("see")))
    spot, side = unit(*base), unit(zh, en)
    place_ = arrange(zh=(spot, side), en=(side, "the", spot))
    has = unit("有", "are" if thing.agreement == "they" else "is")
    return arrange(zh=(place_, has, thing.object), en=("there", has, thing.object, place_))


def location(rng: Random, subject: NounPhrase) -> Phrase:
    """我的书在桌子上."""
    thing = definite_thing(rng, rng.choice(nouns_with("portable") + nouns_with("accessory") + nouns_with("lose")))
    base = rng.choice((("桌子", "the table"), ("床", "the bed"), ("椅子", "the chair"), ("沙发", "the sofa")))
    zh, en = rng.choice(LOCALIZERS)
    spot, side = unit(*base), unit(zh, en)
    place = arrange(zh=(spot, side), en=(side, spot))
    return clause(thing, copula(place, "在"), c.HABIT)


def weather(rng: Random, subject: NounPhrase) -> Phrase:
    """昨天下雨了, 明天会下雪, 外面正在下雨."""
    it = NounPhrase(unit("", "it"), unit("", "it"), "it")
    sort, aspect = rng.choice((("past", c.PAST), ("future", c.FUTURE), ("", c.PROGRESSIVE)))
    rain = rng.choice((("雨", "rain"), ("雪", "snow")))
    predicate = Predicate((("下", rain[1]),), unit(rain[0], ""))
    if aspect is c.PROGRESSIVE:
        outside = unit("外面", "outside")
        body = clause(it, predicate, aspect)
        return arrange(zh=(outside, body), en=(body, outside))
    negative = rng.random() < 0.2
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
        day = rng.choice((("今天", "today"), ("明天", "tomorrow"), ("后天", "the day after tomorrow")))
        return sequence(unit(*day), unit("是", "is"), rng.choice((weekday, any_date))(rng))
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
    value = rng.choice((rng.randint(2, 9) * 100 + rng.randint(0, 9) * 10, rng.randint(11, 99), rng.randint(1, 9) * 100))
    return arrange(zh=(thing, amount := number(value), yuan := unit("块 钱", "yuan")), en=(thing, "costs", amount, yuan))


def age(rng: Random, subject: NounPhrase) -> Phrase:
    """他今年二十五岁."""
    if subject.agreement == "they":
        subject = pronoun(rng.choice(("我", *SINGULAR_THIRD)))
    value = number(rng.randint(8, 70))
    body = arrange(zh=(value, "岁"), en=(value, "years old"))
    this_year = unit("今年", "this year")
    return clause(subject, copula(body), c.HABIT, time=this_year)


SHORT: dict[Statement, float] = {
    past: 12, lasting: 4, future: 10, habit: 10, ongoing: 6, experience: 6, already: 6, wish: 8, modal: 7, too: 2,
    all_of_them: 2, thing_quality: 7, person_quality: 4, comparison: 6, disposal: 9, passive: 5, topic: 5,
    about_relative_person: 9, meeting_relative_person: 5, identity: 3, dressed: 2, having: 3, existence: 5, location: 3, weather: 3,
    calendar: 3, price: 3, age: 2,
}  # fmt: skip


def statement(rng: Random, subject: NounPhrase | None = None) -> Phrase:
    """Any statement of one clause."""
    construction = rng.choices(list(SHORT), weights=list(SHORT.values()))[0]
    return construction(rng, subject or somebody(rng))

