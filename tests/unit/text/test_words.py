"""What length and rarity are counted in, by the text itself."""

from __future__ import annotations

import pytest

from transformer_mt.text.words import counts_characters, needs_no_space, unit_spans, units, word_counts, words


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Ein Haus.", "我"], False),
        (["我昨天在商店买了三本书。", "他用 GPU 训练。"], True),
        (["昨日、店で本を三冊買いました。"], True),
        (["나는 어제 책을 샀다."], True),
        (["ฉันซื้อหนังสือ"], True),
        (["Я купил книгу"], False),
        (["123 !"], False),
        ([], False),
    ],
)
def test_the_script_decides(texts: list[str], expected: bool) -> None:
    assert counts_characters(texts) is expected


def test_units_leave_white_space_out() -> None:
    assert units(" ein  Haus ", characters=False) == ["ein", "Haus"]
    assert units("三本 书\u3000。", characters=True) == ["三", "本", "书", "。"]
    assert units("", characters=True) == []


def test_words_are_lower_case_without_punctuation_around_them() -> None:
    """Pins that `The`, `the,` and `"the` are one word, and that a dash alone is none."""
    assert words('The "the" - don\'t (x-ray).', characters=False) == ["the", "the", "don't", "x-ray"]
    assert words("好。A", characters=True) == ["好", "a"]


def test_wanted_words_are_counted_and_no_others() -> None:
    counts = word_counts(["The dog, the cat.", "A dog!"], ["the", "dog", "cow"], characters=False)
    assert counts == {"the": 2, "dog": 2, "cow": 0}
    assert word_counts(["一本书一"], ["一"], characters=True) == {"一": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \u00a0\u3000 ", []),
        ("  Ein  Hund. ", ["Ein", "Hund."]),
        ("你好，世界。", ["你", "好", "，", "世", "界", "。"]),
        ("请看https://example.org/a 和 5公里", ["请", "看", "https://example.org/a", "和", "5", "公", "里"]),
        ("看，iPhone。Pro！", ["看", "，", "iPhone", "。", "Pro", "！"]),
        ("저는 학생입니다.", ["저는", "학생입니다."]),
        ("か\u3099く", ["か\u3099", "く"]),
        ("กี่คน", ["กี่", "ค", "น"]),
        ("e\u0301a \u0301b", ["e\u0301a", "\u0301b"]),
    ],
)
def test_an_alignment_numbers_words_and_characters_without_spaces(text: str, expected: list[str]) -> None:
    """Pins the units of an alignment: script by script, since one line may hold a link among characters."""
    assert [text[start:end] for start, end in unit_spans(text)] == expected


def test_only_characters_of_scripts_without_spaces_need_none() -> None:
    """Pins where something can be put into a line without a space."""
    assert [needs_no_space(character) for character in "你。ก」aé1.“"] == [True] * 4 + [False] * 5
