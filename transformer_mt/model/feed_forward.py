"""Position-wise feed-forward block: relu, gelu or swiglu. Knows nothing of positions or neighbours."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from transformer_mt.model.dropout import dropout

Activation = Literal["relu", "gelu", "swiglu"]


class FeedForward(nn.Module):
    """Widen to d_ff, bend, come back to d_model ("Attention Is All You Need", 3.3; swiglu: Shazeer 2020)."""

    def __init__(self, d_model: int, d_ff: int, *, activation: Activation, dropout: float = 0.0) -> None:
        """Args: d_model and d_ff, widths; activation, the bend; dropout, the rate on the inner states."""
        super().__init__()
        self.activation = activation
        self.dropout = dropout
        # swiglu has a second matrix for the gate; both are one product: rows 0..d_ff gate, the rest values.
        self.inner = nn.Linear(d_model, 2 * d_ff if activation == "swiglu" else d_ff)
        self.outer = nn.Linear(d_ff, d_model)

    def forward(self, states: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        inner: Tensor = self.inner(states)  # (..., F), or (..., 2F) for swiglu
        if self.activation == "relu":
            inner = F.relu(inner, inplace=True)  # backward needs the result alone
        elif self.activation == "gelu":
            inner = F.gelu(inner)
        else:
            gate, value = inner.chunk(2, dim=-1)
            inner = F.silu(gate) * value
        result: Tensor = self.outer(dropout(inner, self.dropout, self.training))
        return result
