"""The bound of `prepare`: SentencePiece encoding the same lines on all cores, from memory into memory.

It is the library that the package encodes with, so it runs in the package's own Python.
"""

from __future__ import annotations

import time

import sentencepiece

from tools.bench.numbered_text import numbered_pairs
from tools.bench.task import Job, answer


def main() -> None:
    """Lines per second, both sides counted."""
    job = Job.from_command_line()
    lines = [line for pair in numbered_pairs(job) for line in pair]
    processor = sentencepiece.SentencePieceProcessor(model_file=str(job.path("tokenizer.model")))
    processor.encode(lines[:1000], num_threads=job.threads)
    started = time.perf_counter()
    processor.encode(lines, num_threads=job.threads)
    answer([len(lines) / (time.perf_counter() - started)], "sentencepiece")


if __name__ == "__main__":
    main()
