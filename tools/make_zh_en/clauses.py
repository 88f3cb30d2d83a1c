"""Clauses: a subject, a predicate, a tense and what goes with them, ordered as each language wants.

Scope: one clause, statement or question, without its final mark. Knows no vocabulary but its function words.
"""

from dataclasses import dataclass, replace
from typing import Literal

from .english import Tense, verb_group
from .noun_phrases import NounPhrase
from .phrase import EMPTY, Phrase, arrange, en_only, sequence, unit, zh_only

Question = Literal["", "yes_no", "a_not_a", "wh"]


@dataclass(frozen=True)
class Predicate:
    """Verbs, object and modifiers of a clause.

    `verbs` are (Chinese, English base form) pairs; the first is inflected. Chinese has `modifiers` (places,
    companions) before its last verb, and `extent` (how long, how often) between verb and object; English has
    both after the object. With a `counted` object 了 follows the verb, else it ends the clause. With a `far`
    verb one may say the date or the year.
    """

    verbs: tuple[tuple[str, str], ...]
    object: Phrase = EMPTY
    modifiers: tuple[Phrase, ...] = ()
    extent: Phrase = EMPTY
    counted: bool = False
    far: bool = False


@dataclass(frozen=True)
class Aspect:
    """A tense: its Chinese marks before and after the verb and when negated, its English form and adverb."""

    tense: Tense
    before: str = ""
    after: str = ""
    negation: str = "不"
    adverb: str = ""


HABIT = Aspect(Tense.PRESENT)
PAST = Aspect(Tense.PAST, after="了", negation="没")
FUTURE = Aspect(Tense.FUTURE, before="会")
GOING = Aspect(Tense.GOING_TO, before="要")
PROGRESSIVE = Aspect(Tense.PROGRESSIVE, before="正在", negation="没 在")
EXPERIENCE = Aspect(Tense.PERFECT, after="过", negation="没")
ALREADY = Aspect(Tense.PERFECT, before="已经", after="了", adverb="already")
JUST = Aspect(Tense.PERFECT, before="刚", adverb="just")
CAN = Aspect(Tense.CAN, before="能")
SKILL = Aspect(Tense.CAN, before="会")
SHOULD = Aspect(Tense.SHOULD, before="应该")
MUST = Aspect(Tense.MUST, before="必须")
MAY = Aspect(Tense.MAY, before="可以")


def clause(
    subject: NounPhrase,
    predicate: Predicate,
    aspect: Aspect,
    *,
    negative: bool = False,
    time: Phrase = EMPTY,
    time_first: bool = False,
    adverb: Phrase = EMPTY,
    question: Question = "",
    front: Phrase = EMPTY,
    gap: bool = False,
) -> Phrase:
    """Build a clause.

    Args:
        subject: its subject.
        predicate: verbs, object, modifiers.
        aspect: tense and its Chinese marking.
        negative: negate it.
        time: point of time; English says it last, or first with a comma if `time_first`.
        adverb: "often", "also", …
        question: sort of question; "wh" has `front`, whose Chinese stands inside the predicate or as time.
        gap: this is a relative clause.
    """
    # A relative clause drops the 了 that would end it; the one between verb and counted object stays.
    has_le = not (negative and aspect is PAST) and not (
        gap and not (predicate.counted and predicate.object.zh)
    )
    marker, auxiliary, verbs = _verbs(subject, predicate, aspect, negative, question)
    en_adverb = (aspect.adverb,) if aspect.adverb else ()
    if aspect is EXPERIENCE and negative:
        en_adverb = ("never",)
    elif aspect is EXPERIENCE and question:
        en_adverb = ("ever",)
    zh_subject = (time, subject.subject) if time_first else (subject.subject, time)
    zh_verb, zh_end = _chinese_tail(verbs, predicate, aspect, marked=has_le)
    chinese = (
        *zh_subject,
        adverb,
        marker,
        *verbs[:-1],
        *_modifiers(predicate, aspect),
        zh_verb,
        zh_end,
    )
    rest = (*verbs, predicate.object, *predicate.modifiers, predicate.extent)
    if question:
        english = (front, auxiliary, subject.subject, *en_adverb, adverb, *rest, time)
    elif time_first:
        english = (time, ",", subject.subject, auxiliary, *en_adverb, adverb, *rest)
    else:
        english = (subject.subject, auxiliary, *en_adverb, adverb, *rest, time)
    return arrange(zh=(*chinese, "吗") if question == "yes_no" else chinese, en=english)


def _verbs(
    subject: NounPhrase, predicate: Predicate, aspect: Aspect, negative: bool, question: Question
) -> tuple[Phrase, Phrase, list[Phrase]]:
    """Chinese marker before the verb, English auxiliary, verbs with the English first one inflected."""
    zh_first, en_first = predicate.verbs[0]
    never = negative and aspect is EXPERIENCE
    auxiliary, main = verb_group(
        en_first, aspect.tense, subject.agreement, negative=negative and not never, inverted=bool(question)
    )
    if negative:
        word = "没" if zh_first == "有" else aspect.negation
        before = aspect.before if aspect is not PROGRESSIVE else ""
        marker = unit(f"{word} {before}", auxiliary)
    elif question == "a_not_a" and aspect.before:
        marker = unit(f"{aspect.before} 不 {aspect.before}", auxiliary)
    else:
        marker = unit(aspect.before, auxiliary if aspect.before else "")
    if question == "a_not_a" and not aspect.before:
        zh_first = f"{zh_first} {'没' if zh_first == '有' else '不'} {zh_first}"
    aux = en_only(marker) if marker.en else arrange(zh=(), en=(auxiliary,))
    rest = [unit(zh, en) for zh, en in predicate.verbs[1:]]
    return zh_only(marker), aux, [unit(zh_first, main), *rest]


def _modifiers(predicate: Predicate, aspect: Aspect) -> list[Phrase]:
    """Modifiers as Chinese has them; 正在 before 在 takes it in: 正在图书馆."""
    modifiers = list(predicate.modifiers)
    if modifiers and aspect is PROGRESSIVE and modifiers[0].zh[0][0] == "在":
        modifiers[0] = Phrase(modifiers[0].zh[1:], modifiers[0].en)
    return modifiers


def _chinese_tail(
    verbs: list[Phrase], predicate: Predicate, aspect: Aspect, *, marked: bool
) -> tuple[Phrase, Phrase]:
    """(last verb with extent and object, what ends the clause)."""
    after = aspect.after if marked else ""
    # 了 ends the clause after a bare object; 过 always follows the verb.
    at_verb = after and (predicate.counted or after == "过" or predicate.extent.zh)
    verb = arrange(zh=(verbs[-1], after if at_verb else "", predicate.extent, predicate.object), en=())
    return verb, arrange(zh=("" if at_verb else after,), en=())


def with_modifier(predicate: Predicate, modifier: Phrase) -> Predicate:
    """The predicate with one more modifier."""
    return replace(predicate, modifiers=(*predicate.modifiers, modifier))


def with_verb(predicate: Predicate, *verbs: tuple[str, str]) -> Predicate:
    """The predicate under further verbs: 想 "want to" before it."""
    return replace(predicate, verbs=(*verbs, *predicate.verbs))


def copula(complement: Phrase, zh: str = "") -> Predicate:
    """ "be" with its complement; Chinese 是 or nothing (很忙)."""
    return Predicate(((zh, "be"),), complement)


def degree(zh: str, en: str, adjective_zh: str, adjective_en: str) -> Phrase:
    """很忙, "very busy"."""
    return sequence(unit(zh, en), unit(adjective_zh, adjective_en))


COMMA = arrange(zh=("，",), en=(",",))


def told(phrase: Phrase) -> Phrase:
    """A statement or a request closed with its full stop."""
    return arrange(zh=(phrase, "。"), en=(phrase, "."))


def asked(phrase: Phrase) -> Phrase:
    """A question closed with its mark."""
    return arrange(zh=(phrase, "？"), en=(phrase, "?"))
