"""Is this pair of sentences a translation of each other? One encoder over both, mean pooling, one logit.

All sequences of a batch have one length, so there is no padding and no mask. Knows no text, and not how the
sequences were made.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transformer_mt.model.embedding import TokenEmbedding
from transformer_mt.model.transformer import Encoder


class PairClassifier(nn.Module):
    """Source and target in one sequence: every word of either side attends to those of both."""

    def __init__(self, encoder: Encoder, embedding: TokenEmbedding) -> None:
        """Args: the built parts; the embedding holds the pieces of both sides."""
        super().__init__()
        width = embedding.weight.size(1)
        self.encoder = encoder
        self.embedding = embedding
        self.sides = nn.Parameter(torch.zeros(2, width))
        self.head = nn.Linear(width, 1)
        nn.init.normal_(self.sides, std=0.5)  # embeddings, once they are scaled, have 1

    def forward(self, ids: Tensor, src_lengths: Tensor) -> Tensor:
        """How much speaks for a translation, as log-odds.

        Args:
            ids: (B, L) int64, the source and then the target of each pair, each ending in eos.
            src_lengths: (B,) int64, where the target of each begins.

        Returns:
            (B,) float32.
        """
        places = torch.arange(ids.size(1), device=ids.device)
        is_target = (places >= src_lengths[:, None]).long()  # (B, L)
        states: Tensor = self.encoder(self.embedding(ids) + self.sides[is_target], None)  # (B, L, D)
        pooled = states.float().mean(dim=1)  # sums of a long sequence are too fine for bfloat16
        with torch.autocast(ids.device.type, enabled=False):
            logits: Tensor = self.head(pooled).squeeze(1)
        return logits
