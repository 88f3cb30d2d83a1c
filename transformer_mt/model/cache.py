"""Keys and values that decoding has already computed, and the state of a partly decoded batch.

Beams are never copied: position t of a cache keeps one slot per beam of that time, however many there were,
and `ancestors` names the slots that each live beam's history went through. Moving beams then moves a few
integers, and attention masks the slots of other histories. This module knows nothing of layers or search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

FIRST_POSITIONS = 32


class KeyValueCache:
    """Keys and values of one layer's self-attention: the slots of position 0, then those of position 1, …

    Appending writes in place while nobody has written there before; otherwise into a fresh copy. So a state
    may be stepped twice, and each of its followers sees its own past.
    """

    def __init__(self, keys: Tensor, values: Tensor, used: int) -> None:
        """Args: keys and values, (B, H_kv, capacity, E); used, the number of slots that hold something."""
        self.keys = keys
        self.values = values
        self.used = used

    @classmethod
    def empty(cls, batch: int, heads: int, beams: int, head_dim: int, like: Tensor) -> KeyValueCache:
        """A cache without positions, with room for some of `beams` slots, as `like` in dtype and device."""
        shape = (batch, heads, FIRST_POSITIONS * beams, head_dim)
        return cls(like.new_empty(shape), like.new_empty(shape), 0)

    def append(self, keys: Tensor, values: Tensor, used: int) -> KeyValueCache:
        """The cache that follows the first `used` slots of this one.

        Args:
            keys: (B, H_kv, K, E) of the new position.
            values: the same shape.
            used: slots before the new ones.
        """
        total = used + keys.size(2)
        cache = self if used == self.used and total <= self.keys.size(2) else self._copy(used, total)
        cache.keys[:, :, used:total] = keys
        cache.values[:, :, used:total] = values
        cache.used = total
        return cache

    def _copy(self, used: int, total: int) -> KeyValueCache:
        batch, heads, capacity, head_dim = self.keys.shape
        while capacity < total:
            capacity *= 2
        shape = (batch, heads, capacity, head_dim)
        copy = KeyValueCache(self.keys.new_empty(shape), self.values.new_empty(shape), used)
        copy.keys[:, :, :used] = self.keys[:, :, :used]
        copy.values[:, :, :used] = self.values[:, :, :used]
        return copy

    def keep(self, sentences: Tensor) -> KeyValueCache:
        """The rows `sentences` (B',) alone, with the same capacity."""
        return KeyValueCache(
            self.keys.index_select(0, sentences), self.values.index_select(0, sentences), self.used
        )


@dataclass(frozen=True)
class TransformerState:
    """What B sentences with K beams carry from step to step.

    memory: per layer the keys and values of the source, each (B, H_kv, S, E); src_mask: (B, 1, 1, S);
    caches: per layer the past of self-attention; ancestors: (B, K, T) slots of each beam's history, any K
    while T is 0; starts: first slot of every position, and of the next one.
    """

    memory: tuple[tuple[Tensor, Tensor], ...]
    src_mask: Tensor
    caches: tuple[KeyValueCache, ...]
    ancestors: Tensor
    starts: tuple[int, ...] = (0,)

    @property
    def length(self) -> int:
        """Number of positions decoded so far."""
        return self.ancestors.size(2)

    def reorder(self, beams: Tensor) -> TransformerState:
        """beams: (B, K) int64, for each beam of the next step the one of the same sentence it continues."""
        index = beams[:, :, None].expand(-1, -1, self.length)  # (B, K, T)
        return replace(self, ancestors=self.ancestors.gather(1, index))

    def keep(self, sentences: Tensor) -> TransformerState:
        """sentences: (B',) int64, the rows that stay, in their new order."""
        return TransformerState(
            memory=tuple(
                (keys.index_select(0, sentences), values.index_select(0, sentences))
                for keys, values in self.memory
            ),
            src_mask=self.src_mask.index_select(0, sentences),
            caches=tuple(cache.keep(sentences) for cache in self.caches),
            ancestors=self.ancestors.index_select(0, sentences),
            starts=self.starts,
        )

    def next_ancestors(self, beams: int) -> Tensor:
        """(B, K, T + 1): a slot for each of the K beams of the next position, behind their history."""
        first = self.starts[-1]
        here = torch.arange(first, first + beams, device=self.ancestors.device)
        here = here[None, :, None].expand(self.ancestors.size(0), -1, -1)
        return torch.cat((self.ancestors, here), dim=2) if self.length else here
