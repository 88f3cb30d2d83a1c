"""Token embeddings, scaled by sqrt(d_model), whose matrix may serve as output projection too.

A tied matrix is one parameter in one module: `Transformer` holds no second name for it, so no copy, load or
move can part it. This module knows nothing of positions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class TokenEmbedding(nn.Module):
    """ids -> vectors. The pad row is never seen: masks keep it from keys, the loss from targets."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        """Args: vocab_size, number of rows V; d_model, width D."""
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) int64 -> (B, T, D), times sqrt(D) ("Attention Is All You Need", 3.4)."""
        return F.embedding(ids, self.weight) * math.sqrt(self.weight.size(1))


def output_logits(hidden: Tensor, weight: Tensor, vocabulary: Tensor | None = None) -> Tensor:
    """Scores of the next token, without bias.

    Args:
        hidden: (..., D) decoder states.
        weight: (V, D) output matrix, often the embedding itself.
        vocabulary: int64 ids to score, (N,) for all states or (..., N) for each its own; None is all ids.

    Returns:
        (..., V) or (..., N).
    """
    if vocabulary is None or vocabulary.dim() == 1:
        return F.linear(hidden, weight if vocabulary is None else weight[vocabulary])
    return (F.embedding(vocabulary, weight) * hidden.unsqueeze(-2)).sum(-1)
