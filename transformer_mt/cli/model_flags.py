"""What all verbs that translate share on the command line: which weights, where, and how to search.

Parses and builds; knows nothing of files and formats but that an output must not be an input.
"""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from transformer_mt.config import DecodingConfig
from transformer_mt.errors import CheckpointError, ConfigError
from transformer_mt.text.arrivals import STDIN, is_regular

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Translator


def path_word(word: str) -> str:
    """A word as it is, unless it is empty, as a variable of the shell is that was never set."""
    if not word:
        raise argparse.ArgumentTypeError("is empty; name a file or folder")
    return word


def run_dir(word: str) -> str:
    """A run directory that is there.

    Raises:
        CheckpointError: it is not.
    """
    folder = Path(path_word(word))
    if folder.is_dir():
        return word
    if folder.exists():
        raise CheckpointError(f"{word}: is a file; name the run directory that `train` has written")
    runs = {found.parent.name: found.parent for found in folder.parent.glob("*/run.json")}
    near = difflib.get_close_matches(folder.name, runs, 1) or sorted(runs)[:1]
    hint = f"did you mean {runs[near[0]]}?" if near else "`train` writes one, the run_dir of its recipe"
    raise CheckpointError(f"{word}: no such run directory; {hint}")


def add_weight_arguments(parser: argparse.ArgumentParser) -> None:
    """Which weights, and where."""
    parser.add_argument(
        "--checkpoint",
        default="best",
        metavar="WHICH",
        help="best, latest, averaged or a step (default: best)",
    )
    parser.add_argument("--device", help="cpu, cuda or cuda:N (default: a GPU where there is one)")


def add_model_arguments(parser: argparse.ArgumentParser, *, nbest: bool = True) -> None:
    """Which weights, where, and a flag for every key of the recipe's decoding section.

    Args:
        parser: gets them.
        nbest: False where the best translation alone is looked at.
    """
    add_weight_arguments(parser)
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes that translate side by side on a CPU (default: one per core; standard input that "
        "comes slowly is answered by one)",
    )
    parser.add_argument(
        "--shortlist",
        type=int,
        default=0,
        metavar="N",
        help="consider the N likeliest target tokens of every source token and the most frequent ones only; "
        "learned from the training data at first (default: 0, all tokens; 20 is a good number)",
    )
    add_decoding_arguments(parser, [key for key in DecodingConfig.model_fields if nbest or key != "nbest"])


def add_decoding_arguments(parser: argparse.ArgumentParser, keys: Iterable[str]) -> None:
    """A flag for each of these keys of the recipe's decoding section."""
    group = parser.add_argument_group("decoding (default: as in the run's recipe)")
    for key in keys:
        field = DecodingConfig.model_fields[key]
        kind = type(field.default)
        choices = get_args(field.annotation) if kind is str else None
        flag, about = f"--{key.replace('_', '-')}", (field.description or "").rstrip(".")
        if kind is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, help=about)
        else:
            metavar = None if choices else "N" if kind is int else "X"
            group.add_argument(flag, type=kind, choices=choices, metavar=metavar, help=about)


def load_translator(args: argparse.Namespace, *others: str, **options: Any) -> Translator:
    """The translator that the arguments of `add_model_arguments` ask for.

    Args:
        args: parsed.
        others: further runs, for an ensemble.
        options: what else `Translator.load` takes.
    """
    from transformer_mt.decoding.translator import Translator
    from transformer_mt.runtime.device import set_up_process

    set_up_process()
    return Translator.load(
        args.run_dir,
        *others,
        checkpoint=args.checkpoint,
        device=args.device,
        workers=args.workers,
        shortlist=args.shortlist,
        **options,
        **decoding_flags(args),
    )


def decoding_flags(args: argparse.Namespace) -> dict[str, Any]:
    """The keys of the decoding section that the arguments of `add_decoding_arguments` name."""
    given: dict[str, Any] = {key: getattr(args, key, None) for key in DecodingConfig.model_fields}
    return {key: value for key, value in given.items() if value is not None}


def refuse_overwriting(flag: str, output: str | None, files: Sequence[str]) -> None:
    """An output that cannot be written, or that is an input, is refused before any work is done."""
    if output is None:
        return
    folder = Path(os.path.realpath(output)).parent
    if not folder.is_dir():
        raise ConfigError(f"{flag} {output}: there is no folder {folder}; create it first")
    if Path(output).is_dir():
        raise ConfigError(f"{flag} {output}: is a folder; name a file")
    named = [file for file in files if file != STDIN or is_regular(STDIN)]
    for file in ("/dev/stdin" if file == STDIN else file for file in named):
        if os.path.exists(file) and os.path.exists(output) and os.path.samefile(file, output):
            raise ConfigError(f"{flag} {output}: is also the input {file}; name another file")
