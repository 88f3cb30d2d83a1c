"""What the files of a run directory tell about its training: cost, learning curve, time to a given BLEU.

And what makes the costs of two runs incomparable. Reads run.json and metrics.jsonl only: no weights, no text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformer_mt.config import Recipe
from transformer_mt.errors import CheckpointError
from transformer_mt.evaluation.comparison import Cost, CurvePoint, System, TimeToBleu
from transformer_mt.json_file import read_json

_STEPS = (1, 2, 5, 10, 20)
_MOST_LEVELS = 10


def read_cost(run_dir: Path, recipe: Recipe, step: int | None) -> Cost:
    """What training has cost, or has cost so far.

    Args:
        recipe: of the checkpoint.
        step: of the checkpoint that translates.

    Raises:
        CheckpointError: run.json is damaged.
    """
    info = read_json(run_dir / "run.json") or {}
    records = read_records(run_dir)
    training = [record for record in records if record.get("kind") == "train"]
    closed = info.get("cost")
    last: dict[str, Any] = next((one for one in reversed(records) if one.get("kind") == "valid"), {})
    cost = closed if isinstance(closed, dict) else {**last, "steps": last.get("step")}
    # The peak in run.json is that of the last process; a run that was continued had others before it.
    peaks = _numbers([cost, *training], "peak_gib")
    return Cost(
        finished=closed is not None,
        parameters=_whole(info.get("parameters")),
        updates=_whole(cost.get("steps")),
        target_tokens=_whole(cost.get("target_tokens")),
        seconds=_number(cost.get("seconds")),
        tokens_per_second=_rate(training),
        peak_gib=max(peaks, default=None),
        precision=recipe.training.precision,
        machine=_text(info.get("machine")),
        threads=_whole(info.get("threads")),
        torch=_text(info.get("torch")),
        step=step,
    )


def read_curve(run_dir: Path) -> tuple[CurvePoint, ...]:
    """The validations of a run, in their order."""
    return tuple(
        CurvePoint(
            step=int(record["step"]),
            seconds=_number(record.get("seconds")),
            target_tokens=_whole(record.get("target_tokens")),
            bleu=_number(record.get("bleu")),
            nll=_number(record.get("nll")),
        )
        for record in read_records(run_dir)
        if record.get("kind") == "valid"
    )


def read_records(run_dir: Path) -> list[dict[str, Any]]:
    """metrics.jsonl, without a last line that training is still writing.

    Raises:
        CheckpointError: a line of it is damaged.
    """
    path = run_dir / "metrics.jsonl"
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            records.append({**record, "step": int(record["step"])})
        except (ValueError, KeyError, TypeError):
            raise CheckpointError(f"{path}:{number}: is no record of training; remove the line") from None
    return records


def time_to_bleu(systems: Sequence[System]) -> tuple[TimeToBleu, ...]:
    """When the first seed of each system was first validated with at least the BLEU of some round levels.

    The levels are multiples of 1, 2, 5, 10 or 20, whichever gives at most ten of them, up to the best BLEU
    that any system reached.
    """
    curves = [system.curve[0] if system.curve else () for system in systems]
    best = max((point.bleu for curve in curves for point in curve if point.bleu is not None), default=0.0)
    step = next((step for step in _STEPS if best / step < _MOST_LEVELS + 1), _STEPS[-1])
    levels = [float(level) for level in range(step, math.floor(best) + 1, step)]
    return tuple(TimeToBleu(level, tuple(_first(curve, level) for curve in curves)) for level in levels)


def cost_warnings(systems: Sequence[System]) -> list[str]:
    """What a reader should know before comparing costs, a sentence each."""
    found = [
        f"{source}: training has not come to its end; its costs are those until its last validation"
        for system in systems
        for source, cost in zip(system.sources, system.cost, strict=bool(system.cost))
        if not cost.finished
    ]
    aspects: list[tuple[str, str, Callable[[Cost], object]]] = [
        ("on different machines", "times, rates and memory", lambda cost: cost.machine),
        ("with different numbers of threads", "times and rates", lambda cost: cost.threads),
        ("in different precision", "times, rates and memory", lambda cost: cost.precision),
        ("by different versions of torch", "times and rates", lambda cost: cost.torch),
    ]
    for how, what, value in aspects:
        if told := differing([(one.name, [value(cost) for cost in one.cost]) for one in systems]):
            found.append(f"trained {how}, so {what} are not comparable: {told}")
    return found


def differing(values: Sequence[tuple[str, Sequence[object]]]) -> str:
    """ "A 2; B 4" where known values differ, otherwise "".

    Args:
        values: name of a system -> the value of each of its seeds; None is not known.
    """
    known = [(name, [one for one in several if one is not None]) for name, several in values]
    if len({str(one) for _, several in known for one in several}) < 2:
        return ""
    return "; ".join(
        f"{name} {' and '.join(dict.fromkeys(map(str, several)))}" for name, several in known if several
    )


def _first(curve: Sequence[CurvePoint], level: float) -> float | None:
    return next((point.seconds for point in curve if point.bleu is not None and point.bleu >= level), None)


def _rate(training: Sequence[dict[str, Any]]) -> float | None:
    """Target tokens per second over all updates, validation and the like not counted."""
    rows = [
        (tokens, rate)
        for record in training
        if (tokens := _number(record.get("tokens"))) and (rate := _number(record.get("tokens_per_second")))
    ]
    seconds = sum(tokens / rate for tokens, rate in rows)
    return sum(tokens for tokens, _ in rows) / seconds if seconds else None


def _numbers(records: Sequence[dict[str, Any]], key: str) -> list[float]:
    return [value for record in records if (value := _number(record.get(key))) is not None]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _whole(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
