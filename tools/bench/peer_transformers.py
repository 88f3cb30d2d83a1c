"""The peer transformers: a Marian model trained by Seq2SeqTrainer, or translating by generate."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from torch import Tensor
from torch.utils.data import IterableDataset
from transformers import (
    MarianConfig,
    MarianMTModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)

from tools.bench.exported import Exported, Ids
from tools.bench.meter import Meter, peak_gib, synchronizer
from tools.bench.task import (
    BATCH_SENTENCES,
    BOS_ID,
    DROPOUT,
    EOS_ID,
    FORCED_TOKENS,
    LABEL_SMOOTHING,
    PAD_ID,
    SIZES,
    Job,
    Size,
    answer,
)

_IGNORED = -100
_ENDLESS = 10**6


def marian(size: Size, vocab_size: int) -> MarianMTModel:
    """A model with initial weights; one matrix for both embeddings and the projection."""
    sides = {}
    for side in ("encoder", "decoder"):
        sides[f"{side}_layers"] = size.num_layers
        sides[f"{side}_attention_heads"] = size.num_heads
        sides[f"{side}_ffn_dim"] = size.d_ff
    config = MarianConfig(
        vocab_size=vocab_size,
        d_model=size.d_model,
        activation_function="relu",
        dropout=DROPOUT,
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD_ID,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        decoder_start_token_id=BOS_ID,
        forced_eos_token_id=None,
        **sides,
    )
    return MarianMTModel(config)


class Batches(IterableDataset):  # type: ignore[type-arg]
    """The batches that every system trains on, padded, in their order."""

    def __init__(self, data: Exported, first: list[int]) -> None:
        self._data, self._first = data, first
        self.num_tokens: list[int] = []
        """Target tokens of the batches handed out so far, without padding."""

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for src_rows, tgt_rows in self._data.stream(self._first):
            self.num_tokens.append(sum(map(len, tgt_rows)))
            input_ids, labels = padded(src_rows, PAD_ID), padded(tgt_rows, _IGNORED)
            # Label smoothing takes the labels away from the model, so it cannot shift them itself.
            decoder_input_ids = labels.roll(1, dims=1).masked_fill(labels == _IGNORED, PAD_ID)
            decoder_input_ids[:, 0] = BOS_ID
            yield {
                "input_ids": input_ids,
                "attention_mask": (input_ids != PAD_ID).long(),
                "decoder_input_ids": decoder_input_ids,
                "labels": labels,
            }


class StopWatch(TrainerCallback):
    """Counts the tokens of every update, and ends training with the last window."""

    def __init__(self, batches: Batches, meter: Meter) -> None:
        self._batches, self._meter = batches, meter

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Called by the trainer."""
        if self._meter.tick(self._batches.num_tokens[state.global_step - 1]):
            control.should_training_stop = True


def train(job: Job, data: Exported, batches: Batches, updates: int, callbacks: list[TrainerCallback]) -> None:
    """Train until a callback stops it, at most `updates` updates."""
    asked = job.measurement
    with tempfile.TemporaryDirectory() as folder:
        arguments = Seq2SeqTrainingArguments(
            output_dir=folder,
            max_steps=updates,
            per_device_train_batch_size=1,  # an item is a whole batch
            learning_rate=1e-3,
            lr_scheduler_type="inverse_sqrt",
            warmup_steps=4000,
            adam_beta2=0.98,
            max_grad_norm=1.0,
            label_smoothing_factor=LABEL_SMOOTHING,
            bf16=asked.precision == "bf16",
            use_cpu=job.device == "cpu",
            remove_unused_columns=False,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Seq2SeqTrainer(
            model=marian(SIZES[asked.size], len(data.pieces)),
            args=arguments,
            train_dataset=batches,
            data_collator=lambda items: items[0],
            callbacks=callbacks,
        )
        trainer.train()


def decode(job: Job) -> list[float]:
    """Sentences per second of every pass, like lengths together."""
    asked, effort = job.measurement, job.effort
    data = Exported(job.path(""))
    dtype = torch.bfloat16 if asked.precision == "bf16" else torch.float32
    model = marian(SIZES[asked.size], len(data.pieces)).to(job.device, dtype).eval()
    sentences = sorted(data.test[: effort.sentences[asked.size]], key=len, reverse=True)
    batches = [sentences[i : i + BATCH_SENTENCES] for i in range(0, len(sentences), BATCH_SENTENCES)]

    def translate(rows: list[Ids]) -> list[list[int]]:
        input_ids = padded(rows, PAD_ID).to(job.device)
        found: list[list[int]] = model.generate(
            input_ids=input_ids,
            attention_mask=(input_ids != PAD_ID).long(),
            num_beams=asked.beam,
            do_sample=False,
            min_new_tokens=FORCED_TOKENS,
            max_new_tokens=FORCED_TOKENS,
        ).tolist()
        return found

    rates = []
    with torch.inference_mode():
        length = len(translate(batches[-1])[0]) - 1  # less bos
        if length != FORCED_TOKENS:
            raise SystemExit(f"translations have {length} tokens, not {FORCED_TOKENS}")
        for _ in range(effort.windows):
            started = time.perf_counter()
            for batch in batches:
                translate(batch)
            rates.append(len(sentences) / (time.perf_counter() - started))
    return rates


def padded(rows: list[Ids], padding: int) -> Tensor:
    """Rows of ids -> (B, longest)."""
    tensors = [torch.as_tensor(row, dtype=torch.long) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, True, padding)


def main() -> None:
    """Do the work of the job."""
    job = Job.from_command_line()
    torch.manual_seed(1)
    transformers.logging.set_verbosity_error()
    packages = ("torch", "transformers", "accelerate")
    if job.measurement.work == "decode":
        answer(decode(job), *packages)
        return
    data, effort = Exported(job.path("")), job.effort
    if job.measurement.work == "memory":
        train(job, data, Batches(data, [data.largest()]), effort.memory_updates, [])
        answer([peak_gib(torch, job.device)], *packages)
        return
    batches = Batches(data, [])
    wait = synchronizer(torch, job.device)
    meter = Meter(effort.warm_seconds, effort.window_seconds, effort.windows, wait)
    train(job, data, batches, _ENDLESS, [StopWatch(batches, meter)])
    answer(meter.rates, *packages, peak_gib=peak_gib(torch, job.device))


if __name__ == "__main__":
    main()
