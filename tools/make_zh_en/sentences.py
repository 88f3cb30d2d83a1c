"""Whole sentences: questions, requests, and statements joined or embedded.

Scope: from a source of choices to a finished pair with its final mark.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from . import clauses as c
from .clauses import Predicate, clause, copula, degree
from .noun_phrases import (
    NounPhrase,
    any_pronoun,
    definite_thing,
    measured,
    named,
    pronoun,
    relative_of,
    somebody,
)
from .nouns import NOUNS, PLACES, nouns_with, qualities_of
from .phrase import EMPTY, Phrase, arrange, en_only, sequence, unit, zh_only
from .predicates import FREQUENCY, WISHES, activity, doing, going, shopping, transitive, wished
from .statements import STATES, future, relative_thing, statement, weather
from .times import when
from .verbs import ACTIVITIES, TRANSITIVES

Sentence = Callable[[Random], Phrase]
YOU = ("你", "你", "他", "她", "你们", "他们")
THINKING = (("觉得", "think that"), ("知道", "know that"), ("听说", "hear that"), ("说", "say that"))
HOPING = ("希望", "hope that")
COMMA = arrange(zh=("，",), en=(",",))


def _end(phrase: Phrase, zh: str, en: str) -> Phrase:
    return arrange(zh=(phrase, zh), en=(phrase, en))


def told(phrase: Phrase) -> Phrase:
    """Close a statement with a full stop."""
    return _end(phrase, "。", ".")


def asked(phrase: Phrase) -> Phrase:
    """Close a question."""
    return _end(phrase, "？", "?")


def _asked_person(rng: Random) -> NounPhrase:
    return pronoun(rng.choice(YOU)) if rng.random() < 0.7 else rng.choice((named, relative_of))(rng)


def yes_no(rng: Random) -> Phrase:
    """…吗？"""
    subject = _asked_person(rng)
    kind = rng.random()
    predicate = replace(doing(rng, subject), extent=EMPTY)
    if kind < 0.25:
        body = clause(subject, predicate, c.PAST, time=when(rng, "past", far=predicate.far), question="yes_no")
    elif kind < 0.45:
        body = clause(subject, predicate, c.FUTURE, time=when(rng, "future", far=predicate.far), question="yes_no")
    elif kind < 0.6:
        body = clause(subject, predicate, c.EXPERIENCE, question="yes_no")
    elif kind < 0.75:
        body = clause(subject, wished(rng, predicate), c.HABIT, question="yes_no")
    elif kind < 0.9:
        often = unit(*FREQUENCY[0])
        body = clause(subject, predicate, c.HABIT, adverb=often, question="yes_no")
    else:
        noun = rng.choice([noun for noun in NOUNS if qualities_of(noun.tags)])
        adjective = rng.choice(qualities_of(noun.tags))
        body = clause(definite_thing(rng, noun), copula(unit(adjective.zh, adjective.en)), c.HABIT, question="yes_no")
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
        return asked(clause(subject, Predicate((("有", "have"),), measured(None, noun)), c.HABIT, question="a_not_a"))
    adjective = rng.choice(qualities_of(STATES))
    return asked(clause(subject, Predicate(((adjective.zh, f"be {adjective.en}"),)), c.HABIT, question="a_not_a"))


def _asked_deed(rng: Random, subject: NounPhrase, predicate: Predicate, front: Phrase, time: Phrase = EMPTY) -> Phrase:
    """A wh-question in a tense the Chinese shows."""
    kind = rng.random()
    if kind < 0.4:
        predicate = c.with_verb(predicate, rng.choice(WISHES[:3]))
        return asked(clause(subject, predicate, c.HABIT, time=time, question="wh", front=front))
    sort, aspect = ("past", c.PAST) if kind < 0.75 else ("future", c.FUTURE)
    day = when(rng, sort) if not time.zh else time
    return asked(clause(subject, predicate, aspect, time=day, question="wh", front=front))


def what(rng: Random) -> Phrase:
    """你想买什么？ 他昨天买了哪本书？ 你想买几本书？"""
    subject = _asked_person(rng)
    verb = rng.choice([verb for verb in TRANSITIVES if not verb.event])
    noun = rng.choice(nouns_with(verb.takes))
    kind = rng.random()
    if kind < 0.3 and verb.zh in ("买", "吃", "喝", "写", "画", "找到", "听", "带"):
        asked_for = unit("什么", "what")
    elif kind < 0.65:
        asked_for = measured(unit("哪", "which"), noun)
    else:
        asked_for = measured(unit("几", "how many"), noun, plural=True)
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
        predicate = replace(doing(rng, person, event=True), extent=EMPTY)
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
    return asked(arrange(zh=(subject.subject, old), en=(old, c_be(subject), subject.subject)))


def _whose(rng: Random) -> Phrase:
    noun = rng.choice(nouns_with("buy"))
    owner, thing = unit("谁", "whose"), unit(noun.zh, noun.singular)
    plural = noun.plural == "="
    this = unit(*rng.choice((("这些", "these"), ("那些", "those")) if plural else (("这", "this"), ("那", "that"))))
    return arrange(zh=(this, "是", owner, "的", thing), en=(owner, thing, "are" if plural else "is", this))


def c_be(subject: NounPhrase) -> str:
    """The present of "be" for a subject."""
    return {"I": "am", "it": "is", "they": "are"}[subject.agreement]


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
    deed = rng.choice((activity(rng, you, simple=rng.random() < 0.5), transitive(rng, definite=True)))
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
    return _end(arrange(zh=(we, day, body, "吧"), en=(we, body, day)), "。", ".")


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


def plain(rng: Random) -> Phrase:
    """A statement of one clause."""
    return told(statement(rng))


def _state(rng: Random, subject: NounPhrase) -> Phrase:
    """A reason: somebody's state, or lack of time or money."""
    if rng.random() < 0.6:
        adjective = rng.choice([state for state in qualities_of(STATES) if state.en != "happy"])
        return clause(subject, copula(degree("很", "very", adjective.zh, adjective.en)), c.HABIT)
    have = Predicate((("有", "have"),), unit(*rng.choice((("时间", "time"), ("钱", "money")))))
    return clause(subject, have, c.HABIT, negative=True)


def _again(subject: NounPhrase) -> NounPhrase:
    return pronoun(subject.pronoun)


def _swapped(subject: NounPhrase, again: NounPhrase) -> tuple[NounPhrase, NounPhrase]:
    """The two mentions of one person when English turns the clauses round: each language has the name first."""
    first = replace(subject, subject=Phrase(subject.subject.zh, again.subject.en), agreement=again.agreement)
    second = replace(again, subject=Phrase(again.subject.zh, subject.subject.en), agreement=subject.agreement)
    return first, second


def _refusal(rng: Random, subject: NounPhrase) -> Phrase:
    """What follows from a state: not wanting to, not being able to."""
    predicate = _plan(rng, subject)
    if rng.random() < 0.5:
        return clause(subject, predicate, c.CAN, negative=True)
    return clause(subject, c.with_verb(predicate, WISHES[0]), c.HABIT, negative=True)


def _plan(rng: Random, subject: NounPhrase) -> Predicate:
    """Something one may have in mind: an activity, a way to go, or a certain thing to deal with."""
    kind = rng.random()
    if kind < 0.5:
        return replace(activity(rng, subject), extent=EMPTY)
    if kind < 0.7:
        return going(rng, subject)
    if kind < 0.85:
        verb = rng.choice([verb for verb in TRANSITIVES if not verb.event])
        thing = relative_thing(rng, rng.choice(nouns_with(verb.takes)))
        return Predicate(((verb.zh, verb.en),), thing.object)
    return transitive(rng, definite=True)


def because(rng: Random) -> Phrase:
    """因为…，所以…: a state or rain, and what it keeps one from; English gives the reason last."""
    subject, again = _swapped(*_pair(rng))
    why, so = unit("因为", "because"), unit("所以", "")
    if rng.random() < 0.3:
        reason, result = weather(rng, subject), _refusal(rng, somebody(rng))
    else:
        reason, result = _state(rng, subject), _refusal(rng, again)
    return arrange(zh=(why, reason, COMMA, so, result), en=(result, why, reason))


def although(rng: Random) -> Phrase:
    """虽然…，但是…: a state, and what is done all the same."""
    subject = somebody(rng, gendered=True)
    though, but = unit("虽然", "although"), unit("但是", "")
    first = _state(rng, subject)
    again = _again(subject)
    predicate = _plan(rng, again)
    if rng.random() < 0.5:
        second = clause(again, wished(rng, predicate), c.HABIT)
    else:
        second = clause(again, predicate, c.MUST)
    return sequence(though, first, COMMA, but, second)


def if_then(rng: Random) -> Phrase:
    """如果…，就…: English has the present in the condition."""
    if_, then = unit("如果", "if"), unit("就", "")
    subject, again = _pair(rng)
    if rng.random() < 0.4:
        it = NounPhrase(unit("", "it"), EMPTY, "it")
        rain = rng.choice((("雨", "rain"), ("雪", "snow")))
        first = clause(it, Predicate((("下", rain[1]),), unit(rain[0], "")), c.HABIT, time=when(rng, "future", exact=False))
        again = subject
    elif rng.random() < 0.5:
        have = Predicate((("有", "have"),), unit("时间", "time"))
        first = clause(subject, have, c.HABIT, time=when(rng, "future", exact=False))
    else:
        predicate = c.with_verb(activity(rng, subject, simple=True), rng.choice(WISHES[:1]))
        first = clause(subject, predicate, c.HABIT)
    predicate = replace(doing(rng, again), extent=EMPTY)
    second = clause(again, predicate, c.FUTURE, adverb=then, negative=rng.random() < 0.3)
    return sequence(if_, first, COMMA, second)


def _pair(rng: Random) -> tuple[NounPhrase, NounPhrase]:
    subject = somebody(rng, gendered=True)
    return subject, _again(subject)


def when_clause(rng: Random) -> Phrase:
    """…的时候，…; …以前，…; …以后，…: English gives the time last, after its conjunction."""
    subject, again = _swapped(*_pair(rng))
    first = clause(subject, activity(rng, subject, simple=True), c.HABIT)
    joint = unit(*rng.choice((("的 时候", "when"), ("以前", "before"), ("以后", "after"))))
    second = clause(again, activity(rng, again), c.HABIT, adverb=unit(*rng.choice(FREQUENCY)))
    return arrange(zh=(first, joint, COMMA, second), en=(second, joint, first))


def contrast(rng: Random) -> Phrase:
    """我喜欢…，但是我弟弟喜欢…."""
    subject, other = any_pronoun(rng), relative_of(rng, owner="我")
    likes = rng.choice(WISHES)
    first = clause(subject, c.with_verb(activity(rng, subject, simple=True, lasting=True), likes), c.HABIT)
    second = clause(other, c.with_verb(activity(rng, other, simple=True, lasting=True), likes), c.HABIT)
    return sequence(first, COMMA, unit("但是", "but"), second)


def also(rng: Random) -> Phrase:
    """他不但会…，而且会…: not only … but also."""
    subject = somebody(rng)
    deeds = rng.sample([a for a in ACTIVITIES if a.places in ("home", "sport", "study") and "{my}" not in a.en_object], 2)
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


def _step(rng: Random, subject: NounPhrase) -> Predicate:
    kind = rng.random()
    if kind < 0.08:
        return shopping(rng, 2)
    if kind < 0.4:
        return going(rng, subject)
    return replace(doing(rng, subject), extent=EMPTY)


def bought_things(rng: Random) -> Phrase:
    """我昨天在商店买了一本书、两件毛衣和一条裤子."""
    subject = somebody(rng)
    return clause(subject, shopping(rng, 4), c.PAST, time=when(rng, "past", far=True), time_first=rng.random() < 0.4)


def thinking(rng: Random, content: Phrase | None = None) -> Phrase:
    """我觉得…, 他说…."""
    subject = somebody(rng)
    if content is None and rng.random() < 0.25:
        return clause(subject, Predicate((HOPING,), future(rng, somebody(rng))), c.HABIT)
    return clause(subject, Predicate((rng.choice(THINKING),), content or statement(rng)), c.HABIT)


def wanted_thing(rng: Random) -> Phrase:
    """他想买我昨天看的那本书: an object with a relative clause."""
    subject = somebody(rng)
    verb = rng.choice([verb for verb in TRANSITIVES if not verb.event])
    noun = rng.choice(nouns_with(verb.takes))
    thing = relative_thing(rng, noun)
    predicate = Predicate(((verb.zh, verb.en),), thing.object)
    if rng.random() < 0.6:
        return clause(subject, c.with_verb(predicate, rng.choice(WISHES[:3])), c.HABIT, negative=rng.random() < 0.2)
    return clause(subject, predicate, c.FUTURE, time=when(rng, "future"), time_first=True, negative=rng.random() < 0.2)


def short_story(rng: Random) -> Phrase:
    """Two deeds, one after the other."""
    return story(rng, 2)


COMPLEX: dict[Sentence, float] = {
    because: 5, although: 4, if_then: 5, when_clause: 5, contrast: 2, also: 2, bought_things: 1, thinking: 6,
    wanted_thing: 8, short_story: 3,
}  # fmt: skip
QUESTIONS: dict[Sentence, float] = {yes_no: 6, a_not_a: 3, what: 4, where_or_how: 6, who: 4, choice_of_two: 2}


def _pick(rng: Random, table: dict[Sentence, float]) -> Phrase:
    return rng.choices(list(table), weights=list(table.values()))[0](rng)


def complex_statement(rng: Random) -> Phrase:
    """Two or more clauses in one, without the final mark."""
    return _pick(rng, COMPLEX)


def joined(rng: Random) -> Phrase:
    """Two complex statements of one sentence: A，而且B."""
    return sequence(complex_statement(rng), COMMA, unit("而且", "and"), rng.choice((complex_statement, statement))(rng))


def extended(rng: Random) -> Phrase:
    """A sentence of several clauses, mostly of 30 characters and more."""
    kind = rng.random()
    if kind < 0.55:
        return joined(rng)
    if kind < 0.9:
        return thinking(rng, complex_statement(rng))
    return story(rng, 3)


def sentence(rng: Random) -> Phrase:
    """Any sentence of the kind that train, valid and test are made of."""
    kind = rng.random()
    if kind < 0.47:
        return plain(rng)
    if kind < 0.63:
        return _pick(rng, QUESTIONS)
    if kind < 0.68:
        return request(rng)
    if kind < 0.83:
        return told(complex_statement(rng))
    return told(extended(rng))


def long_sentence(rng: Random) -> Phrase:
    """A sentence of the same grammar with more embedding and more clauses."""
    kind = rng.random()
    if kind < 0.3:
        return told(story(rng, rng.randint(4, 5)))
    if kind < 0.55:
        return told(thinking(rng, joined(rng)))
    if kind < 0.8:
        return told(joined(rng))
    return told(sequence(joined(rng), COMMA, unit("但是", "but"), statement(rng)))

