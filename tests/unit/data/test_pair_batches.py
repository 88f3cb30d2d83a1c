"""Batches of pairs: one length, no padding, every row once, and what is in them by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.small_pairs import invented
from tests.small_pairs import prepared as prepare_pairs
from transformer_mt.data.negatives import KINDS
from transformer_mt.data.pair_batches import (
    TRANSLATION,
    cut_by_length,
    every_row,
    plain_rows,
    training_rows,
)
from transformer_mt.data.prepare import PreparedData


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    """60 pairs with one vocabulary."""
    return prepare_pairs(tmp_path_factory.mktemp("pairs"), invented(60, 1))


def test_an_epoch_has_every_pair_and_a_counter_example_of_it(prepared: PreparedData) -> None:
    """Pins pairs left out, and counter-examples of another epoch."""
    indices = np.arange(10, 50)
    rows = training_rows(prepared.train, indices, prepared.tokenizers, ("reordered",), seed=1, epoch=0)
    assert Counter(rows.kinds) == {TRANSLATION: 40, "reordered": 40}
    assert rows.indices.tolist() == [*range(10, 50), *range(10, 50)]
    seen = []
    for batch in rows.batches(64, np.random.default_rng(5)):
        assert len(batch.rows) == 1 or batch.ids.numel() <= 64
        assert {int(rows.lengths[row]) for row in batch.rows} == {batch.ids.size(1)}
        for row, ids, label in zip(batch.rows, batch.ids, batch.is_translation, strict=True):
            src, tgt = prepared.train.ids(int(rows.indices[row]))
            assert label == (rows.kinds[row] == TRANSLATION)
            assert ids[: len(src)].tolist() == src.tolist()
            assert (ids[len(src) :].tolist() == tgt.tolist()) == bool(label)
        assert batch.src_lengths.tolist() == [
            len(prepared.train.ids(int(rows.indices[row]))[0]) for row in batch.rows
        ]
        seen += batch.rows.tolist()
    assert sorted(seen) == list(range(80))


def test_batches_come_in_another_order_every_time(prepared: PreparedData) -> None:
    """Pins batches sorted by length, which are no training."""
    rows = plain_rows(prepared.train, np.arange(60), prepared.tokenizers)
    orders = [
        [batch.rows.tolist() for batch in rows.batches(64, draw and np.random.default_rng(draw))]
        for draw in (None, 1, 1, 2)
    ]
    assert orders[1] == orders[2] and orders[1] != orders[3]
    lengths = [int(rows.lengths[batch[0]]) for batch in orders[0]]
    assert lengths == sorted(lengths)


def test_kinds_are_drawn_as_often_as_they_are_named(prepared: PreparedData) -> None:
    """Pins a share of kinds that is not the one asked for."""
    kinds = ("shuffled", "shuffled", "shuffled", "truncated")
    counts: Counter[str] = Counter()
    for epoch in range(20):
        rows = training_rows(prepared.train, np.arange(60), prepared.tokenizers, kinds, seed=1, epoch=epoch)
        counts.update(rows.kinds)
    assert counts.keys() == {TRANSLATION, "shuffled", "truncated"}
    assert 0.7 < counts["shuffled"] / (counts["shuffled"] + counts["truncated"]) < 0.8


def test_every_row_has_all_kinds_that_can_be_made(prepared: PreparedData, tmp_path: Path) -> None:
    """Pins rows without a target."""
    rows = every_row(prepared.train, np.arange(7), prepared.tokenizers, seed=1)
    assert set(rows.kinds) == {TRANSLATION, *KINDS}
    short = prepare_pairs(tmp_path, [(f"ka{letter}", f"ba{letter}") for letter in "abcdef"], vocab_size=280)
    rows = every_row(short.train, np.arange(6), short.tokenizers, seed=1)
    assert "truncated" not in rows.kinds and len(rows) == len(rows.lengths) == len(rows.indices)


def test_vocabularies_of_two_sides_do_not_share_ids(tmp_path: Path) -> None:
    """Pins a source piece and a target piece with one embedding."""
    own = prepare_pairs(tmp_path, invented(20, 1), shared=False)
    batch = plain_rows(own.train, np.arange(1), own.tokenizers).batch(np.array([0]))
    src, tgt = own.train.ids(0)
    assert batch.ids[0].tolist() == [*src.tolist(), *(tgt + own.tokenizers.src.vocab_size).tolist()]
    assert batch.to(torch.device("cpu")).ids.dtype == torch.int64


def test_cuts_by_hand() -> None:
    """A row that is longer than the budget is a batch by itself."""
    lengths = np.array([4, 9, 4, 4, 6, 4])
    cut = cut_by_length(lengths, np.array([5, 4, 3, 2, 1, 0]), max_tokens=8)
    assert [rows.tolist() for rows in cut] == [[5, 3], [2, 0], [4], [1]]
    assert cut_by_length(np.array([], dtype=np.int64), np.array([], dtype=np.int64), 8) == []
