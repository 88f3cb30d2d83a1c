"""What `prepare` says of a tokenizer: against hand-counted text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from transformer_mt.data.tokenizer_report import (
    TokenizerCheck,
    TokenizerReport,
    as_plain,
    tokenizer_rows,
    tokenizer_warnings,
)
from transformer_mt.text.tokenizer import EOS_ID, UNK_ID, Tokenizer, train_tokenizer

LINES = ["the cat sat on the mat", "a dog and a cat", "the hat of the dog"] * 10


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """Knows 15 small letters."""
    return train_tokenizer(LINES, type="bpe", vocab_size=300)


def check(tokenizer: Tokenizer, *chunks: list[str], expected: int = 1) -> TokenizerReport:
    """The report of some chunks of lines."""
    checker = TokenizerCheck(tokenizer, expected)
    for chunk in chunks:
        ids = pa.array([[*tokenizer.encode(text), EOS_ID] for text in chunk], type=pa.list_(pa.int32()))
        checker.add(ids, pa.array(chunk, type=pa.string()))
    return checker.finished()


def test_characters_without_a_piece_are_counted_by_script(tokenizer: Tokenizer) -> None:
    """B033, B035: nothing becomes unknown, and what is spelled in bytes is named: 10 of 23 characters."""
    report = check(tokenizer, ["the 猫猫 cat", "Ж猫 😀é"], [], ["the 7.\u200bж"])
    assert report.scripts == {
        "Han": 3,
        "Cyrillic": 2,
        "symbols and emoji": 1,
        "Latin": 1,
        "numbers": 1,
        "punctuation": 1,
        "control and unassigned characters": 1,
    }
    assert (report.byte_characters, report.characters) == (10, 10 + 5 + 8)
    assert (report.unknown, report.lines, report.checked, report.lost) == (0, 3, 3, 0)


def test_unknown_tokens_are_counted(tokenizer: Tokenizer) -> None:
    """The number is that of the tokens, not a matter of belief."""
    checker = TokenizerCheck(tokenizer, 1)
    checker.add(pa.array([[UNK_ID, 300 - 1, UNK_ID, EOS_ID]], type=pa.list_(pa.int32())), pa.array(["x"]))
    assert checker.finished().unknown == 2


def test_every_line_that_does_not_come_back_is_counted(tokenizer: Tokenizer) -> None:
    """B028: U+2581 in all of the text, though few lines are decoded."""
    chunk = ["the cat"] * 999 + ["the\u2581cat"]
    report = check(tokenizer, chunk, chunk, ["a \u2581"], expected=2001)
    assert (report.space_lines, report.changed, report.lost) == (3, 0, 3)
    assert report.checked == 1001
    plain = as_plain((report, check(tokenizer, ["a"])))
    assert (
        "3",
        "of 2,001 lines do not come back as they were (3 hold U+2581, which becomes a space; 0 others of "
        "1,001 decoded)",
    ) in [row[1:] for row in tokenizer_rows(plain)]
    assert tokenizer_warnings(plain) == []


def test_lines_that_are_decoded_are_spread_over_all_chunks(tokenizer: Tokenizer) -> None:
    """One in three, counted across chunks of any size: lines 0, 3, 6, …"""
    numbered = ["a " * (number % 3 + 1) for number in range(3000)]
    report = check(tokenizer, numbered[:1000], numbered[1000:1001], numbered[1001:], expected=3000)
    assert (report.checked, report.units) == (1000, 1000)


def test_a_tokenizer_that_changes_text_is_warned_of(tokenizer: Tokenizer) -> None:
    """B032: found by decoding, whatever the cause; here the ids are those of other text."""
    checker = TokenizerCheck(tokenizer, 1)
    ids = pa.array([[*tokenizer.encode("the cat"), EOS_ID]] * 2, type=pa.list_(pa.int32()))
    checker.add(ids, pa.array(["the cat", "the  cat"]))
    report = checker.finished()
    assert (report.changed, report.lost) == (1, 1)
    (warning,) = tokenizer_warnings(as_plain((replace(report, lines=2), check(tokenizer, ["a"]))))
    assert warning == (
        "warning: 1 of 2 source lines do not come back from the tokenizer as they were; learn it anew with "
        "this program"
    )


def test_text_cut_into_pieces_is_warned_of(tokenizer: Tokenizer) -> None:
    """B161: a corpus that went through another tokenizer; two lines of twenty are somebody's text."""
    plain = ["the cat"] * 18
    sides = (
        check(tokenizer, [*plain, "\u2581the \u2581cat", "the c@@ at", "d@@ og"]),
        check(tokenizer, [*plain, "\u2581the", "c@@ at"]),
    )
    (warning,) = tokenizer_warnings(as_plain(sides))
    assert warning.startswith('warning: 3 of 21 source lines hold U+2581 or "@@ ", marks of text that is cut')


def test_pieces_are_told_a_word_or_a_character(tokenizer: Tokenizer) -> None:
    """By hand: "the cat" and "dog"; Chinese is counted in characters, and eos in neither."""
    words, characters = check(tokenizer, ["the cat", "dog"]), check(tokenizer, ["猫 狗", "猫"])
    pieces = sum(len(tokenizer.encode(text)) for text in ("the cat", "dog"))
    assert (words.pieces, words.units, words.unit) == (pieces, 3, "word")
    assert (characters.units, characters.unit) == (3, "character")
    rows = tokenizer_rows(as_plain((words, characters)))
    assert rows[3] == ("", f"{pieces / 3:.2f}", "pieces a word, in 2 lines")
    assert rows[7][2] == "pieces a character, in 2 lines"
    assert rows[5][1:] == ("3", "of 4 characters fell to bytes (3 Han)")


def test_every_byte_is_told_from_a_piece(tokenizer: Tokenizer) -> None:
    """The first and the last byte piece, and the first piece after them: NUL alone fell to bytes."""
    checker = TokenizerCheck(tokenizer, 1)
    ids = np.array([4, 4 + 0x7F, 260, EOS_ID], dtype=np.int32)
    checker.add(pa.array([ids.tolist()], type=pa.list_(pa.int32())), pa.array(["x"]))
    assert checker.finished().byte_characters == 2
