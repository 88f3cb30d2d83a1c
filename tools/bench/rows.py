"""The table of targets: what is measured against what, and how much is wanted."""

from __future__ import annotations

from dataclasses import dataclass

from tools.bench.task import Effort, Measurement
from transformer_mt.errors import ConfigError

QUICK = Effort(
    warm_seconds=3.0,
    window_seconds=5.0,
    windows=1,
    sentences={"S": 256, "B": 128},
    memory_updates=2,
    prepared_pairs=145_000,
)
FULL = Effort(
    warm_seconds=10.0,
    window_seconds=16.0,
    windows=3,
    sentences={"S": 1000, "B": 1000},
    memory_updates=12,
    prepared_pairs=580_000,
)
QUICK_PAIRS, FULL_PAIRS = 2, 3


@dataclass(frozen=True)
class Row:
    """One line of the table. Its ratio is ours / peer; without peers it is what ours measured, in `unit`.

    peers: the best of them counts, pair by pair. at_least and aim: bounds of the ratio; upper ones where
    `smaller_is_better`.
    """

    name: str
    what: str
    unit: str
    ours: Measurement
    peers: tuple[Measurement, ...] = ()
    at_least: float | None = None
    aim: float | None = None
    smaller_is_better: bool = False


def _train(size: str, precision: str, peers: tuple[str, ...], at_least: float, aim: float) -> Row:
    return Row(
        f"train-{size}-{precision}",
        f"training {size}, {precision}, real text",
        "target tokens/s",
        Measurement("ours", "train", size, precision),
        tuple(Measurement(peer, "train", size, precision) for peer in peers),
        at_least,
        aim,
    )


def _decode(
    size: str, beam: int, precision: str, peer: tuple[str, str], bounds: tuple[float | None, float]
) -> Row:
    (system, arithmetic), (at_least, aim) = peer, bounds
    name = f"decode-{size}-beam{beam}-{precision}"
    return Row(
        name if arithmetic != "int8" else f"{name}-int8",
        f"decoding {size}, beam {beam}, 15 tokens forced",
        "sentences/s",
        Measurement("ours", "decode", size, precision, beam),
        (Measurement(system, "decode", size, arithmetic, beam),),
        at_least,
        aim,
    )


_CT2_FP32, _CT2_INT8, _GENERATE = ("ctranslate2", "fp32"), ("ctranslate2", "int8"), ("transformers", "fp32")

ROWS = (
    _train("S", "bf16", ("plain",), 2.5, 3.5),
    _train("B", "bf16", ("plain",), 2.5, 3.5),
    _train("S", "fp32", ("plain", "transformers"), 1.4, 1.8),
    _train("lstm", "bf16", ("plain",), 1.5, 2.0),
    _train("lstm", "fp32", ("plain",), 1.5, 2.0),
    _decode("S", 5, "bf16", _CT2_FP32, (1.0, 1.3)),
    _decode("S", 5, "bf16", _CT2_INT8, (None, 1.0)),
    _decode("B", 5, "bf16", _CT2_FP32, (1.4, 2.0)),
    _decode("S", 5, "fp32", _GENERATE, (2.0, 3.0)),
    _decode("B", 5, "fp32", _GENERATE, (2.0, 3.0)),
    _decode("S", 1, "bf16", _CT2_FP32, (0.8, 1.2)),
    _decode("B", 1, "bf16", _CT2_FP32, (0.8, 1.2)),
    Row(
        "memory-B",
        "peak memory, training B, equal batches",
        "GiB",
        Measurement("ours", "memory", "B", "bf16"),
        (Measurement("transformers", "memory", "B", "bf16"),),
        0.6,
        0.4,
        smaller_is_better=True,
    ),
    Row(
        "length-growth",
        "time per token at length 512 over length 16, training S at equal tokens",
        "times",
        Measurement("ours", "lengths", "S", "bf16"),
        at_least=1.6,
        smaller_is_better=True,
    ),
    Row(
        "translate-start",
        "start of `translate` to the first output line, S, one line piped",
        "s",
        Measurement("ours", "start", "S", "fp32"),
        at_least=3.0,
        aim=1.5,
        smaller_is_better=True,
    ),
    Row(
        "prepare",
        "`prepare` with a given tokenizer, all cores, against encoding alone",
        "lines/s",
        Measurement("ours", "prepare"),
        (Measurement("sentencepiece", "prepare"),),
        at_least=0.7,
    ),
)


def choose(names: list[str]) -> list[Row]:
    """The rows of these names, all where none is named.

    Raises:
        ConfigError: no such row.
    """
    known = {row.name: row for row in ROWS}
    for name in names:
        if name not in known:
            raise ConfigError(f"--only {name}: no such row; --list shows them")
    return [known[name] for name in names] if names else list(ROWS)
