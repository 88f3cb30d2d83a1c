"""`training.compile` reaches the layers of a run, and validation stays out of it."""

from __future__ import annotations

import json
from functools import partialmethod
from pathlib import Path

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli.main import main
from transformer_mt.model.transformer import Transformer


def test_a_compiled_run_equals_a_plain_one(copy_task, monkeypatch: pytest.MonkeyPatch) -> None:
    """B113, B139: a key that is read nowhere, validation that compiles its own modes and shapes anew, and
    names of weights that only a compiled model has: the run continues as a plain one."""
    torch._dynamo.reset()
    monkeypatch.setattr("transformer_mt.training.build.compiler_fault", lambda device: None)
    counter = CompileCounterWithBackend("eager")
    monkeypatch.setattr(
        Transformer, "compile_layers", partialmethod(Transformer.compile_layers, backend=counter)
    )
    losses, names = [], []
    for setting in ("false", "true"):
        # On CPUs random masks stay outside of graphs.
        recipe = copy_task({"dropout: 0.1": "dropout: 0.0"}, num_valid=3)
        assert main(["train", str(recipe), f"training.compile={setting}", "training.max_steps=10"]) == 0
        records = (recipe.parent / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        losses.append([(r["step"], r.get("loss"), r.get("nll")) for r in map(json.loads, records)])
        assert (counter.frame_count > 0) == (setting == "true")
        names.append(files.read_checkpoint(files.folder_of(recipe.parent / "run", 10)).weights.keys())
    assert losses[0] == losses[1]
    assert any(nll is not None for _, _, nll in losses[0])
    assert counter.frame_count <= 4  # encoder layer, decoder layer, each once more for equal lengths
    assert names[0] == names[1]
    assert ckpt.load_run(recipe.parent / "run").step == 10
    assert main(["train", str(recipe), "training.compile=false", "training.max_steps=11"]) == 0


def test_without_a_compiler_the_run_goes_on(
    copy_task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """B139: one warning that says what is missing, and the run is the plain one."""
    import torch._inductor.config as inductor

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "nothing compiled before"))
    torch._dynamo.reset()
    runs = []
    for setting in ("false", "true"):
        recipe = copy_task(pairs=200, num_valid=3)
        with inductor.patch({"cpp.cxx": (None, str(tmp_path / "no compiler"))}):
            words = [f"training.compile={setting}", "training.max_steps=2"]
            assert main(["train", str(recipe), "--device", "cpu", *words]) == 0
        runs.append(files.read_checkpoint(files.folder_of(recipe.parent / "run", 2)).weights)
        said = "warning: training.compile: goes on without it: InvalidCxxCompiler" in capsys.readouterr().err
        assert said == (setting == "true")
    assert all(torch.equal(weight, runs[1][name]) for name, weight in runs[0].items())
