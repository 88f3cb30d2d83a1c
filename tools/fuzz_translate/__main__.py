"""Calls `translate` with random cases: most in this process, some through a shell."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.command_line import Parser, count, one_line_errors
from tools.fuzz_translate.inputs import Case, make_case
from tools.fuzz_translate.judge import Outcome, problem
from transformer_mt.errors import EXIT_INTERRUPTED, EXIT_TERMINATED

_RECIPE = """\
run_dir: run
data: {train: train, valid: valid, src_lang: de, tgt_lang: en}
tokenizer: {type: bpe, vocab_size: 330}
model: {d_model: 8, num_heads: 1, d_ff: 8, num_encoder_layers: 1, num_decoder_layers: 1}
training: {max_steps: 1, max_tokens: 256, warmup_steps: 1, save_every: 1, validate_every: 1, metric: nll}
decoding: {beam_size: 2, max_len_a: 0, max_len_b: 3}
"""
_SHOWN = 5
# The shells that run now: they end with this process.
_shells: set[subprocess.Popen[bytes]] = set()


def make_run(folder: Path) -> Path:
    """A run after one update, made by the commands: its translations are nonsense."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abdeiklmnorstu", k=draw.randint(1, 6))) for _ in range(60)]
    for name, lines in (("train", 60), ("valid", 2)):
        text = "".join(" ".join(draw.choices(words, k=draw.randint(2, 9))) + "\n" for _ in range(lines))
        for side in ("de", "en"):
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")
    (folder / "recipe.yaml").write_text(_RECIPE, encoding="utf-8")
    run = folder / "run"
    code, _, stderr = call(["train", str(folder / "recipe.yaml"), f"run_dir={run}"])
    if code:
        raise SystemExit(f"tools/fuzz: the tiny model cannot be trained:\n{stderr}")
    return run


def call(words: list[str], stdin: Path | None = None) -> tuple[int, bytes, str]:
    """`main(argv)` in this process: exit code, stdout, stderr.

    Raises:
        SystemExit: a signal ended the call; it was meant for this command.
    """
    from transformer_mt.cli.main import main

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    before = sys.stdin
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        open(stdin or os.devnull, encoding="utf-8") as stream,
    ):
        sys.stdin = stream
        try:
            code = main(words)
        except SystemExit as stop:  # argparse leaves so
            code = int(stop.code or 0)
        finally:
            sys.stdin = before
        if code in (EXIT_INTERRUPTED, EXIT_TERMINATED):
            raise SystemExit(code)
        out.flush()
        err.flush()
    return code, out.buffer.getvalue(), err.buffer.getvalue().decode()  # type: ignore[attr-defined]


def in_process(case: Case, run: Path, folder: Path) -> Outcome:
    """One case by `main`."""
    source, output = _placed(case, folder)
    words = ["translate", str(run), "--device", "cpu", "--workers", "1", *case.flags]
    words += ["--output", str(output)] if case.to_file else []
    if case.from_stdin:
        return Outcome(*call(words, source), _taken(output))
    return Outcome(*call([*words, str(source)]), _taken(output))


def through_a_shell(case: Case, run: Path, folder: Path) -> Outcome:
    """One case as a user would type it, with a pipe where it reads stdin."""
    source, output = _placed(case, folder)
    words = [sys.executable, "-m", "transformer_mt", "translate", str(run), "--device", "cpu", *case.flags]
    words += ["--output", str(output)] if case.to_file else []
    command = shlex.join(words)
    line = f"cat {source} | {command}" if case.from_stdin else f"{command} {source}"
    with subprocess.Popen(
        ["bash", "-c", line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    ) as shell:
        _shells.add(shell)
        stdout, stderr = shell.communicate()
        _shells.discard(shell)
    return Outcome(shell.returncode, stdout, stderr.decode(), _taken(output))


def _placed(case: Case, folder: Path) -> tuple[Path, Path]:
    source, output = folder / "source", folder / "output"
    source.write_bytes(case.data)
    return source, output


def _taken(output: Path) -> bytes | None:
    """The output file, which is gone after that, as are the leftovers of a stopped call."""
    found = output.read_bytes() if output.exists() else None
    for path in (output, *output.parent.glob("output.*")):
        path.unlink(missing_ok=True)
    return found


def _tried(number: int, seed: int, run: Path, folder: Path, *, shell: bool) -> str | None:
    """A description of what went wrong, with all that is needed to see it again."""
    case = make_case(random.Random(f"{seed} {number}"))
    outcome = (through_a_shell if shell else in_process)(case, run, folder)
    found = problem(case, outcome)
    if found is None:
        return None
    said = outcome.stderr.strip().split("\n")[-1][:300]
    return (
        f"case {number} of seed {seed}{' in a shell' if shell else ''}: {found}\n"
        f"  flags {shlex.join(case.flags)}{' from stdin' if case.from_stdin else ''}"
        f"{' to a file' if case.to_file else ''}\n"
        f"  bytes {case.data!r}\n  stdout {outcome.stdout[:300]!r}\n  stderr {said}"
    )


def _problems(args: object, folder: Path) -> Iterator[str | None]:
    """What every case gave: those of shells run beside those of this process, which then takes a part."""
    inputs, shell, seed = (getattr(args, name) for name in ("inputs", "shell", "seed"))
    run = make_run(folder)

    def beside(number: int) -> str | None:
        with tempfile.TemporaryDirectory() as own:
            return _tried(number, seed, run, Path(own), shell=True)

    with ThreadPoolExecutor(1) as pool:
        waiting = {number: pool.submit(beside, number) for number in range(inputs, inputs + shell)}
        try:
            for number in range(inputs):
                yield _tried(number, seed, run, folder, shell=False)
            for number, one in reversed(waiting.items()):
                yield beside(number) if one.cancel() else one.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for shell in list(_shells):
                if shell.poll() is None:
                    os.killpg(shell.pid, signal.SIGKILL)


def main() -> int:
    """Print what went wrong, and how much was tried."""
    parser = Parser(prog="tools/fuzz", description="Random text and flags through transformer-mt translate.")
    parser.add_argument("--inputs", type=count, default=10_000, metavar="N", help="calls in one process")
    parser.add_argument("--shell", type=int, default=100, metavar="N", help="calls through a shell")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another seed tries other inputs")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    started, wrong = time.perf_counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        for found in _problems(args, Path(folder)):
            if found is not None:
                wrong += 1
                if wrong <= _SHOWN:
                    print(found)
    seconds = time.perf_counter() - started
    print(
        f"{args.inputs} calls in one process and {args.shell} through a shell, {seconds:.0f} s: {wrong} wrong"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    with one_line_errors("tools/fuzz"):
        sys.exit(main())
