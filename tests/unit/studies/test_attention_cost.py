"""What attention costs by length: which ways are measured, and how growth is fitted."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import Any

import pytest
import torch

from tests.conftest import REPOSITORY
from transformer_mt.config import Recipe
from transformer_mt.errors import ConfigError
from transformer_mt.runtime.device import reset_peak_memory
from transformer_mt.studies import attention_cost
from transformer_mt.studies.attention_cost import AttentionCost, exponent, measure

CPU = torch.device("cpu")


def recipe(**model: object) -> Recipe:
    sizes = {"d_model": 96, "num_encoder_layers": 1, "num_decoder_layers": 1}
    return Recipe.model_validate(
        {
            "run_dir": "runs/none",
            "data": {"train": "train", "valid": "valid", "src_lang": "de", "tgt_lang": "en"},
            "model": {**sizes, **model},
            "training": {"precision": "fp32"},
        }
    )


def found(recipe: Recipe, **settings: object) -> dict[tuple[object, ...], float | None]:
    values = measure(recipe, AttentionCost.model_validate(settings), CPU)
    return {(one.metric, one.at["kernel"], one.at["pass"], one.at.get("length")): one.value for one in values}


def found_alone(model: str) -> dict[tuple[object, ...], float | None]:
    """`found` in a process of its own, whose heap has no holes left by other tests to hide blocks in."""
    code = f"""
from tests.unit.studies.test_attention_cost import found, recipe
print(found(recipe({model}), lengths=[512, 1024], repeats=1, fit_from=512))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    values: dict[tuple[object, ...], float | None] = ast.literal_eval(done.stdout)
    return values


def test_an_exponent_is_the_slope_of_logarithms() -> None:
    """By hand: 3 n^2; and of the logarithms 0, 1, 1 at 0, 1, 2 the line of least squares rises by 1/2."""
    assert exponent({2: 12.0, 4: 48.0, 8: 192.0}) == pytest.approx(2.0)
    assert exponent({1: 1.0, 2: 2.0, 4: 2.0}) == pytest.approx(0.5)
    assert exponent({2: 12.0, 4: 48.0, 8: None}) == pytest.approx(2.0)
    assert exponent({2: 12.0, 4: 0.0, 8: None}) is None
    assert exponent({}) is None


@pytest.mark.parametrize(("window", "kernels"), [(None, {"model", "plain", "fused"}), (8, {"model"})])
def test_every_way_pass_and_length_has_its_numbers(
    window: int | None, kernels: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time is the median of the timed passes; growth is fitted from the named length on."""
    passes: list[tuple[int, bool]] = []

    def timed(run: Any, device: torch.device) -> tuple[None, float]:
        run()
        _, (query, key, value) = run.args
        assert query.shape[:2] == (1, 4)
        assert key.shape == value.shape == (1, 2, query.size(2), 24)
        passes.append((query.size(2), query.requires_grad))
        return None, query.size(2) ** 3 * [100.0, 1.0, 0.5][len(passes) % 3]

    monkeypatch.setattr(attention_cost, "timed", timed)
    monkeypatch.setattr(attention_cost, "peak_of", lambda run, device: (run(), run.args[1][0].size(2) * 2.0))
    values = found(
        recipe(num_heads=4, num_kv_heads=2, attention_window=window),
        lengths=[64, 8, 32, 16],
        repeats=3,
        fit_from=32,
    )
    assert {key[1] for key in values} == kernels
    for kernel in kernels:
        for name in ("forward", "backward"):
            for length in (8, 16, 32, 64):
                assert values["attention_seconds", kernel, name, length] == length**3
                assert values["attention_peak_mib", kernel, name, length] == 2 * length
            assert values["time_exponent", kernel, name, None] == pytest.approx(3.0)
            assert values["memory_exponent", kernel, name, None] == pytest.approx(1.0)
    one_kernel = [(n, grad) for grad in (False, True) for n in (8, 16, 32, 64) for _ in range(3)]
    assert passes == one_kernel * len(kernels)


def test_plain_products_hold_a_number_for_every_pair() -> None:
    """By hand: at 1,024 positions and 4 heads the scores are 16 MiB, and scores, scaled scores and weights
    are at most three of them; the fused kernel holds no such matrix, and a window of 32 hardly anything."""
    if not reset_peak_memory(CPU):
        pytest.skip("/proc/self/clear_refs cannot be written here")
    values, windowed = found_alone("num_heads=4"), found_alone("num_heads=4, attention_window=32")
    peak = values["attention_peak_mib", "plain", "forward", 1024]
    assert peak is not None
    assert 30 <= peak <= 60
    for lean in (
        values["attention_peak_mib", "fused", "forward", 1024],
        windowed["attention_peak_mib", "model", "forward", 1024],
    ):
        assert lean is not None
        assert lean < 12
    backward = values["attention_peak_mib", "plain", "backward", 1024]
    assert backward is not None
    assert backward > peak
    growth = values["memory_exponent", "plain", "forward", None]
    assert growth is not None
    assert 1.7 < growth < 2.3


def test_what_does_not_fit_is_none_and_so_is_what_is_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: None) -> torch.Tensor:
        assert query.size(2) <= 20
        if query.size(2) == 20:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return query + key + value

    monkeypatch.setattr(attention_cost, "plain_attention", plain)
    values = found(recipe(num_heads=4), lengths=[8, 20, 32], repeats=1, fit_from=8)
    for metric in ("attention_seconds", "attention_peak_mib"):
        for name in ("forward", "backward"):
            assert values[metric, "plain", name, 8] is not None
            assert values[metric, "plain", name, 20] is values[metric, "plain", name, 32] is None
            assert values[metric, "fused", name, 32] is not None
    assert values["time_exponent", "plain", "forward", None] is None


def test_a_model_without_heads_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"attention_cost: needs .* model\.architecture is lstm; leave"):
        found(recipe(architecture="lstm"), lengths=[8])
