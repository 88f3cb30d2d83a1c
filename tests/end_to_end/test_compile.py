"""`training.compile` reaches the layers of a run, and validation stays out of it."""

from __future__ import annotations

import json
from functools import partialmethod

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from transformer_mt.cli.main import main
from transformer_mt.model.transformer import Transformer


def test_a_compiled_run_equals_a_plain_one(copy_task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a key that is read nowhere, and validation that compiles its own modes and shapes anew."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("eager")
    monkeypatch.setattr(
        Transformer, "compile_layers", partialmethod(Transformer.compile_layers, backend=counter)
    )
    losses = []
    for setting in ("false", "true"):
        recipe = copy_task({"dropout: 0.1": "dropout: 0.0"})  # on CPUs random masks stay outside of graphs
        assert main(["train", str(recipe), f"training.compile={setting}", "training.max_steps=10"]) == 0
        records = (recipe.parent / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        losses.append([(r["step"], r.get("loss"), r.get("nll")) for r in map(json.loads, records)])
        assert (counter.frame_count > 0) == (setting == "true")
    assert losses[0] == losses[1]
    assert any(nll is not None for _, _, nll in losses[0])
    assert counter.frame_count <= 3  # encoder layer, decoder layer, one of them once more for equal lengths
