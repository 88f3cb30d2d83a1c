"""The command line of `tools/benchmark`: parses, measures, prints."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from tools.bench import saved_figures
from tools.bench.machine import installed, machine_facts, one_line
from tools.bench.measure import Measured, Setting, contests, missing_packages, run_by_turns
from tools.bench.report import Outcome, as_json, outcome, table
from tools.bench.rows import FULL, FULL_PAIRS, QUICK, QUICK_PAIRS, choose
from tools.bench.task import Measurement
from tools.bench.workspace import ROOT, build, find_corpus
from tools.command_line import Parser, count, one_line_errors, writable
from transformer_mt.json_file import json_text


def parser() -> Parser:
    """The words of the command."""
    words = Parser(
        prog="tools/benchmark",
        allow_abbrev=False,
        description="This package against its peers, by turns on this machine: a table of ratios, and JSON.",
    )
    words.add_argument("--list", action="store_true", help="name the rows, measure nothing")
    words.add_argument("--only", action="append", default=[], metavar="ROW", help="this row; repeatable")
    words.add_argument("--quick", action="store_true", help="short windows: about ten minutes on two cores")
    words.add_argument("--pairs", type=count, metavar="N", help="runs of each side (default: 3, quick: 2)")
    words.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    words.add_argument("--threads", type=count, metavar="N", help="of ours and peers (default: all cores)")
    words.add_argument(
        "--data",
        metavar="FOLDER",
        help="holds train.de, train.en, test2016.de and test2016.en, plain, .xz or .gz "
        "(default: ../shared/data/multi30k beside the clone, else the bundled corpus)",
    )
    words.add_argument(
        "--peer-python", default=sys.executable, metavar="PATH", help="the Python that has the peers"
    )
    words.add_argument("--json", metavar="FILE", help="default: runs/benchmark/result.json in the clone")
    words.add_argument("--save-figures", action="store_true", help="keep what the peers did, for other calls")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns 0, or 1 where a measurement of ours failed.

    Raises:
        SystemExit: with 2 for the command line, 3 for text.
    """
    words = parser()
    with one_line_errors(words.prog):
        return _run(words.parse_args(arguments))


def _run(args: argparse.Namespace) -> int:
    rows = choose(args.only)
    if args.list:
        print("\n".join(f"{row.name:24}  {row.what}" for row in rows))
        return 0
    # As an exception it also ends the child that is at work.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    started = time.perf_counter()
    runs = ROOT / "runs" / "benchmark"
    path = writable(Path(args.json) if args.json else runs / "result.json", "--json")
    _refuse_unknown(args.device)
    corpus = find_corpus(args.data)
    machine = machine_facts(args.device, args.threads)
    setting = Setting(
        folder=str(build(corpus, runs, {row.ours.size for row in rows if row.ours.size})),
        device=args.device,
        threads=machine["threads"],
        effort=QUICK if args.quick else FULL,
        peer_python=args.peer_python,
    )
    packages = installed(args.peer_python, setting.environment())
    pairs = args.pairs or (QUICK_PAIRS if args.quick else FULL_PAIRS)
    facts: dict[str, Any] = {
        "date": date.today().isoformat(),
        "machine": machine,
        "text": corpus.note or f"{corpus.src_lang}-{corpus.tgt_lang}, {corpus.vocab_size:,} pieces",
        "pairs": pairs,
        "effort": asdict(setting.effort),
    }
    results: dict[Measurement, Measured] = {}
    outcomes: list[Outcome] = []
    say = partial(print, file=sys.stderr, flush=True)
    for contest in contests(rows):
        present = [measurement for measurement in contest if not missing_packages(measurement, packages)]
        results |= run_by_turns(present, pairs, setting.run, say)
        look_up = partial(saved_figures.look_up, machine=machine)
        outcomes = [outcome(row, results, look_up) for row in rows if row.ours in results]
        facts["seconds"] = time.perf_counter() - started
        _write(path, facts, results, outcomes)  # after every contest: a call cut short leaves what it has
    if args.save_figures:
        saved_figures.save(results, machine)
    print(one_line(machine))
    print(", ".join(f"{name} {version}" for name, version in _versions(results).items()))
    print(f"text: {facts['text']}; pairs of runs: {pairs}; {facts['seconds'] / 60:.1f} minutes")
    print(table(outcomes))
    return 1 if any(result.failure for one, result in results.items() if one.system == "ours") else 0


def _refuse_unknown(device: str) -> None:
    from transformer_mt.runtime.device import pick_device  # brings in torch, which --list does without

    pick_device(device)


def _versions(results: Mapping[Measurement, Measured]) -> dict[str, str]:
    return {name: version for result in results.values() for name, version in result.versions.items()}


def _write(
    path: Path, facts: dict[str, Any], results: Mapping[Measurement, Measured], outcomes: list[Outcome]
) -> None:
    record = {
        **facts,
        "versions": _versions(results),
        "rows": [as_json(one) for one in outcomes],
        "measurements": {one.key: asdict(result) for one, result in results.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_text(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
