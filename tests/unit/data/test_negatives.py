"""Counter-examples: what each kind leaves of a target, by hand, and that nothing but the place decides."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.small_pairs import invented
from tests.small_pairs import prepared as prepare_pairs
from transformer_mt.data.negatives import KINDS, Negatives
from transformer_mt.data.prepare import PreparedData
from transformer_mt.text.tokenizer import EOS_ID


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    """200 pairs of three to seven words."""
    return prepare_pairs(tmp_path_factory.mktemp("pairs"), invented(200, 1))


def negatives(prepared: PreparedData, *, seed: int = 3, epoch: int = 2, count: int = 200) -> Negatives:
    return Negatives(prepared.train, np.arange(count), prepared.tokenizers.tgt, seed=seed, epoch=epoch)


def texts(prepared: PreparedData, kind: str, **place: int) -> list[tuple[list[str], list[str]]]:
    """Words of the target, and of the counter-example, of 50 examples."""
    made, decode = negatives(prepared, **place), prepared.tokenizers.tgt.decode
    pairs = []
    for index in range(50):
        ids = made.make(index, kind)
        assert ids is not None and ids[-1] == EOS_ID and ids.dtype == np.int32
        pairs.append((decode(prepared.train.ids(index)[1]).split(), decode(ids).split()))
    return pairs


def test_shuffled_is_another_target_of_about_the_same_length(prepared: PreparedData) -> None:
    """Pins targets that length alone gives away."""
    targets = {tuple(prepared.train.ids(index)[1].tolist()) for index in range(200)}
    made = negatives(prepared)
    for index in range(50):
        own, other = prepared.train.ids(index)[1], made.make(index, "shuffled")
        assert other is not None and tuple(other.tolist()) in targets and other.tolist() != own.tolist()
    for length in (6, 10):
        alike = [index for index in range(200) if prepared.train.tgt_lengths[index] == length]
        others = [made.make(index, "shuffled") for index in alike]
        lengths = [len(other) for other in others if other is not None]
        assert abs(np.mean(lengths) - length) < 1.5


def test_truncated_is_the_first_words(prepared: PreparedData) -> None:
    """Pins a cut inside a word, and one that leaves all."""
    for words, left in texts(prepared, "truncated"):
        assert left == words[: len(left)] and 1 <= len(left) < len(words)


def test_reordered_has_the_same_words(prepared: PreparedData) -> None:
    """Pins pieces of words that change places."""
    for words, left in texts(prepared, "reordered"):
        assert left != words and Counter(left) == Counter(words)


def test_replaced_differs_in_one_word(prepared: PreparedData) -> None:
    """Pins the same word again as its own replacement, which would be no counter-example."""
    made, decode = negatives(prepared), prepared.tokenizers.tgt.decode
    none = 0
    for index in range(200):
        ids = made.make(index, "replaced")
        if ids is None:
            none += 1
            continue
        words = [decode(side).split() for side in (prepared.train.ids(index)[1], ids)]
        assert len(words[0]) == len(words[1])
        assert sum(ours != theirs for ours, theirs in zip(*words, strict=True)) == 1
    assert none < 40


def test_only_seed_epoch_and_example_decide(prepared: PreparedData) -> None:
    """Pins counter-examples that depend on what was made before."""
    for kind in KINDS:
        forth = [negatives(prepared).make(index, kind) for index in range(20)]
        made = negatives(prepared)
        back = [made.make(index, kind) for index in reversed(range(20))][::-1]
        assert all(np.array_equal(one, other) for one, other in zip(forth, back, strict=True))
    for place in ({"seed": 4}, {"epoch": 3}):
        assert texts(prepared, "reordered") != texts(prepared, "reordered", **place)


def test_what_cannot_be_made_is_none(tmp_path: Path) -> None:
    """Pins a true pair that is called a counter-example: one word has no order, one target no other."""
    one = prepare_pairs(tmp_path, [(f"ka{letter}", "ba") for letter in "abcdef"], vocab_size=275)
    made = Negatives(one.train, np.arange(6), one.tokenizers.tgt, seed=1, epoch=0)
    assert [made.make(0, kind) for kind in KINDS] == [None] * 4


def test_where_a_script_has_no_spaces_pieces_are_words(tmp_path: Path) -> None:
    """Pins sentences of one word, none of whose kinds but one could be made."""
    pairs = [(f"wort {n}", "我昨天在商店买了三本书他不喜欢喝茶"[n % 5 : 9 + n % 7]) for n in range(30)]
    zh = prepare_pairs(tmp_path, pairs, vocab_size=300)
    made = Negatives(zh.train, np.arange(len(zh.train)), zh.tokenizers.tgt, seed=1, epoch=0)
    for kind in ("truncated", "reordered"):
        assert made.make(0, kind) is not None
