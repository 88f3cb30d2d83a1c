"""Is it right? Card against CPU, packed against padded, compiled against not, a run against another."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tools.gpu.setting import Setting, made_up_batches, make_model, make_updater, peak_flops
from transformer_mt.data.batch import Batch, PackedBatch
from transformer_mt.model.attention import fused_attention, plain_attention
from transformer_mt.model.build import Model
from transformer_mt.model.packed_attention import Packing, has_kernel, kernel_attention, packed_mask
from transformer_mt.runtime.device import autocast_dtype
from transformer_mt.training.precision import autocast
from transformer_mt.training.step import LossModule

TOLERANCE = {"fp32": (1e-5, 1e-3), "bf16": (1e-2, 6e-2), "fp16": (2e-3, 2e-2)}
"""precision -> largest relative difference of loss and of the whole gradient against fp32 on the CPU."""
_KINDS: dict[str, dict[str, Any]] = {
    "encoder": {},
    "decoder": {"causal": True},
    "window": {"window": 5},
    "causal_window": {"causal": True, "window": 5},
}


def machine(setting: Setting) -> None:
    """The card, the versions, and what it reaches in a large product and a large copy."""
    on_card = setting.device.type == "cuda"
    name = torch.cuda.get_device_name() if on_card else "CPU"
    setting.report(
        name=name,
        torch=torch.__version__,
        python=platform.python_version(),
        capability=list(torch.cuda.get_device_capability()) if on_card else None,
        peak_tflops_assumed=(peak_flops(name) or 0.0) / 1e12 or None,
        fp32_matmul_precision=torch.get_float32_matmul_precision(),
    )
    size = 256 if setting.quick else 8192
    left, right = torch.randn(2, size, size, device=setting.device, dtype=torch.bfloat16)
    setting.seconds(lambda: left @ right, 3)
    product = setting.seconds(lambda: left @ right, 10)
    block = torch.empty(size * size * 8, device=setting.device, dtype=torch.bfloat16)
    setting.seconds(block.clone, 2)
    copy = setting.seconds(block.clone, 5)
    setting.report(
        measured_bf16_tflops=2 * size**3 / product / 1e12, measured_copy_gb_s=4 * block.numel() / copy / 1e9
    )


def kernels(setting: Setting) -> None:
    """Each attention kernel against the plain product in fp32: forward and all gradients."""
    lengths = (3, 7, 1) if setting.quick else (1, 17, 64, 129, 250, 31)
    torch.manual_seed(0)
    queries = _packing(lengths, setting.device)
    for dtype in (torch.bfloat16, torch.float16):
        for head_dim, num_kv_heads in ((64, 4), (128, 4), (64, 2)):
            shape = {"head_dim": head_dim, "grouped": num_kv_heads != 4, "dropout_rate": 0.0}
            name = f"{str(dtype).removeprefix('torch.')}, head {head_dim}, {num_kv_heads} of 4 key heads"
            if setting.device.type != "cuda":
                setting.report(**{name: "no kernel on this device"})
                continue
            usual = has_kernel(setting.device, dtype, **shape)
            errors: dict[str, Any] = {"used in training": usual}
            for kind, places in _KINDS.items():
                measure = partial(_kernel_error, queries, dtype, head_dim, num_kv_heads, places)
                errors[kind] = attempt(measure)
            setting.report(**{name: errors})
    setting.report(padded_fused=attempt(partial(_fused_error, setting.device)))


def attempt(measure: Callable[[], Any]) -> Any:
    """The measure, or the text of its error: one kernel that is missing hides no other."""
    try:
        return measure()
    except (RuntimeError, ValueError, NotImplementedError) as error:
        if "CUDA error" in str(error):
            raise
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def _packing(lengths: tuple[int, ...], device: torch.device) -> Packing:
    starts = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32).to(device)
    positions = torch.cat([torch.arange(length) for length in lengths]).to(device)
    return Packing(positions, starts, max(lengths))


def _kernel_error(
    packing: Packing, dtype: torch.dtype, head_dim: int, num_kv_heads: int, places: dict[str, Any]
) -> float:
    """Largest relative difference over output and gradients."""
    tokens, device = packing.positions.size(0), packing.positions.device
    # As projections leave them: heads of one token side by side.
    drawn = torch.randn(1, tokens, 4 + 2 * num_kv_heads, head_dim, device=device).to(dtype)
    weight = torch.randn(1, 4, tokens, head_dim, device=device)
    results = []
    for in_half in (True, False):
        heads = (drawn if in_half else drawn.float()).transpose(1, 2).detach().requires_grad_()
        query, key, value = torch.split(heads, [4, num_kv_heads, num_kv_heads], dim=1)
        if in_half:
            output = kernel_attention(query, key, value, packing, packing, **places)
        else:
            output = plain_attention(query, key, value, packed_mask(packing, packing, **places))
        (output.float() * weight).sum().backward()
        assert heads.grad is not None
        results.append((output.detach().float(), heads.grad.float()))
    return max(relative(one, other) for one, other in zip(*results, strict=True))


def _fused_error(device: torch.device) -> float:
    """The fused kernel for padded batches against the plain product, under a mask, in fp32."""
    query, key, value = torch.randn(3, 2, 4, 33, 64, device=device)
    mask = torch.rand(2, 1, 1, 33, device=device) > 0.3
    mask[..., 0] = True
    return relative(fused_attention(query, key, value, mask), plain_attention(query, key, value, mask))


def relative(one: Tensor, other: Tensor) -> float:
    """Norm of the difference over the norm of the second."""
    return float((one - other).norm() / other.norm().clamp(min=1e-30))


def lanes(setting: Setting) -> None:
    """Loss and gradient of one batch by every lane of training, against padded fp32 on the CPU."""
    size, vocab_size = ("toy", 97) if setting.quick else ("small", 8000)
    (batch,) = made_up_batches(1, 128 if setting.quick else 2048, vocab_size)
    expected = loss_and_gradient(make_model(size, vocab_size, dropout=0.0), batch, "fp32")

    def lane(precision: str, layout: str) -> dict[str, Any]:
        model = make_model(size, vocab_size, dropout=0.0, checkpointing="checkpointing" in layout)
        model.to(setting.device)
        if "compiled" in layout:
            model.compile_layers(backend=compiler(setting))
        used = batch if layout == "padded" else batch.packed()
        loss, gradient = loss_and_gradient(model, used.to(setting.device), precision)
        errors = relative(loss, expected[0]), relative(gradient, expected[1])
        return {
            "loss": errors[0],
            "gradient": errors[1],
            "kernel": layout != "padded"
            and model.has_packed_kernel(setting.device, autocast_dtype(precision)),
            "right": all(error <= limit for error, limit in zip(errors, TOLERANCE[precision], strict=True)),
        }

    for precision in ("fp32", "bf16", "fp16"):
        for layout in ("padded", "packed", "packed, checkpointing"):
            setting.report(**{f"{precision}, {layout}": attempt(partial(lane, precision, layout))})
    setting.report(**{"bf16, packed, compiled": attempt(partial(lane, "bf16", "packed, compiled"))})


def compiler(setting: Setting) -> str:
    """The backend of torch.compile: at toy size one that only traces."""
    return "eager" if setting.quick else "inductor"


def loss_and_gradient(model: Model, batch: Batch | PackedBatch, precision: str) -> tuple[Tensor, Tensor]:
    """On the CPU, in fp32: the mean loss and the gradient of all weights in one row."""
    device = batch.labels.device
    scale = 1024.0 if precision == "fp16" else 1.0  # small gradients underflow in fp16
    with autocast(precision, device):
        loss, _, num_tokens = LossModule(model, 0.1)(batch)
    (loss * scale / num_tokens).backward()
    gradients = [weight.grad.flatten() / scale for weight in model.parameters() if weight.grad is not None]
    return (loss.detach() / num_tokens).cpu(), torch.cat(gradients).cpu()


def repeats(setting: Setting) -> None:
    """What should be bitwise equal: recomputed layers, and for continued runs the same update twice."""
    size, vocab_size = ("toy", 97) if setting.quick else ("small", 8000)
    batches = made_up_batches(2, 128 if setting.quick else 4096, vocab_size)

    def weights(checkpointing: bool = False) -> Tensor:
        model = make_model(size, vocab_size, dropout=0.1, checkpointing=checkpointing).to(setting.device)
        updater = make_updater(model, setting.device, "bf16", warmup_steps=0)
        for step in (1, 2):
            updater.run(step, batches)
        return torch.cat([weight.detach().flatten() for weight in model.parameters()]).cpu()

    first = weights()
    setting.report(same_update_twice=torch.equal(first, weights()))
    setting.report(recomputed_layers=torch.equal(first, weights(checkpointing=True)))
    torch.use_deterministic_algorithms(True)
    try:
        same = attempt(lambda: torch.equal(weights(), weights()))
        setting.report(same_update_twice_deterministic=same)
    finally:
        torch.use_deterministic_algorithms(False)
    if setting.device.type == "cuda":
        setting.report(waits_per_update=_waits(setting))


def _waits(setting: Setting) -> int:
    """How often the host waits for the card in one update of two micro-batches; one is meant."""
    model = make_model("small", 8000, dropout=0.1).to(setting.device)
    updater = make_updater(model, setting.device, "bf16")
    batches = made_up_batches(2, 4096, 8000)
    updater.run(1, batches)
    setting.wait()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            updater.run(2, batches)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(warning.message) for warning in caught)
