"""The generator of the bundled corpus: inflection, numerals, ordering of clauses, difficulty measures."""

from random import Random

import pytest

from tools.make_zh_en import clauses as c
from tools.make_zh_en.clauses import Predicate, clause
from tools.make_zh_en.corpus import SIZES, Pair, corpus_files, english_words, make_corpus
from tools.make_zh_en.difficulty import dictionary_of, nearest_neighbour, segment, word_by_word
from tools.make_zh_en.english import (
    Agreement,
    Tense,
    article,
    gerund,
    participle,
    past_tense,
    third_person,
    verb_group,
)
from tools.make_zh_en.noun_phrases import measured, pair_of_people, pronoun, with_relative_clause
from tools.make_zh_en.nouns import ADJECTIVES, NOUNS, PLACES
from tools.make_zh_en.phrase import (
    EMPTY,
    Phrase,
    arrange,
    chinese_text,
    en_only,
    english_text,
    is_reordered,
    sequence,
    unit,
    zh_only,
)
from tools.make_zh_en.times import counted, date, number_en, number_zh
from tools.make_zh_en.verbs import ACTIVITIES, DISPOSALS, PERSON_VERBS, TRANSITIVES

NOUN = {noun.zh: noun for noun in NOUNS}


def texts(phrase: Phrase) -> tuple[str, str]:
    return chinese_text(phrase), english_text(phrase)


@pytest.mark.parametrize(
    ("lemma", "forms"),
    [
        ("go", "goes went gone going"),
        ("study", "studies studied studied studying"),
        ("play", "plays played played playing"),
        ("shop", "shops shopped shopped shopping"),
        ("write", "writes wrote written writing"),
        ("see", "sees saw seen seeing"),
        ("have", "has had had having"),
        ("brush", "brushes brushed brushed brushing"),
    ],
)
def test_verb_forms(lemma: str, forms: str) -> None:
    """Pins wrong spelling of inflected forms (goed, studys, shoped, writeing)."""
    assert " ".join((third_person(lemma), past_tense(lemma), participle(lemma), gerund(lemma))) == forms


def test_articles() -> None:
    """Pins an article chosen by letter where the sound differs, or not at all."""
    assert [article(word) for word in ("apple", "old", "hour", "university", "book")] == [
        "an",
        "an",
        "an",
        "a",
        "a",
    ]


@pytest.mark.parametrize(
    ("phrase", "tense", "agreement", "options", "expected"),
    [
        ("buy", Tense.PRESENT, "it", "", ("", "buys")),
        ("buy", Tense.PRESENT, "it", "negative", ("doesn't", "buy")),
        ("buy", Tense.PAST, "they", "inverted", ("did", "buy")),
        ("want to buy", Tense.PRESENT, "it", "", ("", "wants to buy")),
        ("be very tired", Tense.PRESENT, "I", "", ("am", "very tired")),
        ("be stolen", Tense.PAST, "they", "", ("were", "stolen")),
        ("turn off", Tense.PROGRESSIVE, "I", "negative", ("am not", "turning off")),
        ("ride", Tense.PERFECT, "it", "", ("has", "ridden")),
        ("go", Tense.GOING_TO, "they", "", ("are", "going to go")),
        ("swim", Tense.CAN, "it", "negative", ("can't", "swim")),
    ],
)
def test_verb_group(
    phrase: str, tense: Tense, agreement: Agreement, options: str, expected: tuple[str, str]
) -> None:
    """Pins lost do-support, agreement on the wrong word, and inflection after an auxiliary."""
    negative, inverted = "negative" in options, "inverted" in options
    assert verb_group(phrase, tense, agreement, negative=negative, inverted=inverted) == expected


@pytest.mark.parametrize(
    ("value", "zh", "en"),
    [
        (2, "二", "two"),
        (10, "十", "ten"),
        (12, "十二", "twelve"),
        (25, "二十五", "twenty-five"),
        (105, "一百零五", "one hundred and five"),
        (210, "两百一十", "two hundred and ten"),
        (300, "三百", "three hundred"),
    ],
)
def test_numerals(value: int, zh: str, en: str) -> None:
    """Pins 零 left out or doubled, 一 before a leading 十, 二 for 两, and a lost "and"."""
    assert (number_zh(value).replace(" ", ""), number_en(value)) == (zh, en)


def test_two_before_a_measure_word() -> None:
    """Pins 二本: before a measure word 2 is 两."""
    assert texts(measured(counted(2), NOUN["鞋"], plural=True)) == ("两双鞋", "Two pairs of shoes")


def test_dates() -> None:
    """Pins "March 3th"."""
    assert [texts(date(3, day))[1] for day in (1, 2, 3, 5, 11, 22)] == [
        "March 1st", "March 2nd", "March 3rd", "March 5th", "March 11th", "March 22nd"
    ]  # fmt: skip


def test_measure_word_and_article_follow_the_noun() -> None:
    """Pins one measure word for all nouns, and an article that ignores the adjective."""
    old = next(adjective for adjective in ADJECTIVES if adjective.zh == "旧")
    assert texts(measured(None, NOUN["车"], adjective=old)) == ("一辆旧车", "An old car")
    assert texts(measured(None, NOUN["茶"])) == ("一杯茶", "A cup of tea")


def test_clause_moves_time_and_place() -> None:
    """Pins word order copied from Chinese: time and place go behind the object in English."""
    place = sequence(unit("在", "in"), unit("图书馆", "the library"))
    predicate = Predicate((("看", "read"),), unit("书", "books"), (place,))
    phrase = clause(pronoun("他"), predicate, c.PAST, time=unit("昨天", "yesterday"))
    assert texts(phrase) == ("他昨天在图书馆看书了", "He read books in the library yesterday")
    assert is_reordered(phrase)


@pytest.mark.parametrize(
    ("aspect", "negative", "zh", "en"),
    [
        (c.PAST, True, "他没骑马", "He didn't ride a horse"),
        (c.HABIT, True, "他不骑马", "He doesn't ride a horse"),
        (c.EXPERIENCE, False, "他骑过马", "He has ridden a horse"),
        (c.EXPERIENCE, True, "他没骑过马", "He has never ridden a horse"),
        (c.ALREADY, False, "他已经骑马了", "He has already ridden a horse"),
        (c.FUTURE, True, "他不会骑马", "He won't ride a horse"),
        (c.PROGRESSIVE, False, "他正在骑马", "He is riding a horse"),
        (c.PROGRESSIVE, True, "他没在骑马", "He isn't riding a horse"),
    ],
)
def test_aspect_and_negation(aspect: c.Aspect, negative: bool, zh: str, en: str) -> None:
    """Pins 不 and 没 exchanged, 了 kept under 没, and an aspect told by the wrong English tense."""
    predicate = Predicate((("骑", "ride"),), unit("马", "a horse"))
    assert texts(clause(pronoun("他"), predicate, aspect, negative=negative)) == (zh, en)


@pytest.mark.parametrize(
    ("question", "zh", "en"),
    [
        ("yes_no", "她喝茶吗", "Does she drink tea"),
        ("a_not_a", "她喝不喝茶", "Does she drink tea"),
    ],
)
def test_questions_invert(question: c.Question, zh: str, en: str) -> None:
    """Pins a question without its auxiliary, or with an inflected verb after it."""
    predicate = Predicate((("喝", "drink"),), unit("茶", "tea"))
    assert texts(clause(pronoun("她"), predicate, c.HABIT, question=question)) == (zh, en)


def test_wh_word_stays_in_chinese_and_moves_in_english() -> None:
    """Pins a question word left in place in English."""
    what = unit("什么", "what")
    predicate = Predicate((("想", "want to"), ("买", "buy")), zh_only(what))
    phrase = clause(pronoun("你"), predicate, c.HABIT, question="wh", front=en_only(what))
    assert texts(phrase) == ("你想买什么", "What do you want to buy")


def test_relative_clause_follows_its_noun_in_english() -> None:
    """Pins a relative clause before its head in English, and 了 inside an object relative."""
    body = clause(
        pronoun("我"), Predicate((("买", "buy"),)), c.PAST, time=unit("昨天", "yesterday"), gap=True
    )
    seeds = (with_relative_clause(Random(seed), body, NOUN["书"]) for seed in range(20))
    thing = next(thing for thing in seeds if thing.agreement == "it")
    assert texts(thing.subject) == ("我昨天买的那本书", "The book that I bought yesterday")


def test_i_comes_last_in_english() -> None:
    """Pins "I and Mary"."""
    pairs = (pair_of_people(Random(seed)) for seed in range(20))
    pair = next(pair for pair in pairs if pair.pronoun == "我们")
    assert english_text(pair.subject).endswith(" and I")
    assert english_text(pair.object).endswith(" and me")


def test_crossing_needs_two_units_in_opposite_order() -> None:
    """Pins a measure that counts every sentence, or none, as reordered."""
    first, second, unaligned = unit("甲", "a"), unit("乙", "b"), unit("吗", "")
    assert not is_reordered(sequence(first, unaligned, second))
    assert is_reordered(arrange(zh=(first, second), en=(second, "the", first)))


def test_every_tag_leads_somewhere() -> None:
    """Pins a verb without a noun to go with it, and an activity without a place to do it."""
    tags = {tag for noun in NOUNS for tag in noun.tags}
    assert {verb.takes for verb in TRANSITIVES} | {verb.takes for verb in DISPOSALS} <= tags
    place_tags = {tag for place in PLACES for tag in place.tags}
    assert {a.places for a in ACTIVITIES} - {"-", "minor"} <= place_tags
    assert EMPTY.zh == ()


def test_verb_is_translated_by_its_object() -> None:
    """Pins a lexicon in which one Chinese verb has one English verb."""
    options: dict[str, set[str]] = {}
    for activity in ACTIVITIES:
        options.setdefault(activity.verb, set()).add(activity.en_verb)
    ambiguous = {verb: len(words) for verb, words in options.items()}
    assert ambiguous["打"] >= 4 and ambiguous["开"] >= 4 and ambiguous["看"] >= 3 and ambiguous["上"] >= 2
    assert len({verb.en for verb in PERSON_VERBS}) == len(PERSON_VERBS)


def _pair(zh: str, en: str, dictionary: tuple[tuple[str, str], ...]) -> Pair:
    return Pair(zh, en, tuple(word for word, _ in dictionary), dictionary, False)


def test_dictionary_takes_the_most_frequent_translation() -> None:
    """Pins a baseline made weak by taking a rare translation or by cutting words apart."""
    train = [
        _pair("看书", "Read books", (("看", "read"), ("书", "books"))),
        _pair("看电影", "Watch movies", (("看", "watch"), ("电影", "movies"))),
        _pair("看书", "Reads books", (("看", "read"), ("书", "books"))),
    ]
    assert dictionary_of(train) == {"看": "read", "书": "books", "电影": "movies"}
    assert segment("看电影院", {"看", "书", "电影"}) == ["看", "电影", "院"]
    assert word_by_word(["看电影。"], train) == ["Read movies."]


def test_nearest_neighbour_is_the_most_similar_source() -> None:
    """Pins a baseline that takes the longest or the first source instead of the closest."""
    sources = ["我昨天看书了。他明天会去北京。", "他喝茶。", "我喝茶。"]
    assert nearest_neighbour(["我喝茶吗？", "我喝茶。"], sources, ["long", "he", "I"]) == ["I", "I"]


def test_corpus_depends_on_the_seed_alone() -> None:
    """Pins hash order or global random state in the generator, and splits that do not follow the seed."""
    sizes = dict.fromkeys(SIZES, 40)
    small = corpus_files(make_corpus(7, sizes, min_train_count=0))
    assert small == corpus_files(make_corpus(7, sizes, min_train_count=0))
    assert small != corpus_files(make_corpus(8, sizes, min_train_count=0))


def test_english_words() -> None:
    """Pins contractions and hyphenated numerals cut into pieces."""
    assert english_words("He doesn't have twenty-five books, Mr. Li.") == [
        "he", "doesn't", "have", "twenty-five", "books", "mr", "li"
    ]  # fmt: skip
