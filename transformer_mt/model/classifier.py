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

    def __init__(self, encoder: Encoder, embedding: TokenEmbedding, *, compares_sides: bool) -> None:
        """Build the head.

        Args:
            encoder: the built one.
            embedding: it holds the pieces of both sides.
            compares_sides: pool each side by itself, and give the logit their product as well. Then words of
                both sides that belong together tell even where no attention has found them; without it
                attention is all that brings the sides together.
        """
        super().__init__()
        width = embedding.weight.size(1)
        self.encoder = encoder
        self.embedding = embedding
        self.compares_sides = compares_sides
        self.sides = nn.Parameter(torch.zeros(2, width))
        self.head = nn.Linear(3 * width if compares_sides else width, 1)
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
        is_target = places >= src_lengths[:, None]  # (B, L)
        states: Tensor = self.encoder(self.embedding(ids) + self.sides[is_target.long()], None)
        with torch.autocast(ids.device.type, enabled=False):
            logits: Tensor = self.head(self._pooled(states.float(), is_target)).squeeze(1)
        return logits

    def _pooled(self, states: Tensor, is_target: Tensor) -> Tensor:
        """(B, L, D) -> (B, D), or the means of both sides and their product, (B, 3D)."""
        if not self.compares_sides:
            return states.mean(dim=1)
        target = is_target[..., None].to(states.dtype)  # (B, L, 1)
        means = [(states * side).sum(dim=1) / side.sum(dim=1) for side in (1 - target, target)]
        return torch.cat([*means, means[0] * means[1]], dim=1)
