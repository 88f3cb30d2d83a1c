"""Noise on sources: what each kind does to text, and that a draw is a function of (seed, epoch, example)."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from transformer_mt.text.noise import (
    Draws,
    NoiseRates,
    noise_draws,
    title_case,
    with_typos,
    without_final_punctuation,
)

GERMAN = "Ein kleines Mädchen läuft über die nasse Straße nach Hause."
RATES = NoiseRates(upper=0.2, title=0.1, typos=0.3, no_final_punctuation=0.4)


def row(case: float = 0.99, slips: float = 0.99, final: float = 0.99) -> Draws:
    """The draws of one example."""
    return np.array([case, slips, final])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a man in the U.S. doesn't see", "A Man In The U.S. Doesn't See"),
        ("„ein haus“ (im wald) é", "„Ein Haus“ (Im Wald) É"),
        ("ärger  mit\tß", "Ärger  Mit\tSs"),
        ("3 männer 我们 ...", "3 Männer 我们 ..."),
        ("", ""),
    ],
)
def test_every_word_begins_with_a_capital_and_nothing_else_changes(text: str, expected: str) -> None:
    """B062: letters behind an apostrophe or a point stay as they are, and so does white space."""
    assert title_case(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Er geht.", "Er geht"),
        ("Halt!?", "Halt"),
        ("Wie ?", "Wie"),
        ("und so...  ", "und so  "),
        ("„Halt!“", "„Halt“"),
        ("(Ja.)", "(Ja)"),
        ("z.B. dies, 3.5 Meter", "z.B. dies, 3.5 Meter"),
        ("今天很好。", "今天很好"),
        ("「本当ですか？」", "「本当ですか」"),
        ("क्या हाल है।", "क्या हाल है"),
        ("كيف حالك؟", "كيف حالك"),
        ("Τι κάνεις;", "Τι κάνεις"),
        ("a: b, c", "a: b, c"),
    ],
)
def test_the_final_mark_goes_in_any_script(text: str, expected: str) -> None:
    """B062: only marks that end the text; what closes a quotation stays."""
    assert without_final_punctuation(text) == expected


@pytest.mark.parametrize("text", ["...", "?", " !", "。"])
def test_noise_leaves_no_blank_text(text: str) -> None:
    """A text of marks alone would become blank, and its target a translation of nothing."""
    assert NoiseRates(no_final_punctuation=1.0).apply(text, row(final=0.0)) == text


def test_upper_case_is_that_of_python() -> None:
    """Documented: ß becomes SS, no Turkish i, both sigmas become one."""
    noised = NoiseRates(upper=1.0).apply("Straße izmir σάς", row(case=0.5))
    assert noised == "STRASSE IZMIR ΣΆΣ"


def test_kinds_are_combined_and_case_comes_last() -> None:
    """One draw decides between upper and title case; the others act beside it."""
    upper = RATES.apply(GERMAN, row(case=0.1999, final=0.0))
    assert upper == "EIN KLEINES MÄDCHEN LÄUFT ÜBER DIE NASSE STRASSE NACH HAUSE"
    title = RATES.apply(GERMAN, row(case=0.2, final=0.4))
    assert title == "Ein Kleines Mädchen Läuft Über Die Nasse Straße Nach Hause."
    assert RATES.apply(GERMAN, row(case=0.31, slips=0.3, final=0.4)) == GERMAN
    mistyped = RATES.apply(GERMAN, row(slips=0.1))
    assert mistyped != GERMAN
    assert RATES.apply(GERMAN, row(case=0.0, slips=0.1)) == mistyped.upper()


def test_slips_are_few_and_of_every_kind() -> None:
    """One to three slips of letters; first letters of two, digits and marks stay."""
    text = "abcdefghij klmnopqrst uvwxyzabcd 12345."
    drawn = [with_typos(text, random.Random(seed)) for seed in range(300)]
    assert all(one.endswith(" 12345.") and one.count(" ") == 3 for one in drawn)
    assert set(range(-2, 3)) <= {len(one) - len(text) for one in drawn} <= set(range(-3, 4))
    assert all(sum((Counter(text) - Counter(one)).values()) <= 3 for one in drawn)
    # Same letters in another order, and other letters at the same length: exchanged, and hit beside.
    same = [Counter(one) == Counter(text) for one in drawn if len(one) == len(text) and one != text]
    assert {True, False} == set(same)
    assert drawn[7] == with_typos(text, random.Random(7))
    assert len(set(drawn)) > 250


def test_a_key_beside_keeps_the_case() -> None:
    """Only a-z have keys here; q has w beside it alone."""
    drawn = {with_typos("Qß", random.Random(seed)) for seed in range(60)}
    assert drawn == {"ß", "ßQ", "QQß", "Wß"}
    assert {with_typos("ßq", random.Random(seed)) for seed in range(60)} == {"q", "qß", "ßßq"}


def test_slips_know_the_script() -> None:
    """Signs of Chinese are left out or exchanged, never doubled; no base is torn from its mark."""
    text = "今天我们去北京看长城吧"
    for seed in range(100):
        drawn = with_typos(text, random.Random(seed))
        assert not Counter(drawn) - Counter(text)
        assert drawn != text
    assert {with_typos("नमस्ते e\u0301e\u0301 1 2", random.Random(seed)) for seed in range(50)} <= {
        "नमस्ते e\u0301e\u0301 1 2",
        "मनस्ते e\u0301e\u0301 1 2",
        "मस्ते e\u0301e\u0301 1 2",
        "ननमस्ते e\u0301e\u0301 1 2",
    }


@pytest.mark.parametrize("text", ["", "a", "1 2 3.", "x y", "😀", "\u0301"])
def test_text_without_two_letters_has_no_slips(text: str) -> None:
    """Nothing to mistype is no error."""
    assert with_typos(text, random.Random(0)) == text


def test_draws_do_not_depend_on_who_else_is_drawn() -> None:
    """B147: one by one, in pieces or all together; other epochs and seeds give others."""
    whole = noise_draws(5, 3, 0, 40)
    assert np.array_equal(np.concatenate([noise_draws(5, 3, start, 8) for start in range(0, 40, 8)]), whole)
    assert np.array_equal(noise_draws(5, 3, 23, 1)[0], whole[23])
    assert len({float(noise_draws(seed, epoch, 7, 1)[0, 0]) for seed in (1, 2) for epoch in (0, 1, 2)}) == 6


def test_shares_are_those_of_the_rates() -> None:
    """4,000 draws: each kind as often as its rate says, and `touched` tells which examples are noised."""
    draws = noise_draws(1, 1, 0, 4000)
    texts = [RATES.apply(GERMAN, draw) for draw in draws]
    assert np.mean([text.isupper() for text in texts]) == pytest.approx(0.2, abs=0.02)
    assert np.mean([not text.endswith(".") for text in texts]) == pytest.approx(0.4, abs=0.025)
    touched = RATES.touched(draws)
    assert touched.mean() == pytest.approx(1 - 0.7 * 0.7 * 0.6, abs=0.025)
    assert all(text == GERMAN for text, hit in zip(texts, touched, strict=True) if not hit)
    assert not NoiseRates().touched(draws).any()
    assert NoiseRates(upper=1.0).touched(draws).all()
