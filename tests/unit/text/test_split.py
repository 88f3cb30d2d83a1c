"""Where a line is cut: sentence ends by hand, and parts that join to the line whatever it holds."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.text.split import ends_sentence, joined, sentences, split


def _lengths(texts: list[str]) -> list[int]:
    return list(map(len, texts))


@pytest.mark.parametrize(
    "marked",
    [
        "Hallo! |Wie geht es? |Gut.",
        "Dr. Smith wohnt z. B. in der Str. zehn. |Danach nicht.",
        "It costs 3.5 or 1,000.5. |U.S. troops left on 3. Mai 1999. |Mr. J. R. R. Tolkien stayed.",
        "No. |I mean No. 5 (cf. Fig. 2). |Yes.",
        "„Komm!“ |Sie kam. |(Wirklich.) |«Oui.» |Er rief: „Halt!“ und lief.",
        "Wait... no… yes… |Then he left?! |Good.",
        "我来了。|今天天气好！|走吧？|好的（真的。）行。|“再见。”|“走好。”",
        "「行きます。」と言った。|１．５キロ。|明日も｡|はい",
        "你好吗?|我很好.|再见",
        "यह है। |वह था।|क्या?",
        "he came. |she went. |ok",
        "SHE CAME. |HE WENT.",
        ". . . Hello . |. . World.",
        "  spaces.  \u00a0|Stay. ",
        "...",
        "",
    ],
)
def test_sentences_end_where_a_reader_says(marked: str) -> None:
    """B054: marks of several scripts, closing quotes and brackets; not after initials, titles, numbers."""
    assert sentences(marked.replace("|", "")) == marked.split("|")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ja.", True),
        ("„Ja!“ ", True),
        ("（是。）", True),
        ("Ja", False),
        ("3.5", False),
        ("", False),
        ("(", False),
    ],
)
def test_the_final_mark_is_seen_through_quotes(text: str, expected: bool) -> None:
    assert ends_sentence(text) is expected


_TEXT = (
    st.text(alphabet=st.sampled_from("ab .,!?。，」\u200b\u0301\u200d\U0001f468\u3000-(A1"), max_size=80)
    | st.text()
)


@given(_TEXT, st.integers(1, 30), st.none() | st.integers(1, 3))
def test_parts_are_the_line_and_keep_to_the_limit(text: str, limit: int, most: int | None) -> None:
    """Nothing is lost, whatever the text; no part is longer, nor holds more sentences."""
    parts = split(text, _lengths, limit=limit, most_sentences=most)
    assert "".join(parts) == text
    assert all(len(part) <= limit for part in parts)
    assert all(parts) or text == ""
    if most is not None and all(len(sentence) <= limit for sentence in sentences(text)):
        assert len(parts) >= len(sentences(text)) / most


def test_a_count_that_does_not_add_up_keeps_the_limit() -> None:
    """Tokens of a whole may outnumber those of its pieces."""
    parts = split("abc " * 30, lambda texts: [len(text) + len(text) // 20 for text in texts], limit=24)
    assert "".join(parts) == "abc " * 30
    assert all(len(part) + len(part) // 20 <= 24 for part in parts)


def test_the_largest_units_are_cut_first() -> None:
    """Sentences, then clauses, then words, then characters that a person would cut between."""
    assert split("Aa bb. Cc dd. Ee ff.", _lengths, limit=14) == ["Aa bb. ", "Cc dd. Ee ff."]
    assert split("Aa bb. Cc dd. Ee ff.", _lengths, limit=99, most_sentences=1) == [
        "Aa bb. ",
        "Cc dd. ",
        "Ee ff.",
    ]
    assert split("aa bb, cc dd, ee ff", _lengths, limit=14) == ["aa bb, ", "cc dd, ee ff"]
    assert split("我们走了，他们来了", _lengths, limit=5) == ["我们走了，", "他们来了"]
    assert split("aa bb cc dd", _lengths, limit=6) == ["aa bb ", "cc dd"]
    assert split("abcdefgh", _lengths, limit=4) == ["abcd", "efgh"]


@pytest.mark.parametrize(
    "unit", ["e\u0301", "\U0001f468\u200d\U0001f469", "\U0001f44d\U0001f3fd", "\u1112\u1161\u11ab"]
)
def test_no_character_is_taken_apart(unit: str) -> None:
    """Marks, joined emoji, skin tones, Korean letters."""
    parts = split(unit * 12, _lengths, limit=2 * len(unit) + 1)
    assert "".join(parts) == unit * 12
    assert all(len(part) % len(unit) == 0 for part in parts)


def test_parts_are_of_like_length() -> None:
    """No stump is left at the end: a lone word is translated badly."""
    assert _lengths(split("abcd " * 11, _lengths, limit=50)) == [30, 25]


@pytest.mark.parametrize(
    "unit", [".", ". ", "a.", "。」", '"', "あ", "\u0301", " ", ".\u200b", ",", "z. B. "]
)
def test_time_grows_with_the_line_and_no_faster(unit: str) -> None:
    """50,000 characters of the worst kinds in a moment."""
    text = unit * (50_000 // len(unit))
    started = time.perf_counter()
    assert "".join(split(text, _lengths, limit=100)) == text
    ends_sentence(text)
    assert time.perf_counter() - started < 5.0


@pytest.mark.parametrize(
    ("parts", "texts", "line"),
    [
        (["a. ", "b."], ["A.", "B."], "A. B."),
        (["a. ", "b."], ["甲。", "乙。"], "甲。乙。"),
        (["甲。", "乙。"], ["A.", "B."], "A. B."),
        (["a. ", "\u200b", "b."], ["A.", "", "B."], "A. B."),
        (["a. ", "b."], ["", "B."], "B."),
        (["http://aaa", "bbb"], ["http://aaa", "bbb"], "http://aaabbb"),
        (["甲", "乙"], ["A", "B"], "A B"),
        (["a. "], ["A."], "A."),
    ],
)
def test_joined_by_what_suits_the_target(parts: list[str], texts: list[str], line: str) -> None:
    """A space between parts; none in Chinese or Japanese, beside an empty part, or where a word was cut."""
    found, starts = joined(parts, texts)
    assert found == line
    assert [found[start:][: len(text)] for start, text in zip(starts, texts, strict=True)] == texts
