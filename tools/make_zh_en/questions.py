"""Questions and requests.

Scope: whole sentences with their final mark.
"""

from dataclasses import replace
from random import Random

from . import clauses as c
from .clauses import Predicate, asked, clause, copula, told
from .english import be
from .noun_phrases import NounPhrase, definite_thing, measured, named, pronoun, relative_of
from .nouns import NOUNS, PLACES, nouns_with, qualities_of
from .phrase import EMPTY, Builder, Phrase, arrange, en_only, sequence, unit, zh_only
from .predicates import (
    FREQUENCY,
    ONE_AT_A_TIME,
    PURPOSES,
    WISHES,
    activity,
    doing,
    habitual,
    transitive,
    wished,
)
from .qualities import STATES, gradable
from .times import when
from .verbs import TRANSITIVES

YOU = ("你", "你", "他", "她", "你们", "他们")


def _asked_person(rng: Random) -> NounPhrase:
    return pronoun(rng.choice(YOU)) if rng.random() < 0.7 else rng.choice((named, relative_of))(rng)


def yes_no(rng: Random) -> Phrase:
    """…吗？"""
    subject = _asked_person(rng)
    kind = rng.random()
    predicate = replace(doing(rng, subject), extent=EMPTY)
    if kind < 0.25:
        body = clause(
            subject, predicate, c.PAST, time=when(rng, "past", far=predicate.far), question="yes_no"
        )
    elif kind < 0.45:
        body = clause(
            subject, predicate, c.FUTURE, time=when(rng, "future", far=predicate.far), question="yes_no"
        )
    elif kind < 0.6:
        body = clause(subject, predicate, c.EXPERIENCE, question="yes_no")
    elif kind < 0.75:
        body = clause(subject, wished(rng, subject), c.HABIT, question="yes_no")
    elif kind < 0.9:
        often = unit(*FREQUENCY[0])
        body = clause(
            subject, replace(habitual(rng, subject), extent=EMPTY), c.HABIT, adverb=often, question="yes_no"
        )
    else:
        noun = rng.choice([noun for noun in NOUNS if gradable(noun)])
        adjective = rng.choice(gradable(noun))
        body = clause(
            definite_thing(rng, noun), copula(unit(adjective.zh, adjective.en)), c.HABIT, question="yes_no"
        )
    return asked(body)


def a_not_a(rng: Random) -> Phrase:
    """你喜欢不喜欢…？ 你会不会…？ 你有没有…？"""
    subject = _asked_person(rng)
    kind = rng.random()
    if kind < 0.3:
        predicate = c.with_verb(activity(rng, subject, simple=True, lasting=True), rng.choice(WISHES[:2]))
        return asked(clause(subject, predicate, c.HABIT, question="a_not_a"))
    if kind < 0.6:
        aspect = rng.choice((c.CAN, c.SKILL, c.SHOULD))
        return asked(clause(subject, activity(rng, subject, simple=True), aspect, question="a_not_a"))
    noun = rng.choice(nouns_with("buy"))
    if kind < 0.8:
        return asked(
            clause(subject, Predicate((("有", "have"),), measured(None, noun)), c.HABIT, question="a_not_a")
        )
    adjective = rng.choice(qualities_of(STATES))
    return asked(
        clause(subject, Predicate(((adjective.zh, f"be {adjective.en}"),)), c.HABIT, question="a_not_a")
    )


def _asked_deed(rng: Random, subject: NounPhrase, predicate: Predicate, front: Phrase) -> Phrase:
    """A wh-question in a tense the Chinese shows."""
    kind = rng.random()
    if kind < 0.4:
        predicate = c.with_verb(predicate, rng.choice(PURPOSES))
        return asked(clause(subject, predicate, c.HABIT, question="wh", front=front))
    sort, aspect = ("past", c.PAST) if kind < 0.75 else ("future", c.FUTURE)
    return asked(clause(subject, predicate, aspect, time=when(rng, sort), question="wh", front=front))


def what(rng: Random) -> Phrase:
    """你想买什么？ 他昨天买了哪本书？ 你想买几本书？"""
    subject = _asked_person(rng)
    verb = rng.choice([verb for verb in TRANSITIVES if verb.told != "past"])
    noun = rng.choice(nouns_with(verb.takes))
    kind = rng.random()
    if kind < 0.3 and verb.zh in ("买", "吃", "喝", "写", "画", "找到", "听", "带"):
        asked_for = unit("什么", "what")
    elif kind < 0.65:
        asked_for = measured(unit("哪", "which"), noun)
    elif verb.zh not in ONE_AT_A_TIME:
        asked_for = measured(unit("几", "how many"), noun, plural=True)
    else:
        asked_for = measured(unit("哪", "which"), noun)
    predicate = Predicate(((verb.zh, verb.en),), zh_only(asked_for), counted=True)
    return _asked_deed(rng, subject, predicate, en_only(asked_for))


def where_or_how(rng: Random) -> Phrase:
    """你在哪儿工作？ 你怎么去学校？ 你什么时候…？ 你为什么…？ 你跟谁一起…？"""
    subject = _asked_person(rng)
    kind = rng.choice(("where", "how", "when", "why", "whom", "where to"))
    if kind == "how":
        place = rng.choice([place for place in PLACES if place.zh != "家"])
        word = unit("怎么", "how")
        predicate = Predicate((("去", "go to"),), unit(place.zh, place.en), (zh_only(word),))
        return _asked_deed(rng, subject, predicate, en_only(word))
    if kind == "where to":
        word = unit("哪儿", "where")
        return _asked_deed(rng, subject, Predicate((("去", "go"),), zh_only(word)), en_only(word))
    doing_ = activity(rng, subject, simple=True, lasting=kind == "whom")
    if kind == "when":
        word = unit("什么 时候", "when")
        future = clause(subject, doing_, c.FUTURE, time=zh_only(word), question="wh", front=en_only(word))
        return asked(future)
    if kind == "where":
        word = unit("哪儿", "where")
        phrase = arrange(zh=("在", word), en=(word,))
    elif kind == "whom":
        word = unit("谁", "who")
        phrase = arrange(zh=("跟", word, "一起"), en=(word,))
        doing_ = replace(doing_, extent=unit("", "with"))
    else:
        word = unit("为什么", "why")
        reason = clause(subject, c.with_verb(doing_, WISHES[0]), c.HABIT, adverb=zh_only(word), question="wh",
                        front=en_only(word), negative=rng.random() < 0.5)  # fmt: skip
        return asked(reason)
    return _asked_deed(rng, subject, c.with_modifier(doing_, zh_only(phrase)), en_only(phrase))


def who(rng: Random) -> Phrase:
    """谁打破了杯子？ 这是谁的书？ 这件衬衫多少钱？ 他多大？"""
    kind = rng.random()
    asker = unit("谁", "who")
    person = NounPhrase(asker, asker, "it")
    if kind < 0.45:
        predicate = replace(doing(rng, person, past=True), extent=EMPTY)
        return asked(clause(person, predicate, c.PAST, time=when(rng, "past", far=predicate.far)))
    if kind < 0.55:
        predicate = c.with_verb(activity(rng, person, simple=True), WISHES[0])
        return asked(clause(person, predicate, c.HABIT))
    noun = rng.choice(nouns_with("buy"))
    this = unit(*rng.choice((("这", "this"), ("那", "that"))))
    if kind < 0.75:
        thing = measured(this, noun)
        return asked(arrange(zh=(thing, money := unit("多少 钱", "how much")), en=(money, "is", thing)))
    if kind < 0.9:
        return asked(_whose(rng))
    subject = _asked_person(rng)
    old = unit("多 大", "how old")
    return asked(arrange(zh=(subject.subject, old), en=(old, be(subject.agreement), subject.subject)))


def _whose(rng: Random) -> Phrase:
    noun = rng.choice(nouns_with("buy"))
    owner, thing = unit("谁", "whose"), unit(noun.zh, noun.singular)
    plural = noun.plural == "="
    this = unit(
        *rng.choice((("这些", "these"), ("那些", "those")) if plural else (("这", "this"), ("那", "that")))
    )
    return arrange(zh=(this, "是", owner, "的", thing), en=(owner, thing, "are" if plural else "is", this))


def choice_of_two(rng: Random) -> Phrase:
    """你想喝茶还是咖啡？"""
    subject = _asked_person(rng)
    verb = rng.choice([verb for verb in TRANSITIVES if verb.zh in ("喝", "吃", "买", "画", "穿", "养", "带")])
    first, second = rng.sample(nouns_with(verb.takes), 2)
    both = sequence(measured(None, first), unit("还是", "or"), measured(None, second))
    predicate = Predicate((WISHES[0], (verb.zh, verb.en)), both)
    return asked(clause(subject, predicate, c.HABIT, question="wh"))


def request(rng: Random) -> Phrase:
    """请…。 别…！ 我们…吧！"""
    kind = rng.random()
    you = pronoun("你")
    deed = rng.choice((activity(rng, you, minor=True), transitive(rng, definite=True)))
    deed = replace(deed, extent=EMPTY)
    if kind < 0.4:
        please = unit("请", "please")
        if rng.random() < 0.4:
            return told(sequence(please, _plain(_ba_request(rng))))
        return told(sequence(please, _plain(deed)))
    if kind < 0.7:
        return told(sequence(unit(*rng.choice((("别", "don't"), ("不要", "don't")))), _plain(deed)))
    we = unit("我们", "let's")
    ours = activity(rng, pronoun("我们"))
    body = _plain(replace(ours, extent=EMPTY))
    day = when(rng, "future") if rng.random() < 0.5 else EMPTY
    return told(arrange(zh=(we, day, body, "吧"), en=(we, body, day)))


def _plain(predicate: Predicate) -> Phrase:
    """The predicate with bare verbs, for requests."""
    verbs = [unit(zh, en) for zh, en in predicate.verbs]
    return arrange(
        zh=(*verbs[:-1], *predicate.modifiers, verbs[-1], predicate.object),
        en=(*verbs, predicate.object, *predicate.modifiers),
    )


def _ba_request(rng: Random) -> Predicate:
    zh, en, after, tag = rng.choice(
        (("放 在 桌子 上", "put", "on the table", "portable"), ("洗 干净", "wash", "clean", "wash"),
         ("带 回 家", "bring", "home", "portable"), ("修 好", "repair", "", "repair"))
    )  # fmt: skip
    thing = definite_thing(rng, rng.choice(nouns_with(tag)))
    ba = zh_only(sequence(unit("把", ""), thing.object))
    return Predicate(((zh, en),), arrange(zh=(), en=(thing.object, after)), (ba,))


QUESTIONS: dict[Builder, float] = {yes_no: 6, a_not_a: 3, what: 4, where_or_how: 6, who: 4, choice_of_two: 2}
