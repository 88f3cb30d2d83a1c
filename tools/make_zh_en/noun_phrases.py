"""Noun phrases: people, things, their determiners, counting with measure words, relative clauses.

Scope: what can be subject or object. Knows nothing of tense and of whole sentences.
"""

from dataclasses import dataclass
from random import Random

from .english import Agreement, article
from .nouns import KIN, NAMES, PERSONS, Adjective, Named, Noun, Person, attributes_of, rows
from .phrase import Part, Phrase, arrange, sequence, unit
from .times import counted


@dataclass(frozen=True)
class NounPhrase:
    """A noun phrase in subject and object form.

    `heavy` phrases end in a clause in English, so that a time of the main clause has to stand first.
    `pronoun` is the Chinese pronoun that may stand for it later in the sentence, empty if its gender is not
    known; `my` is the English possessive that goes with it, empty likewise.
    """

    subject: Phrase
    object: Phrase
    agreement: Agreement
    pronoun: str = ""
    my: str = ""
    heavy: bool = False


AGREEMENTS: dict[str, Agreement] = {"I": "I", "it": "it", "they": "they"}
_PRONOUNS = """
我, I, me, my, I
你, you, you, your, they
他, he, him, his, it
她, she, her, her, it
我们, we, us, our, they
你们, you, you, your, they
他们, they, them, their, they
"""
PRONOUNS = {row[0]: row[1:] for row in rows(_PRONOUNS)}
SINGULAR_THIRD = ("他", "她")
CONTAINERS = {
    "pair": "pairs", "piece": "pieces", "bowl": "bowls", "plate": "plates", "cup": "cups", "glass": "glasses",
    "bottle": "bottles",
}  # fmt: skip
# Things that come in larger numbers.
MANY = frozenset({"food", "text", "shoot", "plant", "ask", "break"})
SEVERAL = (("几", "several"), ("十几", "more than ten"))


def pronoun(zh: str) -> NounPhrase:
    """The personal pronoun 我, 你, 他, …"""
    subject, object_, my, agreement = PRONOUNS[zh]
    return NounPhrase(unit(zh, subject), unit(zh, object_), AGREEMENTS[agreement], zh, my)


def any_pronoun(rng: Random) -> NounPhrase:
    """Any personal pronoun; the frequent ones more often."""
    return pronoun(rng.choice(("我", "我", "你", "他", "他", "她", "她", "我们", "他们", "你们")))


def _third(phrase: Phrase, gender: str) -> NounPhrase:
    zh = "他" if gender == "m" else "她"
    return NounPhrase(phrase, phrase, "it", zh, PRONOUNS[zh][2])


def named(rng: Random) -> NounPhrase:
    """Somebody by name."""
    person = rng.choice(NAMES)
    return _third(unit(person.zh, person.en), person.gender)


def relative_of(rng: Random, owner: str = "") -> NounPhrase:
    """A relative, of `owner` if given: 我妈妈 "my mother", 小明的妈妈 "Xiaoming's mother"."""
    if not owner and rng.random() < 0.25:
        name = rng.choice(NAMES)
        kin = _kin(rng, name.gender)
        return _third(
            sequence(unit(name.zh, f"{name.en}'s"), unit("的", ""), unit(kin.zh, kin.en)), kin.gender
        )
    zh = owner or rng.choice(("我", "我", "你", "他", "她"))
    kin = _kin(rng, {"他": "m", "她": "f"}.get(zh, ""))
    return _third(sequence(unit(zh, PRONOUNS[zh][2]), unit(kin.zh, kin.en)), kin.gender)


def _kin(rng: Random, owner_gender: str) -> Named:
    """A relative that somebody of this gender can have."""
    impossible = {"m": "丈夫", "f": "妻子"}.get(owner_gender)
    return rng.choice([kin for kin in KIN if kin.zh != impossible])


def the_person(rng: Random) -> NounPhrase:
    """老师 "the teacher", 这位老师 "this teacher", 学生们 "the students", 三个学生 "three students"."""
    person = rng.choice(PERSONS)
    kind = rng.choice(("bare", "bare", "this", "many", "these"))
    if kind == "bare":
        noun = unit(person.zh, person.singular)
        phrase = arrange(zh=(noun,), en=("the", noun))
        return NounPhrase(phrase, phrase, "it")
    if kind == "this":
        zh, en = rng.choice((("这", "this"), ("那", "that")))
        phrase = sequence(unit(zh, en), unit(person.measure, ""), unit(person.zh, person.singular))
        return NounPhrase(phrase, phrase, "it")
    noun = unit(person.zh, person.plural)
    if kind == "these":
        zh, en = rng.choice((("这些", "these"), ("那些", "those")))
        phrase = sequence(unit(zh, en), noun)
    else:
        phrase = arrange(zh=(noun, "们"), en=("the", noun))
    return NounPhrase(phrase, phrase, "they", "他们", "their")


def pair_of_people(rng: Random) -> NounPhrase:
    """Two people; English politely puts "I" last, so 我和小明 is "Xiaoming and I"."""
    if rng.random() < 0.6:
        other = rng.choice((named, relative_of))(rng)
        me, and_ = pronoun("我"), unit("和", "and")
        subject = arrange(zh=(me.subject, and_, other.subject), en=(other.subject, and_, me.subject))
        object_ = arrange(zh=(me.object, and_, other.object), en=(other.object, and_, me.object))
        return NounPhrase(subject, object_, "they", "我们", "our")
    first, second = rng.sample(NAMES, 2)
    phrase = sequence(unit(first.zh, first.en), unit("和", "and"), unit(second.zh, second.en))
    return NounPhrase(phrase, phrase, "they", "他们", "their")


def somebody(rng: Random, *, gendered: bool = False) -> NounPhrase:
    """Any person as a subject; with `gendered`, one that a later pronoun can stand for."""
    kind = rng.random()
    if kind < 0.42:
        return any_pronoun(rng)
    if kind < 0.58:
        return named(rng)
    if kind < 0.76:
        return relative_of(rng)
    if kind < 0.84:
        return pair_of_people(rng)
    person = the_person(rng)
    return somebody(rng, gendered=True) if gendered and not person.pronoun else person


def other_person(rng: Random) -> NounPhrase:
    """A person as an object beside any subject: never a pronoun, so that it cannot be the subject itself."""
    return rng.choice((named, the_person))(rng)


def _is_mass(noun: Noun) -> bool:
    return noun.plural == "-"


def bare_agreement(noun: Noun) -> Agreement:
    """Agreement of the noun without a measure word: "my tea is", "my shoes are"."""
    return "they" if noun.plural == "=" else "it"


def _described(adjective: Adjective | None) -> list[Part]:
    if adjective is None:
        return []
    word = unit(adjective.zh, adjective.en)
    return [sequence(word, unit("的", ""))] if adjective.attribute == "de" else [word]


def measured(
    determiner: Phrase | None, noun: Noun, *, plural: bool = False, adjective: Adjective | None = None
) -> Phrase:
    """Determiner, measure word, adjective, noun: 三双新鞋 "three pairs of new shoes".

    Without a determiner the English indefinite article goes with 一.
    """
    if noun.container == "-":
        measure = unit(noun.measure, "")
        head = unit(noun.zh, noun.plural if plural else noun.singular)
    else:
        measure = unit(noun.measure, f"{CONTAINERS[noun.container] if plural else noun.container} of")
        head = unit(noun.zh, noun.singular)
    rest = sequence(measure, *(part for part in _described(adjective) if isinstance(part, Phrase)), head)
    if determiner is None:
        determiner = unit("一", article(rest.en[0][0]))
    return sequence(determiner, rest)


def maybe_adjective(rng: Random, noun: Noun, share: float = 0.4) -> Adjective | None:
    """With the given probability, an adjective that may stand before the noun."""
    choices = attributes_of(noun)
    return rng.choice(choices) if choices and rng.random() < share else None


def indefinite(rng: Random, noun: Noun) -> NounPhrase:
    """一本书, 三本书, 几本书, 很多书: "a book", "three books", …"""
    adjective = maybe_adjective(rng, noun)
    kind = rng.random()
    if kind < 0.55:
        phrase = measured(None, noun, adjective=adjective)
        return NounPhrase(phrase, phrase, "it")
    if kind < 0.85:
        value = rng.choice((2, 2, 2, 3, 3, 4, 5))
        if noun.tags & MANY and rng.random() < 0.5:
            value = rng.choice((6, 7, 8, 9, 10, 11, 12, 15, 20, 30))
        phrase = measured(counted(value), noun, plural=True, adjective=adjective)
    elif kind < 0.95:
        phrase = measured(unit(*rng.choice(SEVERAL)), noun, plural=True, adjective=adjective)
    else:
        phrase = sequence(unit("很多", "a lot of"), generic_thing(noun))
        return NounPhrase(phrase, phrase, "it" if _is_mass(noun) else "they")
    return NounPhrase(phrase, phrase, "they")


def generic_thing(noun: Noun) -> Phrase:
    """书 as such, "books"; 茶, "tea"."""
    return unit(noun.zh, noun.singular if noun.plural in "-=" else noun.plural)


def list_of_things(rng: Random, nouns: list[Noun], most: int) -> Phrase:
    """一本书、两件毛衣和一条裤子: two to `most` different things."""
    chosen = rng.sample(nouns, min(len(nouns), rng.randint(2, most)))
    things = [indefinite(rng, noun).object for noun in chosen]
    parts: list[Phrase] = []
    for index, thing in enumerate(things):
        if index:
            parts.append(unit("和", "and") if index == len(things) - 1 else unit("、", ","))
        parts.append(thing)
    return sequence(*parts)


def definite_thing(rng: Random, noun: Noun, *, described: bool = True) -> NounPhrase:
    """这本书 "this book", 我的书 "my book", 那些书 "those books"."""
    kind = rng.choice(("this", "this", "my", "these" if not _is_mass(noun) else "this"))
    if kind == "my":
        return possessed(noun, rng.choice(tuple(PRONOUNS)))
    if kind == "these":
        zh, en = rng.choice((("这些", "these"), ("那些", "those")))
        phrase = sequence(unit(zh, en), unit(noun.zh, noun.singular if noun.plural == "=" else noun.plural))
        return NounPhrase(phrase, phrase, "they")
    zh, en = rng.choice((("这", "this"), ("那", "that")))
    phrase = measured(unit(zh, en), noun, adjective=maybe_adjective(rng, noun, 0.15 if described else 0))
    return NounPhrase(phrase, phrase, "it")


def possessed(noun: Noun, owner: str) -> NounPhrase:
    """我的书, "my book"."""
    phrase = sequence(unit(owner, PRONOUNS[owner][2]), unit("的", ""), unit(noun.zh, noun.singular))
    return NounPhrase(phrase, phrase, bare_agreement(noun))


def the_thing(noun: Noun) -> NounPhrase:
    """书 after 把, "the book"."""
    head = unit(noun.zh, noun.singular)
    phrase = arrange(zh=(head,), en=("the", head))
    return NounPhrase(phrase, phrase, bare_agreement(noun))


def with_relative_clause(rng: Random, clause: Phrase, noun: Noun) -> NounPhrase:
    """我昨天买的那本书, "the book that I bought yesterday"; `clause` has a gap where the noun belongs."""
    value = rng.choice((1, 1, 1, 2, 3))
    head = measured(None, noun, plural=value > 1)
    # The head without its numeral: 那 alone for one, 那两 for two.
    rest = Phrase(head.zh[1:], head.en[1:])
    that, of = unit("那", "the"), unit("的", "that")
    number_ = (counted(value),) if value > 1 else ()
    phrase = arrange(zh=(clause, of, that, *number_, rest), en=(that, *number_, rest, of, clause))
    return NounPhrase(phrase, phrase, "they" if value > 1 else "it", heavy=True)


def person_with_relative_clause(clause: Phrase, person: Person) -> NounPhrase:
    """穿红毛衣的那个女孩, "the girl who is wearing a red sweater"."""
    that, of = unit("那", "the"), unit("的", "who")
    head = sequence(unit(person.measure, ""), unit(person.zh, person.singular))
    phrase = arrange(zh=(clause, of, that, head), en=(that, head, of, clause))
    return NounPhrase(phrase, phrase, "it")
