"""The flags that `translate` and `score` share besides those of models, and what they say about formats.

Parses; reads and writes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from transformer_mt.cli.input_lines import is_json
from transformer_mt.cli.model_flags import path_word, run_dir
from transformer_mt.errors import ConfigError


def add_line_arguments(parser: argparse.ArgumentParser, *, does: str, files: str) -> None:
    """The run, and what it reads.

    Args:
        parser: of the verb.
        does: what a run of an ensemble does.
        files: what a file holds.
    """
    parser.add_argument("run_dir", metavar="RUN", type=run_dir, help="run directory")
    parser.add_argument(
        "files",
        type=path_word,
        metavar="FILE",
        nargs="*",
        help=f"{files}, JSON Lines (.jsonl), either also .gz or .xz, a pipe, or - for stdin (default: stdin)",
    )
    parser.add_argument(
        "--ensemble",
        type=run_dir,
        metavar="RUN",
        action="append",
        default=[],
        help=f"another run with the same tokenizers that {does} along; may be repeated",
    )
    parser.add_argument("--quiet", action="store_true", help="only errors on stderr: no progress, no summary")


def add_added_prefix(group: Any) -> None:
    """The flag that renames the fields a JSON object gains."""
    group.add_argument(
        "--added-prefix",
        metavar="TEXT",
        default="",
        help="jsonl: begin the names of all added fields with this",
    )


def reads_json(files: Sequence[str], kind: str | None) -> bool:
    """Whether any of the files is JSON Lines."""
    return any(is_json(file, kind) for file in files)


def pick_format(args: argparse.Namespace, *, json_in: bool, asked: str | None, roomy: str) -> str:
    """How lines are written: as the flags say, else as they are read, if that has room for what is asked.

    Args:
        args: parsed.
        json_in: whether a file is JSON Lines.
        asked: a flag whose results text has no room for, if one is given.
        roomy: the formats that have room, in words.
    """
    name: str = args.format or ("jsonl" if json_in else "tsv" if asked else "text")
    if name == "text" and asked:
        raise ConfigError(f"--format text: has no room for what {asked} gives; use {roomy}")
    if args.added_prefix and name != "jsonl":
        raise ConfigError(f"--added-prefix: {name} has no fields; add --format jsonl")
    if args.added_prefix and not args.added_prefix.isprintable():
        raise ConfigError(
            f"--added-prefix {args.added_prefix!a}: is no name of a field; use letters, such as mt_"
        )
    return name
