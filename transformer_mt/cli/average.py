"""`average`: the mean of several checkpoints' weights, used with `--checkpoint averaged`."""

from __future__ import annotations

import argparse
from pathlib import Path

from transformer_mt.cli.model_flags import run_dir
from transformer_mt.cli.stream_output import show
from transformer_mt.errors import EXIT_OK, CheckpointError, ConfigError

HELP = "average the weights of several checkpoints of a run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of this verb."""
    parser.add_argument("run_dir", metavar="RUN", type=run_dir, help="run directory")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--last", type=int, default=5, metavar="N", help="the newest N checkpoints (default: 5)"
    )
    which.add_argument("--steps", type=int, nargs="+", metavar="STEP", help="the checkpoints of these steps")


def run(args: argparse.Namespace) -> int:
    """Write `checkpoints/averaged` and print where it is."""
    from transformer_mt.checkpoint import average, find_checkpoint, saved_steps

    run_dir = Path(args.run_dir)
    find_checkpoint(run_dir, "latest")
    present = saved_steps(run_dir)
    if args.last < 1:
        raise ConfigError(f"--last {args.last}: must be at least 1")
    if args.steps is None and args.last > len(present):
        raise CheckpointError(
            f"{run_dir}: has {len(present)} checkpoints, not {args.last}; lower --last, "
            "or keep more with training.keep_last"
        )
    steps = sorted(set(args.steps)) if args.steps else present[-args.last :]
    for step in steps:
        find_checkpoint(run_dir, step)
    folder = average(run_dir, steps)
    show(f"{folder}: mean of steps {', '.join(map(str, steps))}")
    return EXIT_OK
