"""Decoding step by step gives what all positions at once give, and a line's numbers are its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_models import small_config
from torch import Tensor

from transformer_mt.model.build import Model, build_model
from transformer_mt.model.masks import padding_mask

VOCAB = 31
COMPARED = {0, 1, 2, 6, 11, 12, 20, 31, 32, 36}  # the first, around `keep`, around the cache's first growth
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "post_norm": {"norm_first": False},
    "grouped": {"num_kv_heads": 2},
    "window": {"attention_window": 3},
    "window_learned_grouped": {"attention_window": 5, "positions": "learned", "num_kv_heads": 1},
    "rotary_window": {"positions": "rotary", "attention_window": 4, "norm": "rms_norm"},
    "rotary_swiglu_untied": {"positions": "rotary", "activation": "swiglu", "tied_embeddings": "none"},
    "lstm": {"architecture": "lstm"},
    "lstm_additive_feeding_deep": {
        "architecture": "lstm",
        "attention": "additive",
        "input_feeding": True,
        "num_decoder_layers": 3,
    },
    "lstm_additive_untied": {"architecture": "lstm", "attention": "additive", "tied_embeddings": "none"},
    "lstm_feeding_flat": {"architecture": "lstm", "input_feeding": True, "num_decoder_layers": 1},
}


def model(seed: int = 0, architecture: str = "transformer", **values: Any) -> Model:
    torch.manual_seed(seed)
    return build_model(small_config(architecture, **values), VOCAB, VOCAB).eval()


@torch.inference_mode()
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_cached_equals_full(variant: str, beams: int) -> None:
    """Pins a cache that does not follow its beams, forgets, shifts positions or outlives its sentence.

    A recurrent state carries its rounding from position to position, so it may differ by more.
    """
    network, batch = model(**VARIANTS[variant]), 4
    tolerance = 1e-4 if variant.startswith("lstm") else 1e-5
    src = torch.randint(4, VOCAB, (batch, 7))
    src[1, 5:] = 0
    mask = padding_mask(src, 0)
    state = network.start(network.encode(src, mask), beams)
    history = torch.empty(batch, beams, 0, dtype=torch.int64)
    for position in range(37):
        width = 1 if position == 0 else beams  # a search begins with one beam
        ids = torch.randint(4, VOCAB, (batch, width))
        history = torch.cat((history[:, :width], ids[:, :, None]), dim=2)
        hidden, state = network.decode_step(ids, state)
        if position in COMPARED:
            sentence = torch.arange(batch).repeat_interleave(width)
            full = network.hidden(src[sentence], mask[sentence], history.flatten(0, 1))[:, -1]
            torch.testing.assert_close(hidden.flatten(0, 1), full, rtol=tolerance, atol=tolerance)
        moves = torch.randint(0, width, (batch, beams))
        state = state.reorder(moves)
        history = history.gather(1, moves[:, :, None].expand(-1, -1, history.size(2)))
        if position == 11:
            rows = torch.tensor([2, 1, 0])
            state, batch = state.keep(rows), 3
            src, mask, history = src[rows], mask[rows], history[rows]


def decode(network: Model, src: Tensor, tokens: Tensor, moves: Tensor, keep: Tensor | None) -> Tensor:
    """Hidden states (steps, B, K, D) of given tokens (steps, B, K); after a third only `keep` stays."""
    state = network.start(network.encode(src, padding_mask(src, 0)), tokens.size(2))
    results = []
    for step in range(len(tokens)):
        if step == len(moves) // 3 and keep is not None:
            state, tokens, moves = state.keep(keep), tokens[:, keep], moves[:, keep]
            results = [hidden[keep] for hidden in results]
        hidden, state = network.decode_step(tokens[step], state)
        results.append(hidden)
        state = state.reorder(moves[step])
    return torch.stack(results)


@torch.inference_mode()
@pytest.mark.parametrize(
    ("architecture", "length", "beams", "steps", "threads"),
    [
        ("transformer", 7, 1, 20, 1),
        ("transformer", 7, 5, 20, 1),
        ("transformer", 24, 1, 20, 1),
        ("transformer", 24, 5, 20, 1),
        ("transformer", 24, 5, 4, 2),
        ("transformer", 130, 1, 4, 1),
        ("lstm", 7, 1, 8, 1),
        ("lstm", 24, 5, 4, 1),
        ("lstm", 24, 5, 2, 2),
    ],
)
def test_neighbours_change_no_bit(
    architecture: str, length: int, beams: int, steps: int, threads: int
) -> None:
    """Pins arithmetic that depends on the batch: the same sentence in other rows of 64, 16, and 64 cut to 16.

    Widths are those of the preset `small`, where matrix kernels choose by size; 130 takes the fused kernel.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        widths = {"transformer": {"d_model": 256, "d_ff": 1024}, "lstm": {"d_model": 320}}
        network = model(architecture=architecture, **widths[architecture])
        src = torch.randint(4, VOCAB, (64, length))
        for row in range(64):
            src[row, length - row % 4 :] = 0
        tokens = torch.randint(4, VOCAB, (steps, 64, beams))
        moves = torch.randint(0, beams, (steps, 64, beams))
        rows = torch.randperm(64)[:16]
        large = decode(network, src, tokens, moves, None)[:, rows]
        small = decode(network, src[rows], tokens[:, rows], moves[:, rows], None)
        cut = decode(network, src, tokens, moves, rows)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(large, small)
    assert torch.equal(large, cut)


@torch.inference_mode()
@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_sentences_are_encoded_as_many_are(architecture: str, rows: int) -> None:
    """Where the tokens of a batch are at least 16: a search fills up to no more. The widths as above."""
    network = model(architecture=architecture, d_model=256)
    src = torch.randint(4, VOCAB, (20, 24))
    src[1, 20:] = 0
    many, few = (network.encode(part, padding_mask(part, 0)) for part in (src, src[:rows]))
    assert torch.equal(few.memory, many.memory[:rows])
    if many.final_state is not None and few.final_state is not None:
        assert torch.equal(few.final_state, many.final_state[:rows])
