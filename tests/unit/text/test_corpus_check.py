"""Reasons for dropping pairs: each against a hand-made case."""

from __future__ import annotations

import numpy as np
import pytest

from transformer_mt.text.corpus_check import (
    DUPLICATE,
    EMPTY,
    KEPT,
    LEAK,
    OUT_OF_PROPORTION,
    TOO_LONG,
    HeldOut,
    Notes,
    check_lengths,
    check_text,
    findings,
    mark_duplicates,
)
from transformer_mt.text.lines import is_blank


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\t",
        "\u3000",
        "\xa0",
        "\u200b",
        "\ufeff",
        "\x00",
        "\u2028 \u200d\x85",
        "\u2800",
        "\u3164\ufe0f",
    ],
)
def test_blank_is_what_prints_nothing(text: str) -> None:
    """B019: a line of ideographic spaces, zero-width characters or fillers is as empty as an empty one."""
    assert is_blank(text)
    assert not is_blank(f"{text}.{text}")


def test_text_reasons() -> None:
    """Empty before leak before duplicate; the first of several equal pairs stays."""
    held_out = HeldOut()
    held_out.add(["v", "", "q "], ["w", "", "r"])
    pairs = [
        ("a", "b"),
        ("", "w"),
        ("a", "c"),
        ("a", "b"),
        ("v", "x"),
        ("y", " w\u3000"),
        ("b", "a"),
        ("a", "b"),
        ("w", "v"),
        ("v", "x"),
        ("\tq", "x"),
        ("a\u200b", "\u3000b"),
        ("\x00", "\u200b"),
        ("a b", "b"),
    ]
    codes, hashes = check_text(*zip(*pairs, strict=True), held_out)
    mark_duplicates(codes, hashes)
    expected = [KEPT, EMPTY, KEPT, DUPLICATE, LEAK, LEAK, KEPT, DUPLICATE, KEPT, LEAK]
    expected += [LEAK, DUPLICATE, EMPTY, KEPT]
    assert codes.tolist() == expected


def test_duplicates_are_found_across_chunks() -> None:
    """Hashes are the same in every call."""
    codes, hashes = check_text(["a", "c"], ["b", "d"], HeldOut())
    again, more = check_text(["a"], ["b"], HeldOut())
    all_codes = np.concatenate([codes, again])
    mark_duplicates(all_codes, np.concatenate([hashes, more]))
    assert all_codes.tolist() == [KEPT, KEPT, DUPLICATE]


def test_length_reasons() -> None:
    """B056: lengths count eos; a difference of 8 tokens is never out of proportion; too long wins."""
    src = np.array([10, 11, 2, 2, 12, 1])
    tgt = np.array([10, 5, 14, 15, 1, 12])
    codes = check_lengths(src, tgt, max_length=13, max_length_ratio=3.0)
    assert codes.tolist() == [KEPT, KEPT, TOO_LONG, TOO_LONG, OUT_OF_PROPORTION, OUT_OF_PROPORTION]
    codes = check_lengths(src, tgt, max_length=50, max_length_ratio=3.0)
    assert codes.tolist() == [KEPT, KEPT, KEPT, OUT_OF_PROPORTION, OUT_OF_PROPORTION, OUT_OF_PROPORTION]


def test_findings_count_and_name_the_first() -> None:
    """A reason that never held is not listed."""
    codes = np.array([KEPT, DUPLICATE, EMPTY, DUPLICATE], dtype=np.uint8)
    found = findings(codes, lambda index: f"f:{index + 1}")
    assert {reason: (finding.count, finding.first) for reason, finding in found.items()} == {
        "empty side": (1, "f:3"),
        "exact duplicate": (2, "f:2"),
    }


def test_notes() -> None:
    """B023, B028, B157: NUL, U+2581 and HTML entities are reported; a plain ampersand is not."""
    notes = Notes()
    notes.look(["a & b", "&c;"], ["d", "e;"], lambda index: f"e:{index}")
    assert notes.findings == {}
    notes.look(
        ["Tom & Jerry <3", "a\x00", "a", "&#39;", "x"],
        ["AT&T; fish & chips", "b", "\u2581", "x", "&amp;quot;"],
        lambda index: f"f:{index}",
    )
    assert {what.split()[0]: (found.count, found.first) for what, found in notes.findings.items()} == {
        "NUL": (1, "f:1"),
        "U+2581": (1, "f:2"),
        "HTML": (2, "f:3"),
    }
