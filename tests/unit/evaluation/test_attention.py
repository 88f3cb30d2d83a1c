"""Which sentences are looked at, and that a map is the model's own attention to what it is given."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from random_run import MODELS, random_run

from transformer_mt.checkpoint import load_run
from transformer_mt.evaluation.attention import attention_map, moderate_lines

CPU = torch.device("cpu")


def test_moderate_lines_come_first() -> None:
    """Pins 8 to 18 words, 12 to 30 characters, three of them, and any others rather than none."""
    texts = ["w " * 7, "w " * 8, "w " * 19, "w " * 18, "w " * 9, "w " * 10]
    assert moderate_lines(texts) == [1, 3, 4]
    assert moderate_lines(["书" * 11, "书" * 30, "书" * 31, "书" * 12]) == [1, 3]
    assert moderate_lines(["", "short", "two words"]) == [1, 2]


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_a_map_has_a_row_for_every_piece_of_the_translation(architecture: str, tmp_path: Path) -> None:
    """Pins pieces of both sides with their end marks, T rows of S weights, and any architecture."""
    loaded = load_run(random_run(tmp_path / "run", model=MODELS[architecture]))
    tokenizers = loaded.tokenizers
    found = attention_map("it", loaded.model, tokenizers, "ab dei", "klm", device=CPU)
    assert found is not None
    assert found.source == (*tokenizers.src.pieces(tokenizers.src.encode("ab dei")), "</s>")
    assert found.target == (*tokenizers.tgt.pieces(tokenizers.tgt.encode("klm")), "</s>")
    assert len(found.source) != len(found.target) == len(found.weights)
    assert all(len(row) == len(found.source) for row in found.weights)
    assert all(sum(row) == pytest.approx(1.0, abs=2e-3) for row in found.weights)
    other = attention_map("it", loaded.model, tokenizers, "ab dei", "tus", device=CPU)
    assert other is not None and other.weights[0] == found.weights[0]  # bos has seen the source alone


def test_a_sentence_beyond_the_learned_positions_has_no_map(tmp_path: Path) -> None:
    model = {"positions": "learned", "max_positions": 256, "d_model": 32, "num_heads": 2, "d_ff": 48}
    loaded = load_run(random_run(tmp_path / "run", model=model))
    assert attention_map("it", loaded.model, loaded.tokenizers, "ab " * 300, "k", device=CPU) is None
    assert attention_map("it", loaded.model, loaded.tokenizers, "k", "ab " * 300, device=CPU) is None
