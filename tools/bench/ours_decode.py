"""The package translating: what `translate` builds, given all lines at once."""

from __future__ import annotations

import argparse
import time

from tools.bench.task import BATCH_SENTENCES, FORCED_TOKENS, FORCING_FLAGS, Job, answer
from transformer_mt.cli.model_flags import load_translator
from transformer_mt.cli.translate import add_arguments
from transformer_mt.text.lines import read_lines


def main() -> None:
    """Sentences per second of every pass."""
    job = Job.from_command_line()
    asked, effort = job.measurement, job.effort
    flags = [
        f"--device={job.device}",
        f"--precision={asked.precision}",
        f"--beam-size={asked.beam}",
        f"--batch-size={BATCH_SENTENCES}",
        *FORCING_FLAGS,
    ]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    translator = load_translator(parser.parse_args([str(job.path(asked.size)), *flags]))
    lines = list(read_lines(str(job.path("test.src"))))[: effort.sentences[asked.size]]
    lengths = {len(found.ids) for found in translator.translate(lines[: 2 * BATCH_SENTENCES])}
    if lengths != {FORCED_TOKENS}:
        raise SystemExit(f"translations have {sorted(lengths)} tokens, not {FORCED_TOKENS}")
    rates = []
    for _ in range(effort.windows):
        started = time.perf_counter()
        translator.translate(lines)
        rates.append(len(lines) / (time.perf_counter() - started))
    answer(rates, "torch")


if __name__ == "__main__":
    main()
