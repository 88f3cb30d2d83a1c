"""Position information: sinusoidal and learned vectors are added, rotary turns queries and keys.

Tables of sines grow with the longest sentence seen, so there is no limit; learned positions have one and say
so. This module knows nothing of tokens or attention.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_mt.errors import DataError

FIRST_ROWS = 256


def angle_table(rows: int, width: int, device: torch.device | None = None) -> Tensor:
    """(rows, width / 2) float64 angles position / 10000^(2i / width) ("Attention Is All You Need", 3.5)."""
    positions = torch.arange(rows, dtype=torch.float64, device=device)
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device=device) / width
    return positions[:, None] * torch.pow(10000.0, -exponents)


def sinusoid_table(rows: int, width: int, device: torch.device | None = None) -> Tensor:
    """(rows, width) float32: sines in the even columns, cosines in the odd ones."""
    angles = angle_table(rows, (width + 1) // 2 * 2, device)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :width].float()


def _rows_for(length: int) -> int:
    """Table size: the next power of two, so that growing is rare."""
    return max(FIRST_ROWS, 1 << (length - 1).bit_length())


class SinusoidalPositions(nn.Module):
    """Fixed vectors for any position."""

    table: Tensor

    def __init__(self, d_model: int) -> None:
        """Args: d_model, width D of the vectors."""
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table", sinusoid_table(FIRST_ROWS, d_model), persistent=False)

    def forward(self, length: int, offset: int = 0) -> Tensor:
        """(length, D) vectors of the positions offset, offset + 1, …"""
        self._hold(offset + length)
        return self.table[offset : offset + length]

    def at(self, positions: Tensor, limit: int) -> Tensor:
        """(N, D) vectors of the (N,) int positions, all below `limit`."""
        self._hold(limit)
        return self.table[positions]

    def _hold(self, rows: int) -> None:
        """Make the table at least this long."""
        if rows > self.table.size(0):
            # A table made in inference mode could not take part in training later.
            with torch.inference_mode(False):
                rows = _rows_for(rows)
                self.table = sinusoid_table(rows, self.d_model, self.table.device).to(self.table.dtype)


class LearnedPositions(nn.Module):
    """Trained vectors for a fixed number of positions."""

    def __init__(self, d_model: int, max_positions: int) -> None:
        """Args: d_model, width D; max_positions, the longest sentence in tokens."""
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, d_model))

    def forward(self, length: int, offset: int = 0) -> Tensor:
        """(length, D) vectors of the positions offset, offset + 1, …

        Raises:
            DataError: the sentence is longer than the table.
        """
        self._check(offset + length)
        return self.weight[offset : offset + length]

    def at(self, positions: Tensor, limit: int) -> Tensor:
        """(N, D) vectors of the (N,) int positions, all below `limit`.

        Raises:
            DataError: the sentence is longer than the table.
        """
        self._check(limit)
        return F.embedding(positions, self.weight)

    def _check(self, length: int) -> None:
        limit = self.weight.size(0)
        if length > limit:
            raise DataError(
                f"a sentence of {length} tokens is too long for learned positions: "
                f"model.max_positions is {limit}; "
                "shorten the sentence, or train with model.positions=sinusoidal, which has no limit"
            )


class RotaryPositions(nn.Module):
    """Turns each pair of query and key dimensions by an angle of its position (Su et al. 2021, RoFormer).

    The pair of dimension i is i + E / 2. Products of turned queries and keys depend on distances alone.
    """

    cosines: Tensor
    sines: Tensor

    def __init__(self, head_dim: int) -> None:
        """Args: head_dim, even width E of a head."""
        super().__init__()
        self.head_dim = head_dim
        angles = angle_table(FIRST_ROWS, head_dim)
        self.register_buffer("cosines", angles.cos().float(), persistent=False)
        self.register_buffer("sines", angles.sin().float(), persistent=False)

    def forward(self, states: Tensor, offset: int = 0, *, step: bool = False) -> Tensor:
        """Turn queries or keys.

        Args:
            states: (B, H, T, E).
            offset: position of the first row.
            step: all T rows stand at position `offset` (the beams of one decoding step).

        Returns:
            (B, H, T, E) in the dtype of `states`.
        """
        length = 1 if step else states.size(-2)
        self._hold(offset + length)
        rows = slice(offset, offset + length)
        return _turn(states, self.cosines[rows], self.sines[rows])  # by (T or 1, E / 2)

    def at(self, states: Tensor, positions: Tensor, limit: int) -> Tensor:
        """Turn queries or keys (1, H, N, E) by their (N,) int positions, all below `limit`."""
        self._hold(limit)
        return _turn(states, self.cosines[positions], self.sines[positions])

    def _hold(self, rows: int) -> None:
        """Make the tables at least this long."""
        if rows > self.cosines.size(0):
            with torch.inference_mode(False):
                angles = angle_table(_rows_for(rows), self.head_dim, self.cosines.device)
                self.cosines = angles.cos().to(self.cosines.dtype)
                self.sines = angles.sin().to(self.sines.dtype)


def _turn(states: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn (..., T, E) by angles given as (T or 1, E / 2) cosines and sines, in the dtype of `states`."""
    cosines, sines = cosines.to(states.dtype), sines.to(states.dtype)
    first, second = states.chunk(2, dim=-1)
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)
