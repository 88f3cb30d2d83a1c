"""Batch: padding, masks and the shift between decoder input and labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transformer_mt.data.batch import make_batch

PAIRS = [([11, 12, 13, 3], [21, 3]), ([14, 3], [22, 23, 24, 25, 3]), ([15, 16, 3], [3])]  # B=3, S=4, T=5


def test_padding_shift_and_counts() -> None:
    """bos starts the decoder input, eos ends the labels, and padding is neither input nor label."""
    batch = make_batch(PAIRS, indices=[7, 0, 5])
    assert batch.src_ids.tolist() == [[11, 12, 13, 3], [14, 3, 0, 0], [15, 16, 3, 0]]
    assert batch.src_mask.shape == (3, 1, 1, 4)
    assert batch.src_mask.dtype == torch.bool
    assert batch.src_mask[:, 0, 0].tolist() == [[True] * 4, [True, True, False, False], [True] * 3 + [False]]
    assert batch.decoder_input_ids.tolist() == [[2, 21, 0, 0, 0], [2, 22, 23, 24, 25], [2, 0, 0, 0, 0]]
    assert batch.labels.tolist() == [
        [21, 3, -100, -100, -100],
        [22, 23, 24, 25, 3],
        [3, -100, -100, -100, -100],
    ]
    assert (batch.num_tokens, batch.num_src_tokens, batch.padded_tokens) == (8, 9, 12 + 15)
    assert batch.indices.tolist() == [7, 0, 5]
    assert {t.dtype for t in (batch.src_ids, batch.decoder_input_ids, batch.labels)} == {torch.int64}


def test_arrays_give_the_same_batch_as_lists() -> None:
    """The data set gives int32 views."""
    batch = make_batch(PAIRS)
    other = make_batch([(np.array(src, np.int32), np.array(tgt, np.int32)) for src, tgt in PAIRS])
    assert torch.equal(batch.src_ids, other.src_ids)
    assert torch.equal(batch.labels, other.labels)
    assert batch.indices.tolist() == [0, 1, 2]


def test_to_moves_every_tensor() -> None:
    """The meta device stands for a card."""
    moved = make_batch(PAIRS, indices=[4, 5, 6]).to("meta")
    for tensor in (moved.src_ids, moved.src_mask, moved.decoder_input_ids, moved.labels):
        assert tensor.device.type == "meta"
    assert (moved.num_tokens, moved.num_src_tokens, moved.indices.tolist()) == (8, 9, [4, 5, 6])


def test_packed_rows() -> None:
    """Sentence after sentence, counted anew in each, with nothing between them."""
    batch = make_batch(PAIRS).packed()
    assert batch.src_ids.tolist() == [11, 12, 13, 3, 14, 3, 15, 16, 3]
    assert batch.src_positions.tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2]
    assert batch.decoder_input_ids.tolist() == [2, 21, 2, 22, 23, 24, 25, 2]
    assert batch.labels.tolist() == [21, 3, 22, 23, 24, 25, 3, 3]
    assert batch.tgt_positions.tolist() == [0, 1, 0, 1, 2, 3, 4, 0]
    assert (batch.src_starts.tolist(), batch.tgt_starts.tolist()) == ([0, 4, 6, 9], [0, 2, 7, 8])
    assert batch.src_starts.dtype == batch.tgt_starts.dtype == torch.int32  # as the kernel wants them
    assert (batch.src_longest, batch.tgt_longest) == (4, 5)
    assert (batch.num_tokens, batch.num_src_tokens, batch.padded_tokens) == (8, 9, 17)
    moved = batch.to("meta")
    assert {value.device.type for value in vars(moved).values() if isinstance(value, torch.Tensor)} == {
        "meta"
    }
    assert moved.tgt_longest == 5


@pytest.mark.parametrize("pairs", [[], [([], [3])]])
def test_invariants(pairs: list[tuple[list[int], list[int]]]) -> None:
    """No empty batch and no side without eos reaches the model."""
    with pytest.raises(AssertionError, match="a batch needs at least one example|ends in eos"):
        make_batch(pairs)
