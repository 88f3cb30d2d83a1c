"""Scores: values by hand, tokenizers by language, and what is refused."""

from __future__ import annotations

import importlib.util

import pytest

from transformer_mt.errors import DataError
from transformer_mt.evaluation.scores import bleu_tokenizer, score, tokenised_remark, tokenizer_remark

ZH_HYP = ["我今天去学校上课。", "他昨天买了一本新书。", "天气很好。"]
ZH_REF = ["我今天去学校学习。", "他昨天买了一本旧书。", "天气非常好。"]


def test_a_score_is_of_the_whole_set_and_not_a_mean() -> None:
    """B171: corpus BLEU by hand: 7 of 8 words, 5 of 6 pairs, 3 of 4 triples, 1 of 2 fours; equal lengths."""
    hypotheses = ["a b c d", "e f g x"]
    references = [["a b c d", "e f g h"]]
    expected = 100 * (7 / 8 * 5 / 6 * 3 / 4 * 1 / 2) ** 0.25
    (bleu,) = score(hypotheses, references, ("bleu",), "en")
    assert bleu.value == pytest.approx(expected)
    assert type(bleu.value) is float
    assert (bleu.name, "tok:13a" in bleu.signature, "nrefs:1" in bleu.signature) == ("bleu", True, True)


def test_chinese_is_cut_into_characters() -> None:
    """B164: 13a finds one word per line and gives 0; the zh tokenizer gives 57.55."""
    (bleu,) = score(ZH_HYP, [ZH_REF], ("bleu",), "zh")
    assert bleu.value == pytest.approx(57.55, abs=0.005)
    assert "tok:zh" in bleu.signature
    (blind,) = score(ZH_HYP, [ZH_REF], ("bleu",), "en")
    assert blind.value < 1.0


@pytest.mark.parametrize(
    ("language", "installed", "expected"),
    [
        ("de", True, "13a"),
        ("zh_CN", False, "zh"),
        ("zho_Hans", False, "zh"),
        ("Chinese", False, "zh"),
        ("jpn_Jpan", True, "ja-mecab"),
        ("zh-Hans", False, "zh"),
        ("ja", True, "ja-mecab"),
        ("ja", False, "char"),
        ("ko-KR", True, "ko-mecab"),
        ("ko", False, "char"),
    ],
)
def test_the_tokenizer_follows_the_language(
    monkeypatch: pytest.MonkeyPatch, language: str, installed: bool, expected: str
) -> None:
    """B165: without MeCab characters are compared, known before any decoding; never a crash after it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if installed else None)
    assert bleu_tokenizer(language) == expected


def test_japanese_without_mecab_says_char_in_its_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (bleu,) = score(["猫が座る"], [["猫が座る"]], ("bleu",), "ja")
    assert "tok:char" in bleu.signature


def test_ter_and_chrf_have_their_direction_and_names() -> None:
    """One of four words wrong: TER is 25; equal texts have chrF2++ 100 and TER 0."""
    chrf, ter = score(["a b c d"], [["a b c d"]], ("chrf", "ter"), "en")
    assert (chrf.name, chrf.value) == ("chrf", 100.0)
    assert "nw:2" in chrf.signature
    assert (ter.name, ter.value) == ("ter", 0.0)
    (worse,) = score(["a b c x"], [["a b c d"]], ("ter",), "en")
    assert worse.value == pytest.approx(25.0)


@pytest.mark.parametrize("language", ["zh", "zh_CN", "ja"])
def test_ter_of_unspaced_text_counts_characters(language: str) -> None:
    """One of eight characters wrong is one edit of eight, not a whole line; English keeps its signature."""
    (ter,) = score(["今天天气很坏大家"], [["今天天气很好大家"]], ("ter",), language)
    assert ter.value == pytest.approx(100 / 8) and "asian:yes" in ter.signature
    (english,) = score(["a"], [["a"]], ("ter",), "en")
    assert english.signature.startswith("nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no")


def test_several_references_are_streams() -> None:
    """B168: each hypothesis equals one of its references; the transposed shape is refused."""
    hypotheses = ["a b c d e", "f g h i j", "k l m n o"]
    first = ["a b c d e", "x", "k l m n o"]
    second = ["y", "f g h i j", "z"]
    (bleu,) = score(hypotheses, [first, second], ("bleu",), "en")
    assert bleu.value == pytest.approx(100.0)
    assert "nrefs:2" in bleu.signature
    with pytest.raises(DataError, match=r"3 hypotheses but 2 references in stream 1; .* several streams"):
        score(hypotheses, [list(pair) for pair in zip(first, second, strict=True)], ("bleu",), "en")


@pytest.mark.parametrize(("hypotheses", "references"), [(3, 5), (5, 3)])
def test_unequal_lengths_are_refused_with_both_counts(hypotheses: int, references: int) -> None:
    """B167: sacreBLEU's own interface would score the first three and give 100."""
    message = f"{hypotheses} hypotheses but {references} references in stream 1"
    with pytest.raises(DataError, match=message):
        score(["a b c d"] * hypotheses, [["a b c d"] * references], ("bleu",), "en")


def test_nothing_to_score_is_refused() -> None:
    """Each refusal says what is missing."""
    with pytest.raises(DataError, match="at least one stream of references"):
        score(["a"], [], ("bleu",), "en")
    with pytest.raises(DataError, match="no hypotheses to score"):
        score([], [[]], ("bleu",), "en")
    with pytest.raises(DataError, match="not a single text"):
        score(["a"], ["a"], ("bleu",), "en")
    with pytest.raises(DataError, match="not a single text"):
        score("a", [["a"]], ("bleu",), "en")


def test_what_is_said_about_tokenised_text() -> None:
    """B166: half of a short text or 100 lines of a long one end in a full stop by itself; nothing is said
    of less, nor of languages whose tokenizer is there."""
    assert tokenised_remark("it", ["a ."] * 99 + ["b."] * 101) == ""
    assert tokenised_remark("it", []) == tokenised_remark("it", ["a .", "b.", "c"]) == ""
    assert tokenised_remark("it", ["a 。", "b"]).startswith("it looks tokenised: 1 of 2 lines")
    assert tokenised_remark("it", ["a ."] * 100 + ["b."] * 300).startswith("it looks tokenised: 100 of 400")
    assert tokenizer_remark("de") == tokenizer_remark("zh") == ""
