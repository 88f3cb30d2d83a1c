"""Embeddings: scale, and the output projection that may share their matrix."""

from __future__ import annotations

import torch

from transformer_mt.model.embedding import TokenEmbedding, output_logits


def test_rows_are_scaled_by_sqrt_d_model() -> None:
    """Pins a missing or doubled scale."""
    embedding = TokenEmbedding(5, 9)
    torch.nn.init.normal_(embedding.weight)
    torch.testing.assert_close(embedding(torch.tensor([[3, 1]]))[0, 1], embedding.weight[1] * 3.0)


def test_logits_of_some_ids_equal_those_of_all() -> None:
    """Pins a shortlist in another order."""
    torch.manual_seed(0)
    hidden, weight = torch.randn(2, 3, 4), torch.randn(11, 4)
    ids = torch.tensor([7, 2, 10])
    torch.testing.assert_close(output_logits(hidden, weight, ids), output_logits(hidden, weight)[..., ids])
