"""Attention over packed sentences: all tokens of a batch in one row, without padding.

Sentence b of a packed row is its tokens starts[b] … starts[b + 1] - 1. On a card one kernel attends within
every sentence at once. Its plain twin is ordinary attention of all N tokens under `packed_mask`: right on
every device, but quadratic in N, so it serves tests and not training. N and M count the tokens of all
sentences; the other letters stand in `attention.py`. Projections and layers are not known here.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from transformer_mt.model.masks import combine, position_mask, sentence_mask

_LARGEST_HEAD = 128


@dataclass(frozen=True)
class Packing:
    """Where the sentences of a packed row stand."""

    positions: Tensor
    """(N,) int64, the place of each token in its sentence."""
    starts: Tensor
    """(B + 1,) int32, tokens before each sentence, and their number at last."""
    longest: int
    """Tokens of the longest sentence."""


def has_kernel(
    device: torch.device, dtype: torch.dtype, *, head_dim: int, grouped: bool, dropout_rate: float
) -> bool:
    """Whether torch has a kernel for packed attention of this kind.

    Args:
        device: where the tensors are.
        dtype: of queries, keys and values.
        head_dim: width E of a head.
        grouped: fewer key heads than query heads.
        dropout_rate: on the attention weights; the kernel has none.
    """
    return (
        device.type == "cuda"
        and torch.version.hip is None
        and torch.cuda.get_device_capability(device) >= (8, 0)
        and dtype in (torch.bfloat16, torch.float16)
        and head_dim % 8 == 0  # rows of whole 16 bytes
        and head_dim <= _LARGEST_HEAD
        and "window_size" in _kernel_arguments()  # torch 2.11 and later
        and (not grouped or "enable_gqa" in _kernel_arguments())
        and dropout_rate == 0.0
    )


def kernel_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    queries: Packing,
    keys: Packing,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: bool = True,
) -> Tensor:
    """Attention within every sentence by torch's flash kernel (Dao 2023, FlashAttention-2).

    Args:
        query: (1, H, N, E) in half precision.
        key: (1, H_kv, M, E) of as many sentences.
        value: like key.
        queries: the sentences of the N queries.
        keys: the sentences of the M keys.
        causal: no query sees a later position.
        window: a query sees positions less than this far away.
        scale: False leaves out the division by sqrt(E).

    Returns:
        (1, H, N, E).
    """
    from torch.nn.attention.varlen import varlen_attn  # brings in all of torch's compiler

    reach = -1 if window is None else window - 1  # -1: everything
    grouped: dict[str, Any] = {"enable_gqa": True} if query.size(1) != key.size(1) else {}
    result = varlen_attn(
        query[0].transpose(0, 1),  # (N, H, E)
        key[0].transpose(0, 1),  # (M, H_kv, E)
        value[0].transpose(0, 1),  # (M, H_kv, E)
        queries.starts,
        keys.starts,
        queries.longest,
        keys.longest,
        scale=None if scale else 1.0,
        window_size=(reach, 0 if causal else reach),
        **grouped,
    )
    assert isinstance(result, Tensor)  # more is returned on request only
    return result.transpose(0, 1)[None]  # (1, H, N, E)


@cache
def _kernel_arguments() -> frozenset[str]:
    """What the kernel of this torch can be asked for; only cards pay for its import."""
    from torch.nn.attention.varlen import varlen_attn

    return frozenset(inspect.signature(varlen_attn).parameters)


def packed_mask(
    queries: Packing, keys: Packing, *, causal: bool = False, window: int | None = None
) -> Tensor:
    """What the kernel lets every query see, as a mask: (1, 1, N, M) bool, True = may attend."""
    same = sentence_mask(queries.starts, queries.positions.size(0), keys.starts, keys.positions.size(0))
    mask = combine(same, position_mask(queries.positions, keys.positions, causal=causal, window=window))
    assert mask is not None
    return mask
