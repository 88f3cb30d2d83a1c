"""The kernel's call against a kernel written out by hand, and where it may be used."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_mt.model import packed_attention as module
from transformer_mt.model.attention import plain_attention
from transformer_mt.model.packed_attention import Packing, has_kernel, kernel_attention, packed_mask

H, E = 4, 8
QUERIES, KEYS = (3, 1, 6), (5, 2, 4)


def packing(lengths: tuple[int, ...]) -> Packing:
    starts = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    return Packing(torch.cat([torch.arange(n) for n in lengths]), starts, max(lengths))


def by_hand(  # noqa: PLR0917 (as torch has it)
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    *,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
) -> Tensor:
    """Torch's `varlen_attn` as its documentation describes it: sentence after sentence, query after query."""
    assert cu_seq_q.dtype == cu_seq_k.dtype == torch.int32
    assert enable_gqa == (query.size(1) != key.size(1))
    assert query.stride(-1) == key.stride(-1) == value.stride(-1) == 1
    result = torch.empty_like(query)
    left, right = window_size
    factor = query.size(-1) ** -0.5 if scale is None else scale
    group = query.size(1) // key.size(1)
    for sentence in range(len(cu_seq_q) - 1):
        q = slice(int(cu_seq_q[sentence]), int(cu_seq_q[sentence + 1]))
        k = slice(int(cu_seq_k[sentence]), int(cu_seq_k[sentence + 1]))
        assert q.stop - q.start <= max_q
        assert k.stop - k.start <= max_k
        for head in range(query.size(1)):
            keys, values = key[k, head // group], value[k, head // group]
            for place in range(q.stop - q.start):
                first = 0 if left < 0 else max(0, place - left)
                last = len(keys) if right < 0 else place + right + 1
                weights = torch.softmax(keys[first:last] @ query[q.start + place, head] * factor, 0)
                result[q.start + place, head] = weights @ values[first:last]
    return result


@pytest.mark.parametrize("num_kv_heads", [H, 2])
@pytest.mark.parametrize(
    "kind",
    [{}, {"scale": False}, {"causal": True}, {"window": 2}, {"causal": True, "window": 3}, {"window": 1}],
    ids=str,
)
def test_what_the_kernel_is_asked_for_is_the_masked_product(
    num_kv_heads: int, kind: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins a window one too wide, a causal kernel that sees later keys, and grouped heads mixed up."""
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", by_hand)
    queries, keys = packing(QUERIES), packing(KEYS if kind in ({}, {"scale": False}) else QUERIES)
    torch.manual_seed(0)
    heads = torch.randn(1, sum(QUERIES), H, E).transpose(1, 2)  # strided as a projection leaves it
    key, value = torch.randn(2, 1, keys.positions.size(0), num_kv_heads, E).transpose(2, 3)
    scale = kind.get("scale", True)
    places = {name: option for name, option in kind.items() if name != "scale"}
    result = kernel_attention(heads, key, value, queries, keys, scale=scale, **places)
    mask = packed_mask(queries, keys, **places)
    torch.testing.assert_close(result, plain_attention(heads, key, value, mask, scale=scale))


def test_the_installed_kernel_takes_these_arguments() -> None:
    """Shapes and names as torch checks them; the meta device computes nothing."""
    queries, keys = packing(QUERIES), packing(KEYS)
    on_meta = [Packing(p.positions.to("meta"), p.starts.to("meta"), p.longest) for p in (queries, keys)]
    heads = torch.empty(1, H, sum(QUERIES), E, device="meta", dtype=torch.bfloat16)
    memory = torch.empty(1, H, sum(KEYS), E, device="meta", dtype=torch.bfloat16)
    result = kernel_attention(heads, memory, memory, *on_meta)
    assert result.shape == heads.shape
    assert result.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"dtype": torch.float16}, True),
        ({"dtype": torch.float32}, False),
        ({"device": torch.device("cpu")}, False),
        ({"head_dim": 60}, False),
        ({"head_dim": 256}, False),
        ({"dropout_rate": 0.1}, False),
    ],
    ids=str,
)
def test_where_there_is_a_kernel(
    changed: dict[str, Any], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an Ampere card or a later one, in half precision, without attention dropout."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    usual = {"device": torch.device("cuda"), "dtype": torch.bfloat16, "head_dim": 64}
    kind = {**usual, "grouped": False, "dropout_rate": 0.0, **changed}
    assert has_kernel(kind.pop("device"), kind.pop("dtype"), **kind) is expected


def test_older_cards_and_older_versions_pad(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel came with Ampere, its windows with torch 2.11, its grouped heads later."""
    kind = {"head_dim": 64, "grouped": False, "dropout_rate": 0.0}
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert not has_kernel(torch.device("cuda"), torch.bfloat16, **kind)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    assert has_kernel(torch.device("cuda"), torch.bfloat16, **kind)
    monkeypatch.setattr(module, "_kernel_arguments", lambda: frozenset({"window_size"}))
    assert has_kernel(torch.device("cuda"), torch.bfloat16, **kind)
    assert not has_kernel(torch.device("cuda"), torch.bfloat16, **{**kind, "grouped": True})
    monkeypatch.setattr(module, "_kernel_arguments", frozenset)
    assert not has_kernel(torch.device("cuda"), torch.bfloat16, **kind)
