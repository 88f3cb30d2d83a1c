"""The package in training: what `train` builds, without its validation, logging and saving."""

from __future__ import annotations

import statistics
import time

import numpy as np
import torch

from tools.bench.exported import Exported
from tools.bench.meter import Meter, peak_gib, synchronizer
from tools.bench.task import EOS_ID, LENGTHS, MAX_TOKENS, Job, answer
from transformer_mt.cli.build_trainer import build_updater, open_stream
from transformer_mt.data.batch import Batch, make_batch
from transformer_mt.data.prepare import prepare
from transformer_mt.recipe import load_recipe
from transformer_mt.runtime.device import set_up_process
from transformer_mt.text.vocabulary import NUM_SPECIAL
from transformer_mt.training.loader import pick_workers
from transformer_mt.training.step import Updater
from transformer_mt.training.stream import MicroBatches

_UPDATES_A_ROUND = 2


def main() -> None:
    """Train for the windows of the job, or see what memory or length do."""
    job = Job.from_command_line()
    asked = job.measurement
    set_up_process()
    overrides = [f"training.precision={asked.precision}"]
    recipe = load_recipe(str(job.path(f"{asked.size}.yaml")), overrides)
    prepared = prepare(recipe)
    device = torch.device(job.device)
    _, updater = build_updater(recipe, prepared, device)
    workers, _ = pick_workers(recipe.training.workers, device, sampling=recipe.tokenizer.sampling > 0.0)
    stream = open_stream(recipe, prepared, workers=workers)(1, 0)
    if asked.work == "train":
        _train(job, updater, stream)
    elif asked.work == "memory":
        _memory(job, updater, stream)
    else:
        _lengths(job, updater, prepared.tokenizers.tgt.vocab_size)


def _train(job: Job, updater: Updater, stream: MicroBatches) -> None:
    effort = job.effort
    meter = Meter(effort.warm_seconds, effort.window_seconds, effort.windows, synchronizer(torch, job.device))
    step, done = 0, False
    while not done:
        step += 1
        done = meter.tick(updater.run(step, stream.take(1)).num_tokens)
    answer(meter.rates, "torch", peak_gib=peak_gib(torch, job.device))


def _memory(job: Job, updater: Updater, stream: MicroBatches) -> None:
    """The largest batch of an epoch first, then the others in their order."""
    order = [Exported(job.path("")).largest(), *range(job.effort.memory_updates - 1)]
    for step, number in enumerate(order, start=1):
        updater.run(step, [stream.build(stream.order()[number])])
    answer([peak_gib(torch, job.device)], "torch")


def _lengths(job: Job, updater: Updater, vocab_size: int) -> None:
    """How much more a token costs in the longest sentences than in the shortest, at equal tokens a batch."""
    draw = np.random.default_rng(1)
    batches = {length: _even_batch(draw, length, vocab_size) for length in LENGTHS}
    synchronize = synchronizer(torch, job.device)
    microseconds: dict[int, list[float]] = {length: [] for length in LENGTHS}
    step = 0
    for number in range(job.effort.windows + 1):
        for length, batch in batches.items():
            synchronize()
            started = time.perf_counter()
            for _ in range(_UPDATES_A_ROUND):
                step += 1
                updater.run(step, [batch])
            synchronize()
            seconds = time.perf_counter() - started
            if number > 0:  # the first round warms up
                microseconds[length].append(seconds * 1e6 / (_UPDATES_A_ROUND * MAX_TOKENS))
    growth = [
        longest / shortest
        for shortest, longest in zip(microseconds[LENGTHS[0]], microseconds[LENGTHS[-1]], strict=True)
    ]
    medians = {length: statistics.median(values) for length, values in microseconds.items()}
    answer(growth, "torch", microseconds_per_target_token=medians)


def _even_batch(draw: np.random.Generator, length: int, vocab_size: int) -> Batch:
    """MAX_TOKENS tokens a side in sentences of one length, random but for eos."""

    def sentence() -> list[int]:
        return [*draw.integers(NUM_SPECIAL, vocab_size, length - 1).tolist(), EOS_ID]

    return make_batch([(sentence(), sentence()) for _ in range(MAX_TOKENS // length)])


if __name__ == "__main__":
    main()
