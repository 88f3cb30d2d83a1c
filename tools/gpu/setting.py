"""What the parts work with: sizes, models, updates, batches and the work they stand for.

The config classes need pydantic, which the machine of a card may lack: plain namespaces with the same names
and the same defaults stand in for them, and a test holds the two together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tools.gpu.ids import Corpus, Rows, load_ids
from transformer_mt.data.batch import Batch, make_batch
from transformer_mt.data.sampler import epoch_batches
from transformer_mt.model.build import build_model
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.seeds import seed_weights
from transformer_mt.text.tokenizer import EOS_ID
from transformer_mt.training.ema import Ema
from transformer_mt.training.optimizer import build_optimizer
from transformer_mt.training.precision import loss_scaler
from transformer_mt.training.step import LossModule, Updater

PEAKS = {"H200": 989e12, "H100 PCIe": 756e12, "H100": 989e12, "A100": 312e12}
"""Dense bf16 FLOP/s by the vendors' data sheets; the first name found in that of the card counts."""
_SIZES = {
    "toy": (32, 2, 64, 2),
    "small": (256, 4, 1024, 3),
    "base": (512, 8, 2048, 6),
    "big": (1024, 16, 4096, 6),
}


@dataclass(frozen=True)
class Setting:
    """What a part is given: `quick` is everything at toy size; `report` keeps what is known so far."""

    device: torch.device
    quick: bool
    ids: Path
    report: Callable[..., None]

    def corpus(self) -> Corpus:
        """The file of ids."""
        return load_ids(self.ids)

    def wait(self) -> None:
        """Until the card has done all it was told to."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def seconds(self, work: Callable[[], object], repeat: int = 1) -> float:
        """Mean time of one call."""
        self.wait()
        started = time.perf_counter()
        for _ in range(repeat):
            work()
        self.wait()
        return (time.perf_counter() - started) / repeat


def model_config(size: str, **changed: Any) -> Any:
    """The `model` section of a recipe with this preset."""
    d_model, num_heads, d_ff, layers = _SIZES[size]
    return SimpleNamespace(
        **{
            "architecture": "transformer",
            "d_model": d_model,
            "d_ff": d_ff,
            "num_heads": num_heads,
            "num_kv_heads": None,
            "num_encoder_layers": layers,
            "num_decoder_layers": layers,
            "norm_first": True,
            "norm": "layer_norm",
            "activation": "relu",
            "positions": "sinusoidal",
            "max_positions": 512,
            "attention_window": None,
            "tied_embeddings": "three_way",
            "ablation": SimpleNamespace(scale=True, output_projection=True),
            **changed,
        }
    )


def training_config(**changed: Any) -> Any:
    """The keys of the `training` section that an update reads."""
    return SimpleNamespace(
        **{
            "max_steps": 100_000,
            "optimizer": "adamw",
            "learning_rate": 1e-3,
            "beta1": 0.9,
            "beta2": 0.98,
            "eps": 1e-9,
            "weight_decay": 0.01,
            "schedule": "inverse_sqrt",
            "warmup_steps": 4000,
            "decay_steps": 0,
            "min_learning_rate": 0.0,
            "clip_norm": 1.0,
            "seed": 1,
            **changed,
        }
    )


def make_model(size: str, vocab_size: int, *, dropout: float, checkpointing: bool = False) -> Transformer:
    """A model on the CPU, always with the same weights."""
    seed_weights(1)
    return build_model(
        model_config(size), vocab_size, vocab_size, dropout=dropout, gradient_checkpointing=checkpointing
    )


def make_updater(
    model: Transformer, device: torch.device, precision: str, ema: float = 0.0, **training: Any
) -> Updater:
    """Everything one update needs, around a model that is on the device."""
    config = training_config(**training)
    return Updater(
        LossModule(model, 0.1),
        build_optimizer(model, config),
        loss_scaler(precision, device),
        Ema(model, ema) if ema else None,
        config,
        precision,
        device,
    )


def lay_out(model: Transformer, packed: bool) -> None:
    """Train this model on packed batches or on padded ones, whatever it prefers here."""
    model.has_packed_kernel = lambda *_: packed  # type: ignore[method-assign]


def cut(src: Rows, tgt: Rows, max_tokens: int, seed: int = 1, epoch: int = 1) -> list[Batch]:
    """One epoch of micro-batches."""
    lengths = [np.array([len(row) for row in rows], np.int32) for rows in (src, tgt)]
    order = epoch_batches(*lengths, max_tokens=max_tokens, seed=seed, epoch=epoch)
    return [make_batch([(src[i], tgt[i]) for i in batch], indices=batch) for batch in order]


def made_up_batches(num_batches: int, max_tokens: int, vocab_size: int) -> list[Batch]:
    """Random ids in sentences as long as those of news: log-normal, about 27 tokens a side, at most 250.

    Lengths are drawn for forty times as many batches: a small corpus is padded more than a real one.
    """
    draw = np.random.default_rng(1)
    num_sentences = 40 * num_batches * max_tokens // 27
    tgt_lengths = np.clip(draw.lognormal(3.15, 0.55, num_sentences), 2, 250).astype(np.int32)
    src_lengths = np.clip(tgt_lengths * draw.lognormal(0.0, 0.15, num_sentences), 2, 250).astype(np.int32)
    order = epoch_batches(src_lengths, tgt_lengths, max_tokens=max_tokens, seed=1, epoch=1)

    def row(length: int) -> npt.NDArray[np.int64]:
        return np.append(draw.integers(4, vocab_size, length - 1), EOS_ID)

    return [
        make_batch([(row(src_lengths[i]), row(tgt_lengths[i])) for i in batch], indices=batch)
        for batch in order[:num_batches]
    ]


def training_work(model: Transformer, num_src_tokens: int, num_tokens: int) -> float:
    """FLOP of forward and backward in all matrix products of weights; attention's own products left out.

    Six per weight and token: two forward, four backward. Recomputed layers are not counted twice.
    """

    def weights(module: nn.Module) -> int:
        return sum(linear.weight.numel() for linear in module.modules() if isinstance(linear, nn.Linear))

    of_source = sum(layer.cross_attention.key_value.weight.numel() for layer in model.decoder.layers)
    per_src_token = weights(model.encoder) + of_source
    per_token = weights(model.decoder) - of_source + model.output_weight.numel()
    return 6.0 * (per_src_token * num_src_tokens + per_token * num_tokens)


def peak_flops(name: str) -> float | None:
    """Dense bf16 peak of a card by its name, None where it is not known here."""
    return next((peak for part, peak in PEAKS.items() if part in name), None)
