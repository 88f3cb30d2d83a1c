"""Which lines are searched for in parts, and what a part holds."""

from __future__ import annotations

import pytest

from transformer_mt.checkpoint import LoadedRun
from transformer_mt.decoding.parts import PartMaker, mostly_unknown
from transformer_mt.text.tokenizer import EOS_ID

LINE = "abd eik lm nor stu "


def test_a_line_of_just_the_longest_length_stays_whole(loaded: LoadedRun) -> None:
    """B056: eos counts; a line that stays whole is shown as it is, spaces and all."""
    ids = [*loaded.tokenizers.src.encode(LINE), EOS_ID]
    (whole,), (cut, *more) = (
        PartMaker(loaded.tokenizers, limit=len(ids) - less).parts([LINE], [7], [""])[0] for less in (0, 1)
    )
    assert (whole.shown, whole.sentence.src_ids, whole.sentence.number) == (LINE, ids, 7)
    assert more
    assert len(cut.sentence.src_ids) < len(ids)
    assert cut.shown == cut.text.rstrip()


def test_a_line_of_just_the_most_sentences_stays_whole(loaded: LoadedRun) -> None:
    """However short it is, one more is too many."""
    maker = PartMaker(loaded.tokenizers, most_sentences=2)
    two, three = maker.parts(["Abd. Eik. ", "Abd. Eik. Lm. "], [1, 2], ["", ""])
    assert [part.shown for part in two] == ["Abd. Eik. "]
    assert len(three) == 2
    assert "".join(part.text for part in three) == "Abd. Eik. Lm. "


def test_a_very_long_line_that_stays_whole_is_told(
    loaded: LoadedRun, caplog: pytest.LogCaptureFixture
) -> None:
    """Before it is searched, which takes long; not where it is cut, nor of lines that are a little long."""
    caplog.set_level("INFO", logger="transformer_mt")
    lines = [LINE * 300, LINE * 10]
    PartMaker(loaded.tokenizers, limit=20).parts(lines, [1, 2], ["", ""])
    assert not caplog.messages
    PartMaker(loaded.tokenizers).parts(lines, [1, 2], ["", ""])
    tokens = len(loaded.tokenizers.src.encode(lines[0]))
    assert [
        f"note: line 1 has {tokens} tokens and is searched as a whole" in said for said in caplog.messages
    ] == [True]


def test_parts_know_their_place(loaded: LoadedRun) -> None:
    """Also behind what shows nothing, which is no part; each is encoded as it is shown."""
    line = "\u200b \u200b Abd eik. " + "\u200b " * 30 + "Lm nor stu abd."
    parts = PartMaker(loaded.tokenizers, limit=12, most_sentences=1).parts([line], [1], ["kom"])[0]
    assert all(line[part.start :].startswith(part.text) for part in parts)
    assert all(part.shown.strip("\u200b ") for part in parts)
    assert all(part.sentence.src_ids == [*loaded.tokenizers.src.encode(part.shown), EOS_ID] for part in parts)
    assert [bool(part.sentence.prefix) for part in parts] == [True] + [False] * (len(parts) - 1)
    assert [part.sentence.part for part in parts] == list(range(len(parts)))


@pytest.mark.parametrize(("line", "expected"), [("abd eik", False), ("Жук", True), ("abdeiklm Ж", False)])
def test_most_characters_without_a_piece(loaded: LoadedRun, line: str, expected: bool) -> None:
    (parts,) = PartMaker(loaded.tokenizers).parts([line], [1], [""])
    assert mostly_unknown(parts) is expected
