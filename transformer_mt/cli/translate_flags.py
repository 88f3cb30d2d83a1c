"""Flags of `translate` alone: how lines come in and go out. Parses nothing but `--alignment`."""

from __future__ import annotations

import argparse

from transformer_mt.cli.line_flags import add_added_prefix
from transformer_mt.cli.line_formats import FORMATS
from transformer_mt.cli.model_flags import path_word
from transformer_mt.cli.source_lines import INPUT_FORMATS

LINES_PER_WORKER = 1024
# So many workers' lines are sorted together at most; the first output waits for all of them.
MOST_SHARES = 16


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Where translations go, how they are written, and what is told about them."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output",
        type=path_word,
        metavar="FILE",
        help="write here instead of to stdout; appears when all is done, and is FILE.partial until then",
    )
    group.add_argument(
        "--resume",
        action="store_true",
        help="go on with the FILE.partial that an interrupted command left; what is finished stays, told by "
        "FILE.done.json, and other settings or another source are refused",
    )
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="text: one translation a line; tsv: line, rank, score, flags, source, translation, separated "
        "by tabs (\\t, \\r and \\\\ in a text are spelled so); jsonl: the object that was read, or one of "
        "the source, with translation, score, flags and parts; moses: n-best list, ||| in a text being "
        "&#124;&#124;&#124; (default: jsonl if that is "
        "read, tsv for what text has no room for, else text)",
    )
    group.add_argument(
        "--token-scores",
        action="store_true",
        help="also the target tokens and their log-probabilities, in two more columns or fields; with "
        "--protect and --tags those that the model wrote, before strings and tags came in",
    )
    group.add_argument(
        "--alignment",
        type=layer,
        metavar="LAYER|mean",
        help="also which words belong together, as pairs i-j of source and target word from 0, by the "
        "attention of a decoder layer from 1, or the mean of all; words stand between spaces, and in "
        "Chinese, Japanese and the like each character is one",
    )
    group.add_argument(
        "--protect",
        metavar="REGEX",
        action="append",
        default=[],
        help="what this regular expression (of Python) matches in a line stands in its translation as it is, "
        "such as placeholders, links and numbers; may be repeated",
    )
    group.add_argument(
        "--tags",
        action="store_true",
        help="keep the tags of HTML and XML: they are taken out of a line and put back around the words that "
        "they belong to; entities are read, and written again (--alignment counts the words without them)",
    )
    add_added_prefix(group)
    group.add_argument(
        "--buffer-size",
        type=int,
        metavar="N",
        help="lines that are read, sorted, translated and written together; of what comes slowly, those that "
        f"are there (default: {LINES_PER_WORKER} per worker, at most {LINES_PER_WORKER * MOST_SHARES})",
    )


def layer(word: str) -> int | str:
    """What --alignment takes."""
    try:
        return word if word == "mean" else int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word}: must be the number of a layer from 1, or mean") from None


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """What a line of the input is, and what belongs to it."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "--input-format",
        choices=INPUT_FORMATS,
        help="of every FILE (default: jsonl if its name says so, else text)",
    )
    group.add_argument(
        "--source-field",
        metavar="NAME",
        help="jsonl: the field with the text (default: src or the source language, also inside translation)",
    )
    group.add_argument(
        "--prefix",
        type=path_word,
        metavar="FILE",
        help="text that the translations begin with, one a line; blank is none; - is stdin",
    )
    group.add_argument(
        "--prefix-field", metavar="NAME", help="jsonl: the field with that text, in objects that have one"
    )
