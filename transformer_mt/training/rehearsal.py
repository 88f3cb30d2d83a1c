"""`--dry-run`: what a training run will need, found by doing a little of it and writing nothing.

The longest batch is trained on once, which finds the peak of memory; then batches drawn evenly from the first
epoch are timed. Estimates are of this machine as busy as it is now.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from torch import nn

from transformer_mt.config import Recipe
from transformer_mt.data.dataset import ParallelDataset
from transformer_mt.data.prepare import PreparedData
from transformer_mt.data.sampler import padding_share
from transformer_mt.runtime.device import peak_memory
from transformer_mt.text.tokenizer import UNK_ID, Tokenizer
from transformer_mt.training.step import Updater
from transformer_mt.training.stream import MicroBatches

# Memory settles only after many shapes of batches: small models see 60 updates, large ones as many as fit.
_WARM_UP_UPDATES, _TIMED_UPDATES, _ENOUGH_UPDATES, _ENOUGH_SECONDS = 3, 60, 5, 30.0


def rehearse(
    recipe: Recipe, prepared: PreparedData, model: nn.Module, updater: Updater, stream: MicroBatches
) -> Iterator[str]:
    """Report lines: vocabulary, parameters, batches, memory, time."""
    config, order = recipe.training, list(stream.order())
    parameters = sum(weight.numel() for weight in model.parameters())
    for side, tokenizer in (("source", prepared.tokenizers.src), ("target", prepared.tokenizers.tgt)):
        yield f"vocabulary {side}  {_coverage(prepared.valid, side, tokenizer)}"
    yield f"parameters         {parameters:,} ({parameters * 4 / 2**20:.0f} MiB in fp32)"
    yield (
        f"batches            {len(order):,} an epoch of at most {config.token_budget:,} tokens; padding "
        f"{padding_share(stream.src_lengths(), order):.1%} source, "
        f"{padding_share(prepared.train.tgt_lengths, order):.1%} target"
    )
    yield f"arithmetic         {config.precision} on {updater.device}"
    lengths = stream.src_lengths(), prepared.train.tgt_lengths
    longest = max(order, key=lambda batch: max(int(side[batch].max()) for side in lengths) * len(batch))
    tallest = max(order, key=lambda batch: max(int(side[batch].max()) for side in lengths))
    step = 0
    for batch in (longest, tallest):
        step += 1
        update = updater.run(step, [stream.build(batch)] * config.update_freq)
    yield (
        f"longest batch      {len(tallest)} x {max(int(side[tallest].max()) for side in lengths)} tokens, "
        f"one update: {'finite' if update.applied else 'NOT FINITE'}, gradient norm {update.grad_norm:.2f}"
    )
    seconds, tokens = 0.0, 0
    wanted = (_WARM_UP_UPDATES + _TIMED_UPDATES) * config.update_freq
    spread = [order[place * len(order) // wanted] for place in range(wanted)]
    for number in range(_WARM_UP_UPDATES + _TIMED_UPDATES):
        step += 1
        batches = spread[number :: _WARM_UP_UPDATES + _TIMED_UPDATES]
        started = time.perf_counter()
        update = updater.run(step, [stream.build(batch) for batch in batches])
        if number >= _WARM_UP_UPDATES:
            seconds += time.perf_counter() - started
            tokens += update.num_tokens
        if seconds > _ENOUGH_SECONDS and number >= _WARM_UP_UPDATES + _ENOUGH_UPDATES:
            break
    tokens_per_epoch = int(prepared.train.tgt_lengths.sum(dtype="int64"))
    tokens_per_update = tokens_per_epoch / len(order) * config.update_freq
    per_update = tokens_per_update * seconds / max(tokens, 1)
    yield f"memory             {peak_memory(updater.device) / 2**30:.2f} GiB at the peak, training alone"
    yield (
        f"time               {per_update:.3f} s an update of {tokens_per_update:,.0f} target tokens "
        f"({tokens / seconds:,.0f} tokens/s); {_duration(200 * per_update)} for 200 updates, "
        f"{_duration(per_update * len(order) / config.update_freq)} an epoch, "
        f"{_duration(per_update * config.max_steps)} for {config.max_steps:,} updates, validation not counted"
    )


def _coverage(valid: ParallelDataset, side: str, tokenizer: Tokenizer) -> str:
    """How well the vocabulary covers the validation text."""
    position = 0 if side == "source" else 1
    counts: Counter[int] = Counter()
    for index in range(len(valid)):
        counts.update(int(token) for token in valid.ids(index)[position][:-1])
    total = max(sum(counts.values()), 1)
    byte_pieces = sum(count for token, count in counts.items() if tokenizer.is_byte(token))
    return (
        f"{tokenizer.vocab_size:,} pieces, {len(counts):,} of them in the validation text "
        f"({total / max(len(valid), 1):.1f} a line); {counts[UNK_ID] / total:.2%} unknown, "
        f"{byte_pieces / total:.2%} spelt in bytes"
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
