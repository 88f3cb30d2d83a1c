"""The package's commands as a user waits for them: the first line of `translate`, and all of `prepare`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.bench.numbered_text import numbered_pairs
from tools.bench.task import FORCING_FLAGS, Job, answer
from transformer_mt.recipe import load_recipe
from transformer_mt.text.lines import read_lines, write_lines

_COMMAND = [sys.executable, "-m", "transformer_mt"]


def main() -> None:
    """Do the work of the job."""
    job = Job.from_command_line()
    if job.measurement.work == "start":
        _seconds_to_first_line(job)  # reads everything into the file cache
        answer([_seconds_to_first_line(job) for _ in range(job.effort.windows)], "torch")
    else:
        answer([_prepare(job)], "torch", "sentencepiece")


def _seconds_to_first_line(job: Job) -> float:
    """From the start of the process until a line that is already waiting for it has been answered."""
    run_dir = str(job.path(job.measurement.size))
    command = [*_COMMAND, "translate", run_dir, f"--device={job.device}", *FORCING_FLAGS]
    started = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(next(iter(read_lines(str(job.path("test.src"))))) + "\n")
        child.stdin.flush()
        child.stdout.readline()
        seconds = time.perf_counter() - started
        child.stdin.close()
    if child.returncode != 0:
        raise SystemExit(f"translate ended with exit code {child.returncode}")
    return seconds


def _prepare(job: Job) -> float:
    """Lines of both sides per second: reading, checking, encoding, writing, and the start of the process."""
    recipe = str(job.path("S.yaml"))
    data, pairs = load_recipe(recipe, []).data, numbered_pairs(job)
    with tempfile.TemporaryDirectory(dir=job.folder) as folder:
        for side, language in enumerate((data.src_lang, data.tgt_lang)):
            write_lines(str(Path(folder) / f"train.{language}"), (pair[side] for pair in pairs))
        overrides = [
            f"data.train={folder}/train",
            f"data.prepared_dir={folder}/prepared",
            f"tokenizer.from={job.path('tokenizer.model')}",
        ]
        started = time.perf_counter()
        subprocess.run([*_COMMAND, "prepare", recipe, *overrides], stdout=subprocess.DEVNULL, check=True)
        return 2 * len(pairs) / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
