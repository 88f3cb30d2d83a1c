"""The peer CTranslate2: one worker a core, weights drawn at random into its own specification of a model."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import LayerNormSpec, LinearSpec

from tools.bench.exported import Exported
from tools.bench.task import BATCH_SENTENCES, BOS_ID, EOS_ID, FORCED_TOKENS, SIZES, UNK_ID, Job, Size, answer

_COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}


def random_model(size: Size, pieces: list[str]) -> TransformerSpec:
    """A pre-norm model with one matrix for both embeddings and the projection; positions are sinusoids."""
    draw = np.random.default_rng(1)
    width, inner = size.d_model, size.d_ff

    def matrix(rows: int, columns: int) -> np.ndarray:
        return draw.normal(scale=columns**-0.5, size=(rows, columns)).astype(np.float32)

    def fill_linear(spec: LinearSpec, rows: int, columns: int) -> None:
        spec.weight, spec.bias = matrix(rows, columns), np.zeros(rows, dtype=np.float32)

    def fill_norm(spec: LayerNormSpec) -> None:
        spec.gamma, spec.beta = np.ones(width, dtype=np.float32), np.zeros(width, dtype=np.float32)

    model = TransformerSpec.from_config(size.num_layers, size.num_heads, pre_norm=True)
    embeddings = matrix(len(pieces), width)
    model.encoder.embeddings[0].weight = embeddings
    model.decoder.embeddings.weight = model.decoder.projection.weight = embeddings
    for side in (model.encoder, model.decoder):
        fill_norm(side.layer_norm)
        for layer in side.layer:
            # Fused projections: queries, keys and values at once, or keys and values of the source.
            widths: dict[str, tuple[int, ...]] = {"self_attention": (3 * width, width)}
            if side is model.decoder:
                widths["attention"] = (width, 2 * width, width)
            for name, rows in widths.items():
                attention = getattr(layer, name)
                fill_norm(attention.layer_norm)
                for linear, count in zip(attention.linear, rows, strict=True):
                    fill_linear(linear, count, width)
            fill_norm(layer.ffn.layer_norm)
            fill_linear(layer.ffn.linear_0, inner, width)
            fill_linear(layer.ffn.linear_1, width, inner)
    model.register_source_vocabulary(pieces)
    model.register_target_vocabulary(pieces)
    config = model.config
    config.unk_token, config.bos_token, config.eos_token = pieces[UNK_ID], pieces[BOS_ID], pieces[EOS_ID]
    config.decoder_start_token = pieces[BOS_ID]
    config.add_source_eos = False  # the sentences end in eos already
    model.validate()
    model.optimize()
    return model


def main() -> None:
    """Sentences per second of every pass; the translator sorts by length itself."""
    job = Job.from_command_line()
    asked, effort = job.measurement, job.effort
    data = Exported(job.path(""))
    sentences = [[data.pieces[token] for token in ids] for ids in data.test]
    sentences = sentences[: effort.sentences[asked.size]]
    with tempfile.TemporaryDirectory() as folder:
        random_model(SIZES[asked.size], data.pieces).save(str(Path(folder)))
        translator = ctranslate2.Translator(
            folder,
            device=job.device.partition(":")[0],
            compute_type=_COMPUTE_TYPES[asked.precision],
            inter_threads=job.threads,
            intra_threads=1,
        )

    def translate(sources: list[list[str]]) -> list[ctranslate2.TranslationResult]:
        found: list[ctranslate2.TranslationResult] = translator.translate_batch(
            sources,
            beam_size=asked.beam,
            max_batch_size=BATCH_SENTENCES,
            batch_type="examples",
            min_decoding_length=FORCED_TOKENS,
            max_decoding_length=FORCED_TOKENS,
        )
        return found

    lengths = {len(found.hypotheses[0]) for found in translate(sentences[: 2 * BATCH_SENTENCES])}
    if lengths != {FORCED_TOKENS}:
        raise SystemExit(f"translations have {sorted(lengths)} tokens, not {FORCED_TOKENS}")
    rates = []
    for _ in range(effort.windows):
        started = time.perf_counter()
        translate(sentences)
        rates.append(len(sentences) / (time.perf_counter() - started))
    answer(rates, "ctranslate2", compute_type=translator.compute_type)


if __name__ == "__main__":
    main()
