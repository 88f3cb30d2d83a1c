"""Differences: what is missing, what is extra, in words or characters."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_mt.evaluation.differences import differences


def shown(reference: str, hypothesis: str) -> str:
    """missing in brackets, extra in braces."""
    frames = {"same": "{}", "missing": "[{}]", "extra": "({})"}
    return "".join(p.gap + frames[p.kind].format(p.text) for p in differences(reference, hypothesis))


@pytest.mark.parametrize(
    ("reference", "hypothesis", "expected"),
    [
        ("The dog sat.", "The dog sat.", "The dog sat."),
        ("The dog sat.", "The cat sat", "The [dog] (cat) sat[.]"),
        ("The big dog sat.", "The dog", "The [big] dog [sat.]"),
        ("don't", "dont", "[don't](dont)"),
        ("一只狗在跑。", "一只黑猫在跑。", "一只[狗](黑猫)在跑。"),
        ("看 PyTorch 书", "看PyTorch的书", "看PyTorch(的)书"),
        ("กำลังวิ่ง", "กำลังนั่ง", "กำลัง[วิ่](นั่)ง"),
        ("गाँव में", "गाँव से", "गाँव [में] (से)"),
        ("", "new", "(new)"),
        ("old", "", "[old]"),
        ("", "", ""),
    ],
)
def test_by_hand(reference: str, hypothesis: str, expected: str) -> None:
    """Pins words between spaces and punctuation, characters in unspaced scripts, marks with their letter."""
    assert shown(reference, hypothesis) == expected


def test_texts_too_long_are_not_compared() -> None:
    """Pins that a sentence repeated without end cannot stop a report."""
    (piece,) = differences("a", "word " * 5000)
    assert (piece.kind, piece.text) == ("uncompared", "word " * 5000)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_the_hypothesis_can_be_read_off(reference: str, hypothesis: str) -> None:
    """Pins that marking differences never changes what a system has said."""
    spelled = "".join(p.gap + p.text for p in differences(reference, hypothesis) if p.kind != "missing")
    assert spelled == hypothesis.rstrip()
