"""The command line of `tools/benchmark`: parses, measures, prints."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from tools.bench import saved_figures
from tools.bench.machine import installed, machine_facts, one_line
from tools.bench.measure import Measured, Setting, contests, missing_packages, run_by_turns
from tools.bench.report import as_json, outcome, table
from tools.bench.rows import FULL, FULL_PAIRS, QUICK, QUICK_PAIRS, ROWS, choose
from tools.bench.task import Measurement
from tools.bench.workspace import ROOT, build, find_corpus


def parser() -> argparse.ArgumentParser:
    """The words of the command."""
    words = argparse.ArgumentParser(
        prog="tools/benchmark",
        allow_abbrev=False,
        description="This package against its peers, by turns on this machine: a table of ratios, and JSON.",
    )
    words.add_argument("--list", action="store_true", help="name the rows, measure nothing")
    words.add_argument("--only", action="append", default=[], metavar="ROW", help="this row; repeatable")
    words.add_argument("--quick", action="store_true", help="short windows: about ten minutes on two cores")
    words.add_argument("--pairs", type=int, metavar="N", help="runs of each side (default: 3, quick: 2)")
    words.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    words.add_argument("--threads", type=int, metavar="N", help="of ours and peers (default: all cores)")
    words.add_argument(
        "--data",
        metavar="FOLDER",
        help="holds train.de, train.en, test2016.de and test2016.en, plain, .xz or .gz "
        "(default: ../shared/data/multi30k beside the clone, else the bundled corpus)",
    )
    words.add_argument(
        "--peer-python", default=sys.executable, metavar="PATH", help="the Python that has the peers"
    )
    words.add_argument(
        "--json", default="runs/benchmark/result.json", metavar="FILE", help="default: %(default)s"
    )
    words.add_argument("--save-figures", action="store_true", help="keep what the peers did, for other calls")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns 0 unless something of ours failed."""
    args = parser().parse_args(arguments)
    rows = choose(args.only)
    if args.list:
        print("\n".join(f"{row.name:24}  {row.what}" for row in (rows if args.only else ROWS)))
        return 0
    started = time.perf_counter()
    threads = args.threads or len(os.sched_getaffinity(0))
    corpus = find_corpus(args.data)
    machine = machine_facts(args.device, threads)
    setting = Setting(
        folder=str(build(corpus, ROOT / "runs" / "benchmark")),
        device=args.device,
        threads=threads,
        effort=QUICK if args.quick else FULL,
        peer_python=args.peer_python,
    )
    versions = installed(args.peer_python, setting.environment())
    pairs = args.pairs or (QUICK_PAIRS if args.quick else FULL_PAIRS)
    results: dict[Measurement, Measured] = {}
    for contest in contests(rows):
        present = [measurement for measurement in contest if not missing_packages(measurement, versions)]
        results |= run_by_turns(present, pairs, setting.run, partial(print, file=sys.stderr, flush=True))
    outcomes = [outcome(row, results, partial(saved_figures.look_up, machine=machine)) for row in rows]
    if args.save_figures:
        saved_figures.save(results, machine)
    seconds = time.perf_counter() - started
    used = {name: version for result in results.values() for name, version in result.versions.items()}
    text = corpus.note or f"{corpus.src_lang}-{corpus.tgt_lang}, {corpus.vocab_size:,} pieces"
    print(one_line(machine))
    print(", ".join(f"{name} {version}" for name, version in used.items()))
    print(f"text: {text}; {pairs} pairs of runs; {seconds / 60:.1f} minutes")
    print(table(outcomes))
    record: dict[str, Any] = {
        "date": date.today().isoformat(),
        "machine": machine,
        "versions": used,
        "pairs": pairs,
        "effort": asdict(setting.effort),
        "text": text,
        "seconds": seconds,
        "rows": [as_json(one) for one in outcomes],
        "measurements": {one.key: asdict(result) for one, result in results.items()},
    }
    path = Path(args.json)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0 if all(one.ours for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
