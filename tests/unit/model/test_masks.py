"""Masks: one polarity, True = may attend."""

from __future__ import annotations

import torch

from transformer_mt.model.masks import beam_mask, combine, padding_mask, position_mask, sentence_mask


def test_padding_mask_allows_real_tokens_only() -> None:
    """Pins a mask of the opposite polarity or shape."""
    mask = padding_mask(torch.tensor([[5, 6, 3], [7, 3, 0]]), pad_id=0)
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, True], [True, True, False]]


def test_causal_mask_hides_later_positions() -> None:
    """Pins a decoder that sees the token it has to predict."""
    positions = torch.arange(3)
    mask = position_mask(positions, positions, causal=True, window=None)
    assert mask is not None
    assert mask.shape == (1, 1, 3, 3)
    assert mask[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_window_counts_the_position_itself() -> None:
    """Pins a window that is one too wide or too narrow, on either side."""
    positions = torch.arange(4)
    both = position_mask(positions, positions, causal=False, window=2)
    past = position_mask(positions[2:], positions, causal=True, window=2)
    assert both is not None and past is not None
    assert both[0, 0].int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert past[0, 0].int().tolist() == [[0, 1, 1, 0], [0, 0, 1, 1]]


def test_everything_allowed_is_no_mask() -> None:
    """Pins a mask that costs time and allows all."""
    positions = torch.arange(4)
    assert position_mask(positions, positions, causal=False, window=None) is None


def test_beam_mask_follows_each_history() -> None:
    """Pins a beam that sees a key of another beam's past."""
    ancestors = torch.tensor([[[0, 3], [1, 3], [0, 2]]])  # B 1, K 3, T 2: two slots, then three
    mask = beam_mask(ancestors, 5)
    assert mask.shape == (1, 1, 3, 5)
    assert mask[0, 0].int().tolist() == [[1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [1, 0, 1, 0, 0]]


def test_sentence_mask_keeps_sentences_apart() -> None:
    """Pins a first or last token that is counted into the neighbour."""
    mask = sentence_mask(torch.tensor([0, 1, 3]), 3, torch.tensor([0, 2, 4]), 4)
    assert mask.shape == (1, 1, 3, 4)
    assert mask[0, 0].int().tolist() == [[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]


def test_combine_needs_both() -> None:
    """Pins an `or` where both masks must allow."""
    first, second = torch.tensor([True, True, False]), torch.tensor([True, False, False])
    both = combine(first, second)
    assert both is not None and both.tolist() == [True, False, False]
    assert combine(first, None) is first
    assert combine(None, second) is second
    assert combine(None, None) is None
