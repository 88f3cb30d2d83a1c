"""Makes the order of one epoch, then builds every batch of it; no model. Prints JSON: seconds and bytes."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from transformer_mt.cli.build_trainer import open_stream
from transformer_mt.data.prepare import prepare
from transformer_mt.recipe import load_recipe


def _anonymous() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().split("\n") if line)
    return int(fields["RssAnon"].split()[0]) * 1024


def main() -> None:
    """Measure."""
    recipe = load_recipe(sys.argv[1])
    prepared = prepare(recipe, log=lambda message: None)
    before, started = _anonymous(), time.perf_counter()
    stream = open_stream(recipe, prepared)(1, 0)
    order_seconds, order_bytes = time.perf_counter() - started, _anonymous() - before
    number = len(stream.order())
    started = time.perf_counter()
    for _ in range(number):
        stream.take(1)
    pass_seconds = time.perf_counter() - started
    print(
        json.dumps(
            {
                "order_seconds": order_seconds,
                "order_bytes": order_bytes,
                "pass_seconds": pass_seconds,
            }
        )
    )


if __name__ == "__main__":
    main()
