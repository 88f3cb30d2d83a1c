"""Compiled layers are the layers, and batches of any shape share what was compiled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch._dynamo.utils import counters

from transformer_mt.config import ModelConfig
from transformer_mt.data.batch import Batch, make_batch
from transformer_mt.model.build import build_model
from transformer_mt.training.step import LossModule

V = 37
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 24, "num_encoder_layers": 3, "num_decoder_layers": 2}


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """What other tests compiled counts nowhere."""
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def batches() -> list[Batch]:
    """Ten batches; numbers of sentences and lengths of both sides all differ."""
    generator = torch.Generator().manual_seed(7)

    def ids(length: int) -> list[int]:
        return [*torch.randint(4, V, (length,), generator=generator).tolist(), 3]

    return [
        make_batch([(ids(2 + (row + number) % 9), ids(1 + (2 * row + number) % 11)) for row in range(number)])
        for number in range(2, 12)
    ]


def run(packed: bool, checkpointing: bool, backend: CompileCounterWithBackend | None) -> list[Tensor]:
    """Loss and gradients of every batch, of compiled layers where there is a backend."""
    torch.manual_seed(0)
    model = build_model(ModelConfig.model_validate(SIZES), V, V, gradient_checkpointing=checkpointing)
    if backend is not None:
        model.compile_layers(backend=backend)  # type: ignore[arg-type]
    loss_module, results = LossModule(model, 0.1), []
    for batch in batches():
        loss, _, _ = loss_module(batch.packed() if packed else batch)
        loss.backward()
        results += [loss.detach(), *(w.grad.clone() for w in model.parameters() if w.grad is not None)]
        model.zero_grad()
    return results


@pytest.mark.parametrize(
    ("packed", "checkpointing", "name"), [(True, True, "aot_eager"), (False, False, "eager")]
)
def test_same_bits_and_one_compilation_per_kind_of_layer(
    packed: bool, checkpointing: bool, name: str
) -> None:
    """B139: graph breaks, a compilation per shape or per layer, and another function than the written one.

    One more is allowed: sizes that are equal in the first batch are taken for the same until they differ.
    """
    backend = CompileCounterWithBackend(name)
    compiled, plain = run(packed, checkpointing, backend), run(packed, checkpointing, None)
    assert all(torch.equal(a, b) for a, b in zip(compiled, plain, strict=True))
    assert 2 <= counters["frames"]["total"] <= 3
    assert not counters["graph_break"]
