"""The command line of `tools/gpu_check`: runs the parts in a process apart, each within its time.

A part that hangs or breaks the process loses nothing but itself: what was found so far is written after every
message, and the next part gets a new process.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tools.command_line import Parser, count, one_line_errors, writable
from transformer_mt.json_file import json_text

PARTS = {
    "machine": 40.0,
    "kernels": 40.0,
    "lanes": 90.0,
    "repeats": 60.0,
    "speed_base": 60.0,
    "train": 170.0,
    "decode": 60.0,
    "lstm": 30.0,
    "memory": 50.0,
    "profile": 40.0,
    "speed_big": 50.0,
    "compiled_base": 120.0,
    "compiled_big": 120.0,
}
"""Name -> most seconds, in the order they run: what matters most comes first."""
_TOTAL = 470.0
_NEEDED = ("torch", "numpy", "sentencepiece")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, 1 where a part failed, 2 where nothing could be run.

    Raises:
        SystemExit: with 2 for the command line, 3 for text and ids.
    """
    words = Parser(prog="tools/gpu_check", allow_abbrev=False)
    words.add_argument("--make-ids", nargs=2, metavar=("FILE", "FOLDER"), help="write the file of ids, stop")
    words.add_argument(
        "--languages",
        type=_languages,
        default=("de", "en"),
        metavar="SRC-TGT",
        help="of --make-ids (default: de-en)",
    )
    words.add_argument("--vocab-size", type=count, default=8000, help="of --make-ids (default: 8000)")
    words.add_argument("--ids", help="the file of ids; without it `train` and `decode` are left out")
    words.add_argument("--only", action="append", choices=PARTS, help="this part; repeatable")
    words.add_argument("--device", default="cuda", help="cuda or cpu (default: cuda)")
    words.add_argument("--quick", action="store_true", help="everything at toy size: what the tests run")
    words.add_argument("--seconds", type=float, default=_TOTAL, help="most time in all (default: 470)")
    words.add_argument("--json", default="gpu_check.json", help="result file (default: gpu_check.json)")
    args = words.parse_args(arguments)
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"tools/gpu_check: this Python lacks {', '.join(missing)}: {sys.executable}", file=sys.stderr)
        return 2
    with one_line_errors(words.prog):
        return _make_ids(args) if args.make_ids else _check(args)


def _languages(text: str) -> tuple[str, str]:
    src_lang, _, tgt_lang = text.partition("-")
    if not src_lang or not tgt_lang or "-" in tgt_lang:
        raise argparse.ArgumentTypeError(f"{text}: must be two languages and a hyphen, such as de-en")
    return src_lang, tgt_lang


def _make_ids(args: argparse.Namespace) -> int:
    from tools.gpu.ids import make_ids

    path = writable(Path(args.make_ids[0]), "--make-ids")
    make_ids(path, Path(args.make_ids[1]), *args.languages, args.vocab_size)
    return 0


def _check(args: argparse.Namespace) -> int:
    writable(Path(args.json), "--json")
    parts = [name for name in PARTS if not args.only or name in args.only]
    if args.ids is None:
        parts = [name for name in parts if name not in ("train", "decode")]
    else:
        from tools.gpu.ids import load_ids

        load_ids(Path(args.ids))  # a wrong file must not show after minutes of a card's time
    results = Run(args).all(parts)
    print(table(results))
    return int(any("error" in result for result in results.values()))


class Run:
    """One call: the results so far, and the process at work."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.ends = time.monotonic() + args.seconds
        self.results: dict[str, dict[str, Any]] = {}
        self._worker: tuple[BaseProcess, Connection] | None = None

    def all(self, parts: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Run the parts and return what each found."""
        try:
            for name in parts:
                started = time.monotonic()
                self.results[name] = {}
                print(f"{name} …", file=sys.stderr, flush=True)
                # Toy sizes run on machines that others use too: only the whole has a limit there.
                limit = self.args.seconds if self.args.quick else PARTS[name]
                error = self._part(name, min(started + limit, self.ends))
                if error:
                    self.results[name]["error"] = error
                    print(error.strip().splitlines()[-1], file=sys.stderr, flush=True)
                self.results[name]["seconds_in_all"] = round(time.monotonic() - started, 1)
                self._write()
        finally:
            self._stop()
        return self.results

    def _part(self, name: str, ends: float) -> str | None:
        """The text of what went wrong, or None."""
        if time.monotonic() > self.ends - 5.0:
            return "not run: no time was left"
        process, connection = self._start()
        try:
            connection.send(name)
            while True:
                if not connection.poll(max(ends - time.monotonic(), 0.0)):
                    self._stop()
                    return "stopped: its time was over"
                kind, content = connection.recv()
                if kind == "done":
                    break
                self.results[name] |= content
                self._write()
        except (EOFError, OSError):
            process.join(5)
            self._stop()
            return f"the process ended with code {process.exitcode}"
        error: str | None = content
        if error:
            self._stop()  # an error on a card can leave it unusable for this process
        return error

    def _start(self) -> tuple[BaseProcess, Connection]:
        if self._worker is None:
            from tools.gpu.worker import work

            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            arguments = (theirs, self.args.device, self.args.quick, self.args.ids or "")
            process = context.Process(target=work, args=arguments)
            process.start()
            theirs.close()
            self._worker = process, ours
        return self._worker

    def _stop(self) -> None:
        if self._worker is not None:
            process, connection = self._worker
            connection.close()
            process.join(0.2)
            if process.is_alive():
                process.kill()
            process.join()
            self._worker = None

    def _write(self) -> None:
        path = Path(self.args.json)
        scratch = path.with_name(path.name + ".new")
        scratch.write_text(json_text(self.results, indent=1), encoding="utf-8")
        scratch.replace(path)


def table(results: dict[str, dict[str, Any]]) -> str:
    """Everything found, a line for each fact."""
    lines = []
    for part, facts in results.items():
        lines.append(f"{part}  ({facts.get('seconds_in_all', 0.0)} s)")
        for name, fact in facts.items():
            if name == "error":
                lines.append(f"  ERROR {str(fact).strip().splitlines()[-1]}")
            elif name != "seconds_in_all" and not name.startswith("hypotheses"):
                lines.append(f"  {name:<42} {_shown(fact)}")
    return "\n".join(lines)


def _shown(fact: Any) -> str:
    if isinstance(fact, bool) or fact is None:
        return str(fact)
    if isinstance(fact, float):
        return f"{fact:,.0f}" if abs(fact) >= 1000 else f"{fact:.4g}"
    if isinstance(fact, dict):
        return "  ".join(f"{name}={_shown(value)}" for name, value in fact.items())
    return str(fact)


if __name__ == "__main__":
    sys.exit(main())
