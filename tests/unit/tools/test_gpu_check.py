"""`tools/gpu_check` around its measurements: settings, work, and parts that fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.gpu import __main__ as command
from tools.gpu import setting
from transformer_mt.config import PRESETS, ModelConfig, TrainingConfig


@pytest.mark.parametrize("size", ["small", "base", "big"])
def test_settings_are_those_of_the_recipes(size: str) -> None:
    """Pins a default that has moved on in config.py, which the stand-ins cannot read without pydantic."""
    ours = vars(setting.model_config(size))
    theirs = ModelConfig.model_validate({"preset": size}).model_dump(exclude={"architecture", "preset"})
    assert {**ours, "ablation": vars(ours["ablation"])} == theirs
    assert set(PRESETS[size]) < set(ours)
    training = vars(setting.training_config())
    assert training == {name: getattr(TrainingConfig(), name) for name in training}


def test_work_of_a_batch() -> None:
    """By hand: D 32, F 64, V 97, two layers a side; 5 source tokens and 3 target tokens."""
    model = setting.make_model("toy", 97, dropout=0.0)
    attention, feed_forward, cross_keys = 4 * 32 * 32, 2 * 32 * 64, 2 * 32 * 32
    per_src_token = 2 * (attention + feed_forward) + 2 * cross_keys
    per_token = 2 * (2 * attention + feed_forward) - 2 * cross_keys + 97 * 32
    assert setting.training_work(model, 5, 3) == 6 * (5 * per_src_token + 3 * per_token)


def test_peaks_by_name() -> None:
    """The longer name first: a PCIe card is no SXM card."""
    assert setting.peak_flops("NVIDIA H200") == 989e12
    assert setting.peak_flops("NVIDIA H100 PCIe") == 756e12
    assert setting.peak_flops("NVIDIA H100 80GB HBM3") == 989e12
    assert setting.peak_flops("NVIDIA GeForce RTX 4090") is None


def test_made_up_batches_keep_the_budget() -> None:
    """Pins batches that pad more than real ones, which would flatter packing."""
    batches = setting.made_up_batches(3, 4096, 500)
    assert len(batches) == 3
    for batch in batches:
        assert max(batch.src_ids.numel(), batch.labels.numel()) <= 4096
        assert batch.padded_tokens < 1.2 * (batch.num_tokens + batch.num_src_tokens)


def test_a_broken_process_loses_one_part_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No such device ends the process; the next part has its own, and both failures are written down."""
    file = tmp_path / "result.json"
    words = ["--device", "nonsense", "--json", str(file), "--only", "machine", "--only", "kernels"]
    assert command.main(words) == 1
    results = json.loads(file.read_text(encoding="utf-8"))
    assert set(results) == {"machine", "kernels"}
    assert {result["error"] for result in results.values()} == {"the process ended with code 1"}
    assert "ERROR the process ended with code 1" in capsys.readouterr().out


def test_time_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a part that hangs for ever, and one that starts when all time is over."""
    file = tmp_path / "result.json"
    monkeypatch.setitem(command.PARTS, "machine", 0.0)
    words = ["--device", "cpu", "--json", str(file)]
    assert command.main([*words, "--only", "machine"]) == 1
    assert json.loads(file.read_text())["machine"]["error"] == "stopped: its time was over"
    assert command.main([*words, "--only", "kernels", "--seconds", "3"]) == 1
    assert json.loads(file.read_text())["kernels"]["error"] == "not run: no time was left"


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line instead of a traceback from the middle of an import."""
    monkeypatch.setattr(command, "_NEEDED", ("numpy", "no_such_package"))
    assert command.main([]) == 2
    assert "this Python lacks no_such_package" in capsys.readouterr().err
