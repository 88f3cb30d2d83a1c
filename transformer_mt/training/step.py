"""One optimizer update from N micro-batches, in one fixed order.

Learning rate, then forward and backward of every micro-batch, unscale, clip, check, update, scaler, EMA.
The loss is the sum over all micro-batches divided once by the target tokens of all of them, so that 8
micro-batches of 1, 2 of 4 and 1 of 8 are the same update, and so are those of several processes. Where
batches come from and what is logged is not known here.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from transformer_mt.data.batch import Batch, PackedBatch
from transformer_mt.model.packed_attention import Packing
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.runtime.device import autocast_dtype, release_memory
from transformer_mt.runtime.distributed import ALONE, Ranks
from transformer_mt.runtime.seeds import seed_micro_batch
from transformer_mt.text.tokenizer import PAD_ID
from transformer_mt.training.ema import Ema
from transformer_mt.training.loss import fused_loss
from transformer_mt.training.optimizer import set_learning_rate
from transformer_mt.training.precision import autocast
from transformer_mt.training.schedule import learning_rate

if TYPE_CHECKING:
    from transformer_mt.config import TrainingConfig
    from transformer_mt.model.protocol import PackableModel

# Updates between returns of free memory: on Multi30k every 10 kept the peak of 200 updates at 1.84 instead of
# 2.33 GiB, at no cost in speed that could be measured.
_RELEASE_EVERY = 10


class LossModule(nn.Module):
    """Model and fused loss in one `forward`, because DDP and compile act on `forward` alone."""

    def __init__(self, model: TrainableModel, label_smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(self, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor, int]:
        """(smoothed loss summed over tokens, unsmoothed nll summed over tokens, number of tokens)."""
        if isinstance(batch, PackedBatch):
            hidden = cast("PackableModel", self.model).hidden_packed(
                batch.src_ids,
                Packing(batch.src_positions, batch.src_starts, batch.src_longest),
                batch.decoder_input_ids,
                Packing(batch.tgt_positions, batch.tgt_starts, batch.tgt_longest),
            )  # (N, D)
        else:
            hidden = self.model.hidden(batch.src_ids, batch.src_mask, batch.decoder_input_ids)  # (B, T, D)
        loss_sum, nll_sum = fused_loss(
            hidden.flatten(0, -2),  # (B*T or N, D)
            self.model.output_weight,
            batch.labels.flatten(),  # (B*T or N,)
            self.label_smoothing,
            PAD_ID,
            padded=not isinstance(batch, PackedBatch),
        )
        return loss_sum, nll_sum, batch.num_tokens


@dataclass(frozen=True)
class Update:
    """What one update of all processes did. Losses are sums in nats; `applied` is False where not finite."""

    loss_sum: float
    nll_sum: float
    num_tokens: int
    num_src_tokens: int
    padded_tokens: int
    grad_norm: float
    learning_rate: float
    applied: bool


@dataclass
class Updater:
    """Everything an update acts on; `run` is the update."""

    loss_module: LossModule
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    ema: Ema | None
    config: TrainingConfig
    precision: str
    device: torch.device
    ranks: Ranks = ALONE

    def __post_init__(self) -> None:
        """Where there are several processes, let DDP sum what each has learned."""
        self._forward: nn.Module = self.loss_module
        if self.ranks.world > 1:
            with self.ranks.meeting(), warnings.catch_warnings():
                # The newer name of broadcast_buffers is not known to every torch that will do.
                warnings.simplefilter("ignore", FutureWarning)
                self._forward = DistributedDataParallel(
                    self.loss_module, broadcast_buffers=False, gradient_as_bucket_view=True
                )

    def run(self, step: int, batches: Sequence[Batch], *, skipped: int = 0) -> Update:
        """Update the weights once, unless loss or gradient is not finite: then nothing changes.

        Args:
            step: 1 for the first update; sets learning rate and dropout.
            batches: this process's micro-batches, on the CPU; all processes have as many.
            skipped: earlier steps that changed nothing; the schedule of the learning rate passes over them.
        """
        rate = learning_rate(step - skipped, self.config)
        set_learning_rate(self.optimizer, rate)
        pack = self.loss_module.model.has_packed_kernel(self.device, autocast_dtype(self.precision))
        used = [batch.packed() if pack else batch for batch in batches]
        num_tokens, num_src_tokens, padded_tokens = map(
            int,
            self.ranks.sums(
                sum(batch.num_tokens for batch in used),
                sum(batch.num_src_tokens for batch in used),
                sum(batch.padded_tokens for batch in used),
            ),
        )
        loss_sum = torch.zeros((), device=self.device)
        nll_sum = torch.zeros((), device=self.device)
        self.loss_module.train()
        for number, batch in enumerate(used):
            seed_micro_batch(self.config.seed, step, number * self.ranks.world + self.ranks.rank)
            with self._together(last=number == len(used) - 1):
                with autocast(self.precision, self.device):
                    loss, nll, _ = self._forward(batch.to(self.device))
                # DDP takes the mean over processes; what is wanted is the sum.
                self.scaler.scale(loss * self.ranks.world / max(num_tokens, 1)).backward()
            loss_sum += loss.detach()
            nll_sum += nll
        grad_norm, loss_value, nll_value = self._finish(loss_sum, nll_sum)
        self.optimizer.zero_grad(set_to_none=True)
        if step % _RELEASE_EVERY == 0 and self.device.type == "cpu":
            release_memory()
        applied = math.isfinite(grad_norm) and math.isfinite(loss_value)
        if applied and self.ema is not None:
            self.ema.update()
        return Update(
            loss_sum=loss_value,
            nll_sum=nll_value,
            num_tokens=num_tokens,
            num_src_tokens=num_src_tokens,
            padded_tokens=padded_tokens,
            grad_norm=grad_norm,
            learning_rate=rate,
            applied=applied,
        )

    def _together(self, *, last: bool) -> contextlib.AbstractContextManager[object]:
        """Around forward and backward: processes meet over the last micro-batch of an update only."""
        if not isinstance(self._forward, DistributedDataParallel):
            return contextlib.nullcontext()
        return self.ranks.meeting() if last else self._forward.no_sync()

    def _finish(self, loss_sum: Tensor, nll_sum: Tensor) -> tuple[float, float, float]:
        """Unscale, clip, check, update. Returns the gradient norm before clipping, loss and nll."""
        self.scaler.unscale_(self.optimizer)
        weights = [weight for weight in self.loss_module.parameters() if weight.grad is not None]
        norm = torch.nn.utils.get_total_norm([weight.grad for weight in weights if weight.grad is not None])
        # Read together: each reading makes the host wait for a card, and this is an update's only one.
        grad_norm, loss, nll = torch.stack((norm, loss_sum, nll_sum)).tolist()
        loss, nll = self.ranks.sums(loss, nll)
        finite = math.isfinite(grad_norm) and math.isfinite(loss)
        if finite and self.config.clip_norm > 0.0:
            torch.nn.utils.clip_grads_with_norm_(weights, self.config.clip_norm, norm)
        if finite:
            self.scaler.step(self.optimizer)  # without loss scaling this is the optimizer's own step
        self.scaler.update()
        return grad_norm, loss, nll
