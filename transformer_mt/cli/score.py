"""`transformer-mt score`: how probable a run finds given translations; one output line per pair.

Parses flags and joins the parts: `pair_lines` reads, `decoding.scorer` scores, `score_lines` writes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from transformer_mt.cli.line_flags import add_added_prefix, add_line_arguments, pick_format, reads_json
from transformer_mt.cli.model_flags import (
    add_decoding_arguments,
    add_weight_arguments,
    decoding_flags,
    path_word,
    refuse_overwriting,
)
from transformer_mt.cli.pair_lines import INPUT_FORMATS, PairLine, PairLines
from transformer_mt.cli.score_lines import FORMATS, ScoreFormat, ScoreSummary
from transformer_mt.cli.stream_output import StreamOutput
from transformer_mt.errors import EXIT_OK, ConfigError
from transformer_mt.text.arrivals import STDIN
from transformer_mt.text.lines import write_lines

if TYPE_CHECKING:
    from transformer_mt.decoding.scorer import Scorer

HELP = "log-probabilities of given translations: one output line per line"
_BUFFER_LINES = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `score` takes; the decoding flags default to the run's recipe."""
    add_line_arguments(parser, does="scores", files="source TAB translation")
    parser.add_argument(
        "--src", metavar="FILE", type=path_word, help="sources, one a line, instead of FILE; - is stdin"
    )
    parser.add_argument(
        "--tgt", metavar="FILE", type=path_word, help="the translations of --src, one a line; - is stdin"
    )
    _add_input_arguments(parser)
    _add_output_arguments(parser)
    add_weight_arguments(parser)
    add_decoding_arguments(parser, ("length_penalty", "batch_size", "precision"))


def _add_input_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    group.add_argument(
        "--input-format",
        choices=INPUT_FORMATS,
        help="of every FILE (default: jsonl if its name says so, else tsv)",
    )
    group.add_argument(
        "--source-field",
        metavar="NAME",
        help="jsonl: the field with the source (default: src, or the source language; both also inside "
        "translation)",
    )
    group.add_argument("--target-field", metavar="NAME", help="jsonl: the field with its translation")


def _add_output_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output",
        metavar="FILE",
        type=path_word,
        help="write here instead of to stdout; appears when all is done",
    )
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="text: the score, which is log-probability / length^alpha with eos counted, as in translate; "
        "tsv: line, score, log-probability, number of tokens, source, translation, separated by tabs (\\t, "
        "\\r and \\\\ in a text are spelled so); jsonl: the object that was read, or one of src and tgt, "
        "with score, log_prob and num_tokens (default: jsonl if that is read, tsv with --token-scores, else "
        "text)",
    )
    group.add_argument(
        "--token-scores",
        action="store_true",
        help="also the tokens of each translation and their log-probabilities, in two more columns or fields",
    )
    add_added_prefix(group)


def run(args: argparse.Namespace) -> int:
    """Score files or stdin."""
    from transformer_mt.decoding.scorer import Scorer
    from transformer_mt.runtime.device import set_up_process

    if args.output == "/dev/stdout":
        args.output = None  # as a file it would be replaced
    style, pairs = _formats(args)
    total = pairs.count()
    set_up_process()
    scorer = Scorer.load(
        args.run_dir,
        *args.ensemble,
        checkpoint=args.checkpoint,
        device=args.device,
        **decoding_flags(args),
    )
    summary = ScoreSummary()
    buffers = _written(style, scorer, _shown(args, pairs, total), summary)
    if args.output:
        write_lines(args.output, chain.from_iterable(buffers))
    else:
        stdout = StreamOutput(None)
        for buffer in buffers:
            stdout.write([], b"".join(line.encode() + b"\n" for line in buffer))
    for line in summary.told():
        if not args.quiet:
            print(f"transformer-mt: {line}", file=sys.stderr)
    return EXIT_OK


def _formats(args: argparse.Namespace) -> tuple[ScoreFormat, PairLines]:
    """How lines are written, and what is read; what can be seen to be wrong is refused."""
    from transformer_mt.checkpoint import find_checkpoint
    from transformer_mt.checkpoint_files import read_recipe

    sides = (args.src, args.tgt) if args.src and args.tgt else None
    if (args.src or args.tgt) and (sides is None or args.files):
        raise ConfigError("score: give --src FILE and --tgt FILE, or FILE with both sides, or stdin")
    if sides == (STDIN, STDIN):
        raise ConfigError("--src -, --tgt -: stdin is one of them; name a file for the other")
    files = [] if sides else args.files or [STDIN]
    refuse_overwriting("--output", args.output, sides or files)
    json_in = reads_json(files, args.input_format)
    fields = (args.source_field, args.target_field)
    if any(fields) and not (all(fields) and json_in):
        raise ConfigError("--source-field, --target-field: go together, and with --input-format jsonl")
    asked = "--token-scores" if args.token_scores else None
    name = pick_format(args, json_in=json_in, asked=asked, roomy="tsv or jsonl")
    style = ScoreFormat(name, token_scores=args.token_scores, added_prefix=args.added_prefix)
    data = read_recipe(find_checkpoint(args.run_dir, args.checkpoint)).data
    return style, PairLines(
        files,
        sides=sides,
        kind=args.input_format,
        languages=(data.src_lang, data.tgt_lang),
        fields=fields if all(fields) else None,
        taken=style.added_fields if name == "jsonl" else (),
    )


def _shown(args: argparse.Namespace, pairs: PairLines, total: int | None) -> Iterator[list[PairLine]]:
    """The pairs in buffers, with a bar on stderr where that is a terminal."""
    from tqdm import tqdm

    with tqdm(total=total, unit=" lines", disable=True if args.quiet else None, file=sys.stderr) as bar:
        for buffer in pairs.buffers(_BUFFER_LINES):
            yield buffer
            bar.update(len(buffer))


def _written(
    style: ScoreFormat, scorer: Scorer, buffers: Iterable[list[PairLine]], summary: ScoreSummary
) -> Iterator[list[str]]:
    """Output lines, buffer by buffer."""
    for buffer in buffers:
        first, start = summary.lines + 1, time.perf_counter()
        scored = scorer.score([(pair.src, pair.tgt) for pair in buffer], first)
        summary.add(buffer, scored, time.perf_counter() - start)
        yield style.lines(first, buffer, scored, scorer.tokenizers.tgt.pieces)
