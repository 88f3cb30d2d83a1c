"""How fast is it, and in how much memory? Training, by lane; where its time goes; decoding."""

from __future__ import annotations

import random
import time
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from tools.gpu.ids import Corpus, Rows, bleu
from tools.gpu.parts_right import compiler
from tools.gpu.setting import (
    Setting,
    cut,
    lay_out,
    made_up_batches,
    make_model,
    make_updater,
    peak_flops,
    training_work,
)
from transformer_mt.data.batch import Batch
from transformer_mt.decoding.beam_search import beam_search
from transformer_mt.decoding.stepper import Stepper
from transformer_mt.model.build import Model
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.narrow_linear import narrow_linear, with_narrow_products
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from transformer_mt.training.step import Updater
from transformer_mt.training.validation import validation_loss

_VOCAB_SIZE = 32_000
_MAX_TOKENS = 32_768
_WARM_UP = 3


def speed_base(setting: Setting) -> None:
    """Updates of Transformer-base: padded and packed, at the budget of a card and at a small one."""
    for max_tokens in (_MAX_TOKENS, 4096):
        for layout in ("padded", "packed"):
            setting.report(**{f"{layout}, {max_tokens} tokens": _speed(setting, "base", layout, max_tokens)})


def speed_big(setting: Setting) -> None:
    """Updates of Transformer-big."""
    for layout in ("padded", "packed"):
        setting.report(**{f"{layout}, {_MAX_TOKENS} tokens": _speed(setting, "big", layout, _MAX_TOKENS)})


def compiled_base(setting: Setting) -> None:
    """Updates of Transformer-base, its layers compiled."""
    for max_tokens in (_MAX_TOKENS, 4096):
        name = f"packed, compiled, {max_tokens} tokens"
        setting.report(**{name: _speed(setting, "base", "packed, compiled", max_tokens)})


def compiled_big(setting: Setting) -> None:
    """Updates of Transformer-big, its layers compiled."""
    name = f"packed, compiled, {_MAX_TOKENS} tokens"
    setting.report(**{name: _speed(setting, "big", "packed, compiled", _MAX_TOKENS)})


def memory(setting: Setting) -> None:
    """Peak memory and speed of Transformer-big with and without gradient checkpointing."""
    for layout in ("packed", "packed, checkpointing"):
        setting.report(**{layout: _speed(setting, "big", layout, _MAX_TOKENS)})


def _speed(setting: Setting, size: str, layout: str, max_tokens: int) -> dict[str, Any]:
    """Whole updates in bf16: forward, backward, clipping, AdamW, copies to the card."""
    vocab_size = 97 if setting.quick else _VOCAB_SIZE
    batches = made_up_batches(12, 128 if setting.quick else max_tokens, vocab_size)
    model = make_model(
        "toy" if setting.quick else size, vocab_size, dropout=0.1, checkpointing="checkpointing" in layout
    ).to(setting.device)
    if layout == "padded" or setting.quick:
        lay_out(model, packed=layout != "padded")
    if "compiled" in layout:
        model.compile_layers(backend=compiler(setting))
    on_card = setting.device.type == "cuda"
    if on_card:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    updater = make_updater(model, setting.device, "bf16")
    warm_up = setting.seconds(lambda: [updater.run(1, [batch]) for batch in batches[:_WARM_UP]])
    measured = _timed_updates(setting, updater, batches)
    rate = measured["work"] / measured["seconds"]
    peak = peak_flops(torch.cuda.get_device_name()) if on_card else None
    return {
        "tokens_per_second": measured["tokens"] / measured["seconds"],
        "tflops": rate / 1e12,
        "mfu": rate / peak if peak else None,
        "ms_per_update": 1000 * measured["seconds"] / measured["updates"],
        "padding": 1.0 - measured["real"] / measured["places"],
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if on_card else None,
        "warm_up_seconds": warm_up,
    }


def _timed_updates(setting: Setting, updater: Updater, batches: list[Batch]) -> dict[str, float]:
    """Updates of one micro-batch each, for a few seconds."""
    window = 0.05 if setting.quick else 4.0
    totals = dict.fromkeys(("tokens", "work", "updates", "real", "places"), 0.0)
    model = updater.loss_module.model
    assert isinstance(model, Transformer)
    setting.wait()
    started, step = time.perf_counter(), 1
    while time.perf_counter() - started < window:
        for batch in batches:
            step += 1
            update = updater.run(step, [batch])
            totals["tokens"] += update.num_tokens
            totals["work"] += training_work(model, batch.num_src_tokens, batch.num_tokens)
            totals["updates"] += 1
            totals["real"] += update.num_tokens + update.num_src_tokens
            totals["places"] += update.padded_tokens
    setting.wait()
    return {**totals, "seconds": time.perf_counter() - started}


def profile(setting: Setting) -> None:
    """The operations that take most of a packed update of Transformer-base, and a batch's way to the card."""
    vocab_size = 97 if setting.quick else _VOCAB_SIZE
    batches = made_up_batches(4, 128 if setting.quick else _MAX_TOKENS, vocab_size)
    model = make_model("toy" if setting.quick else "base", vocab_size, dropout=0.1).to(setting.device)
    updater = make_updater(model, setting.device, "bf16")
    setting.report(
        pack_ms=1000 * setting.seconds(batches[0].packed, 5),
        copy_ms=1000 * setting.seconds(lambda: batches[0].to(setting.device), 5),
    )
    for step, batch in enumerate(batches[:_WARM_UP], start=1):
        updater.run(step, [batch])
    on_card = setting.device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_card else [])]
    with torch.profiler.profile(activities=activities) as trace:
        updater.run(9, batches[:1])
        setting.wait()
    kind = "self_device_time_total" if on_card else "self_cpu_time_total"
    rows = sorted(trace.key_averages(), key=lambda row: -getattr(row, kind))
    setting.report(
        ms={row.key[:90]: [round(getattr(row, kind) / 1000, 3), row.count] for row in rows[:25]},
        total_ms=sum(getattr(row, kind) for row in rows) / 1000,
        host_ms=sum(row.self_cpu_time_total for row in rows) / 1000,
    )


def decode(setting: Setting) -> None:
    """Sentences per second of Transformer-base without training, 15 tokens forced, beam 5."""
    corpus = setting.corpus()
    vocab_size = corpus.tokenizer.vocab_size
    sources = sorted(corpus.src["test2016"], key=len)[: 8 if setting.quick else 512]
    model = make_model("toy" if setting.quick else "base", vocab_size, dropout=0.0)
    model.to(setting.device).eval()
    forced = 3 if setting.quick else 15
    for precision in ("fp32", "bf16"):
        stepper = make_stepper(model, precision, min_length=forced)
        for batch_size in (64, 256):

            def work(stepper: Stepper = stepper, batch_size: int = batch_size) -> None:
                translate(setting, stepper, sources, batch_size, forced=forced)

            setting.seconds(work)
            rate = len(sources) / setting.seconds(work)
            setting.report(**{f"{precision}, batch {batch_size}": {"sentences_per_second": rate}})


def make_stepper(model: Model, precision: str, min_length: int = 1) -> Stepper:
    """What `translate` decodes with in fp32 or bf16; what the weights become later, bf16 does not see."""
    rough_output = None
    if precision == "bf16":
        model = with_narrow_products(model, torch.bfloat16, model.output_weight)
        rough_output = narrow_linear(model.output_weight, None, torch.bfloat16)
    return Stepper(
        [model],
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        banned=(PAD_ID, UNK_ID, BOS_ID),
        min_length=min_length,
        rough_output=rough_output,
    )


def translate(
    setting: Setting, stepper: Stepper, sources: Rows, batch_size: int, forced: int | None = None
) -> list[list[int]]:
    """Beam 5, length penalty 1; translations end at `forced` tokens, or else at the default limit."""
    order = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
    results: list[list[int]] = [[] for _ in sources]
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        longest = len(sources[batch[0]])
        ids = torch.full((len(batch), longest), PAD_ID)
        for row, index in enumerate(batch):
            ids[row, : len(sources[index])] = torch.from_numpy(sources[index])
        src_ids = ids.to(setting.device)
        with torch.inference_mode():
            found = beam_search(
                stepper,
                src_ids,
                padding_mask(src_ids, PAD_ID),
                beam_size=5,
                num_finished=1,
                length_penalty=1.0,
                limits=[forced or int(1.5 * (len(sources[index]) - 1)) + 20 for index in batch],
            )
        for index, hypotheses in zip(batch, found, strict=True):
            results[index] = hypotheses[0].token_ids
    return results


def train(setting: Setting) -> None:
    """The Multi30k recipe (small, bf16) as far as its time reaches, then BLEU of test2016."""
    corpus = setting.corpus()
    steps, budget = (4, 5.0) if setting.quick else (4000, 100.0)
    size, max_tokens = ("toy", 256) if setting.quick else ("small", 2048)
    model = make_model(size, corpus.tokenizer.vocab_size, dropout=0.3).to(setting.device)
    updater = make_updater(
        model,
        setting.device,
        "bf16",
        ema=0.999,
        learning_rate=2e-3,
        schedule="cosine",
        warmup_steps=600 if not setting.quick else 2,
        max_steps=steps,
    )
    setting.report(**_train(updater, corpus, max_tokens, steps, budget))
    assert updater.ema is not None
    with updater.ema.swapped():
        valid = cut(corpus.src["valid"], corpus.tgt["valid"], max_tokens)
        loss = validation_loss(updater.loss_module, valid, 1, "bf16", setting.device)
        model.eval()
        setting.report(valid_nll=loss.nll)
        _translations(setting, model, corpus)


def _train(updater: Updater, corpus: Corpus, max_tokens: int, steps: int, budget: float) -> dict[str, Any]:
    """Train; when the first hundred updates say that time is short, the schedule ends earlier."""
    started, tokens, skipped = time.perf_counter(), 0, 0
    stream: list[Batch] = []
    epoch = step = 0
    while step < updater.config.max_steps:
        if not stream:
            epoch += 1
            stream = cut(corpus.src["train"], corpus.tgt["train"], max_tokens, epoch=epoch)
        step += 1
        update = updater.run(step, [stream.pop()])
        tokens += update.num_tokens
        skipped += not update.applied
        if step == 100:
            per_update = (time.perf_counter() - started) / step
            updater.config.max_steps = min(steps, int(budget / per_update))
    seconds = time.perf_counter() - started
    return {
        "updates": step,
        "epochs": epoch,
        "skipped": skipped,
        "seconds": seconds,
        "tokens_per_second": tokens / seconds,
        "last_loss_per_token": update.loss_sum / update.num_tokens,
    }


def _translations(setting: Setting, model: Transformer, corpus: Corpus) -> None:
    """BLEU, speed and agreement of fp32 and bf16, batches of 64 and of 256."""
    sources = corpus.src["test2016"][: 10 if setting.quick else None]
    by_lane: dict[str, list[list[int]]] = {}
    for precision in ("fp32", "bf16"):
        stepper = make_stepper(model, precision)
        for batch_size in (64, 256):
            name = f"{precision}, batch {batch_size}"
            translate(setting, stepper, random.Random(1).sample(sources, min(len(sources), 64)), 64)
            setting.wait()
            started = time.perf_counter()
            by_lane[name] = translate(setting, stepper, sources, batch_size)
            seconds = time.perf_counter() - started
            same = sum(a == b for a, b in zip(by_lane[name], by_lane["fp32, batch 64"], strict=True))
            facts = {"sentences_per_second": len(sources) / seconds, "same_as_first": same / len(sources)}
            setting.report(**{name: facts})
    for name in ("fp32, batch 64", "bf16, batch 64"):
        try:
            score, signature = bleu(corpus.tokenizer, by_lane[name], corpus.references[: len(sources)])
            setting.report(**{f"BLEU, {name}": score, "signature": signature})
        except ImportError:
            setting.report(**{f"hypotheses, {name}": by_lane[name]})
