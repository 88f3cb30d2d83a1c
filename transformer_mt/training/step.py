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
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from transformer_mt.data.batch import Batch, PackedBatch
from transformer_mt.errors import ConfigError
from transformer_mt.model.packed_attention import Packing
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.runtime.device import autocast_dtype, is_out_of_memory, release_memory
from transformer_mt.runtime.distributed import ALONE, Ranks
from transformer_mt.runtime.seeds import seed_micro_batch
from transformer_mt.text.tokenizer import PAD_ID
from transformer_mt.training.ema import Ema
from transformer_mt.training.loss import fused_loss
from transformer_mt.training.optimizer import set_learning_rate
from transformer_mt.training.precision import autocast
from transformer_mt.training.schedule import learning_rate

if TYPE_CHECKING:
    from torch._C._distributed_c10d import GradBucket

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
    pieces: int = 1
    """Into how many each micro-batch was cut, because the memory did not hold it whole."""


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
                forward = DistributedDataParallel(
                    self.loss_module, broadcast_buffers=False, gradient_as_bucket_view=True
                )
            # A lambda, because torch takes annotations that are not evaluated for wrong ones.
            forward.register_comm_hook(None, lambda _, bucket: _summed(bucket, self.ranks))
            self._forward = forward

    def run(
        self, step: int, batches: Sequence[Batch], *, skipped: int = 0, rate_factor: float = 1.0
    ) -> Update:
        """Update the weights once, unless loss or gradient is not finite: then nothing changes.

        Where the memory does not hold it, all of it is done again with its micro-batches cut in halves: the
        same update, but for what dropout draws.

        Args:
            step: 1 for the first update; sets learning rate and dropout.
            batches: this process's micro-batches, on the CPU; all processes have as many.
            skipped: earlier steps that changed nothing; the schedule of the learning rate passes over them.
            rate_factor: what the learning rate is multiplied with.

        Raises:
            ConfigError: the memory does not hold one sentence, or a micro-batch of one of several processes.
            LostProcessError: another process failed, or did not come in time.
        """
        rate = learning_rate(step - skipped, self.config) * rate_factor
        set_learning_rate(self.optimizer, rate)
        self.loss_module.train()
        num_tokens, num_src_tokens, padded_tokens = map(
            int,
            self.ranks.sums(
                sum(batch.num_tokens for batch in batches),
                sum(batch.num_src_tokens for batch in batches),
                sum(self._places(batch) for batch in batches),
            ),
        )
        pieces = 1
        while (sums := self._tried(step, batches, num_tokens)) is None:
            # Only now that the error is gone: it had held on to the memory.
            self.optimizer.zero_grad(set_to_none=True)
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            else:
                release_memory()
            batches, pieces = [half for batch in batches for half in batch.halves()], pieces * 2
        grad_norm, loss_value, nll_value = self._finish(*sums)
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
            pieces=pieces,
        )

    def replay(self, step: int, batches: Sequence[Batch]) -> None:
        """Forward and backward of an update once more, of this process alone; gradients are left standing."""
        self._gradients(self.loss_module, step, batches, sum(batch.num_tokens for batch in batches))

    @property
    def _packs(self) -> bool:
        """Whether sentences are computed in one row, without padding."""
        return self.loss_module.model.has_packed_kernel(self.device, autocast_dtype(self.precision))

    def _places(self, batch: Batch) -> int:
        return batch.num_src_tokens + batch.num_tokens if self._packs else batch.padded_tokens

    def _tried(self, step: int, batches: Sequence[Batch], num_tokens: int) -> tuple[Tensor, Tensor] | None:
        """What `_gradients` gives, or None where the memory does not hold it but may hold that of halves."""
        try:
            return self._gradients(self._forward, step, batches, num_tokens)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # Several processes have met over some of the gradients already, and cannot begin again.
        if self.ranks.world == 1 and any(len(batch.labels) > 1 for batch in batches):
            return None
        largest = max(batches, key=lambda batch: batch.padded_tokens)
        rows, longest = largest.labels.shape
        raise ConfigError(
            f"step {step}: a micro-batch of {rows} x {largest.src_ids.size(1)} source and {rows} x {longest} "
            f"target tokens does not fit into the memory of {self.device}; lower training.max_tokens (and "
            "raise training.update_freq as much), or set training.gradient_checkpointing, and the same "
            "command goes on"
        )

    def _gradients(
        self, forward: nn.Module, step: int, batches: Sequence[Batch], num_tokens: int
    ) -> tuple[Tensor, Tensor]:
        """Forward and backward of every micro-batch. Returns the sums of loss and nll, on the device."""
        loss_sum = torch.zeros((), device=self.device)
        nll_sum = torch.zeros((), device=self.device)
        for number, batch in enumerate(batches):
            seed_micro_batch(self.config.seed, step, number * self.ranks.world + self.ranks.rank)
            with self._together(forward, last=number == len(batches) - 1):
                with autocast(self.precision, self.device):
                    loss, nll, _ = forward((batch.packed() if self._packs else batch).to(self.device))
                self.scaler.scale(loss / max(num_tokens, 1)).backward()
            loss_sum += loss.detach()
            nll_sum += nll
        return loss_sum, nll_sum

    def _together(self, forward: nn.Module, *, last: bool) -> contextlib.AbstractContextManager[object]:
        """Around forward and backward: processes meet over the last micro-batch of an update only."""
        if not isinstance(forward, DistributedDataParallel):
            return contextlib.nullcontext()
        return self.ranks.meeting(come=False) if last else forward.no_sync()

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


def _summed(bucket: GradBucket, ranks: Ranks) -> torch.futures.Future[Tensor]:
    """A part of the gradients, summed over all processes; DDP by itself would take the mean."""
    if bucket.is_last():
        ranks.come()  # only now: until here each was busy with sentences of its own
    work = cast("dist.Work", dist.all_reduce(bucket.buffer(), async_op=True))
    return work.get_future().then(lambda done: cast("Tensor", done.value()[0]))
