"""`transformer-mt translate`: lines in, translations of them out, in order.

Parses flags and joins the parts: `source_lines` reads, `decoding.translator` translates, `line_formats` and
`partial_output` write, `summary` counts.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt import __version__
from transformer_mt.cli.line_formats import FORMATS, LineFormat
from transformer_mt.cli.model_flags import (
    add_model_arguments,
    decoding_flags,
    load_translator,
    refuse_overwriting,
)
from transformer_mt.cli.source_lines import INPUT_FORMATS, SourceLine, SourceLines, reads_json
from transformer_mt.errors import EXIT_OK, ConfigError
from transformer_mt.text.arrivals import STDIN, is_regular
from transformer_mt.text.lines import one_line

if TYPE_CHECKING:
    from transformer_mt.cli.partial_output import PartialOutput
    from transformer_mt.cli.stream_output import StreamOutput
    from transformer_mt.cli.summary import Summary
    from transformer_mt.decoding.translator import Translator

HELP = "translate text with a trained run: one output line per input line"
_LINES_PER_WORKER = 1024
# So many workers' lines are sorted together at most; the first output waits for all of them.
_MOST_SHARES = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `translate` takes; the decoding flags default to the run's recipe."""
    parser.add_argument("run_dir", metavar="RUN", help="run directory")
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="text, JSON Lines (.jsonl), either also .gz or .xz, a pipe, or - for stdin (default: stdin)",
    )
    parser.add_argument(
        "--ensemble",
        metavar="RUN",
        action="append",
        default=[],
        help="another run with the same tokenizers that translates along; may be repeated",
    )
    parser.add_argument("--quiet", action="store_true", help="only errors on stderr: no progress, no summary")
    _add_output_arguments(parser)
    _add_input_arguments(parser)
    add_model_arguments(parser)


def _add_output_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output",
        metavar="FILE",
        help="write here instead of to stdout; appears when all is done, and is FILE.partial until then",
    )
    group.add_argument(
        "--resume", action="store_true", help="go on with the FILE.partial that an interrupted command left"
    )
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="text: one translation a line; tsv: line, rank, score, flags, source, translation, separated "
        "by tabs (\\t, \\r and \\\\ in a text are spelled so); jsonl: the object that was read, or one of "
        "the source, with translation, score, flags and parts; moses: n-best list (default: jsonl if that is "
        "read, tsv for --nbest above 1, else text)",
    )
    group.add_argument(
        "--added-prefix",
        metavar="TEXT",
        default="",
        help="jsonl: begin the names of all added fields with this",
    )
    group.add_argument(
        "--buffer-size",
        type=int,
        metavar="N",
        help="lines that are read, sorted, translated and written together; of what comes slowly, those that "
        f"are there (default: {_LINES_PER_WORKER} per worker, at most {_LINES_PER_WORKER * _MOST_SHARES})",
    )


def _add_input_arguments(parser: argparse.ArgumentParser) -> None:
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


def run(args: argparse.Namespace) -> int:
    """Translate files or stdin."""
    from transformer_mt.cli.summary import Summary

    files = args.files or [STDIN]
    _refuse(args, files)
    if args.quiet:
        logging.getLogger("transformer_mt").setLevel(logging.WARNING)
    style, sources = _formats(args, files)
    total = sources.count()
    translator = load_translator(args, *args.ensemble)
    size = args.buffer_size or _LINES_PER_WORKER * min(translator.num_workers, _MOST_SHARES)
    summary = Summary()
    with _output(args, translator, style, size) as output:
        done = _translated(translator, sources.buffers(size), style, output, summary)
        _show_progress(args, done, total, output.found)
    for line in summary.told():
        _say(args, line)
    return EXIT_OK


def _refuse(args: argparse.Namespace, files: Sequence[str]) -> None:
    """What can be seen to be wrong before anything is read."""
    if args.buffer_size is not None and args.buffer_size < 1:
        raise ConfigError(f"--buffer-size {args.buffer_size}: must be at least 1")
    if args.resume and not _is_replaced(args.output):
        raise ConfigError("--resume: goes on with an output file; name that file with --output")
    if not _is_replaced(args.output):
        refuse_overwriting("--output", args.output, [])
        return
    from transformer_mt.cli.partial_output import partial_names

    read = ["/dev/stdin" if file == STDIN else file for file in files if file != STDIN or is_regular(STDIN)]
    for written in (args.output, *map(str, partial_names(args.output))):
        refuse_overwriting("--output", written, read)


def _formats(args: argparse.Namespace, files: Sequence[str]) -> tuple[LineFormat, SourceLines]:
    """How lines are written and read; the recipe of the run says how many translations and which language."""
    from transformer_mt.checkpoint import find_checkpoint, read_recipe
    from transformer_mt.recipe import parse_section

    recipe = read_recipe(find_checkpoint(args.run_dir, args.checkpoint))
    nbest = parse_section(decoding_flags(args), recipe.decoding).nbest
    fields = [args.source_field] if args.source_field else ["src", recipe.data.src_lang]
    json_in = reads_json(files, args.input_format)
    if args.source_field and not json_in:
        raise ConfigError("--source-field: lines of text have no fields; add --input-format jsonl")
    name = args.format or ("jsonl" if json_in else "tsv" if nbest > 1 else "text")
    if name == "text" and nbest > 1:
        raise ConfigError(f"--format text: has room for one translation, but nbest is {nbest}; use tsv")
    if args.added_prefix and name != "jsonl":
        raise ConfigError(f"--added-prefix: {name} has no fields; add --format jsonl")
    style = LineFormat(name, nbest > 1, added_prefix=args.added_prefix)
    taken = style.added_fields if name == "jsonl" else ()
    return style, SourceLines(files, kind=args.input_format, fields=fields, taken=taken)


def _translated(
    translator: Translator,
    buffers: Iterable[list[SourceLine]],
    style: LineFormat,
    output: PartialOutput | StreamOutput,
    summary: Summary,
) -> Iterator[int]:
    """Translate and write buffer by buffer; of each, how many lines it has."""
    for buffer in buffers:
        lines = buffer[output.skip_done([line.key for line in buffer]) :]
        if not lines:
            continue
        first, start = output.found + summary.lines + 1, time.perf_counter()
        texts = [line.text for line in lines]
        translations = translator.translate(texts, first_line=first)
        summary.look_at(texts)
        summary.add(first, translations, time.perf_counter() - start)
        written = style.lines(first, lines, translations)
        output.write(
            [line.key for line in lines], b"".join(one_line(text).encode() + b"\n" for text in written)
        )
        yield len(lines)


def _show_progress(args: argparse.Namespace, done: Iterator[int], total: int | None, found: int) -> None:
    """A bar on stderr where that is a terminal."""
    from tqdm import tqdm

    with tqdm(
        total=total, initial=found, unit=" lines", disable=True if args.quiet else None, file=sys.stderr
    ) as bar:
        for lines in done:
            bar.update(lines)


def _output(
    args: argparse.Namespace, translator: Translator, style: LineFormat, size: int
) -> PartialOutput | StreamOutput:
    from transformer_mt.cli.partial_output import PartialOutput
    from transformer_mt.cli.stream_output import StreamOutput

    if not _is_replaced(args.output):
        return StreamOutput(args.output)
    settings = _settings(args, translator, style, size)
    output = PartialOutput(args.output, settings, resume=args.resume)
    if output.found:
        _say(args, f"{output.partial}: has {output.found} lines; goes on with line {output.found + 1}")
    elif args.resume:
        _say(args, f"{output.partial}: nothing is there yet; begins with line 1")
    return output


def _settings(
    args: argparse.Namespace, translator: Translator, style: LineFormat, size: int
) -> dict[str, Any]:
    """All that the written lines depend on besides the source; the same lines come of the same settings."""
    import torch

    from transformer_mt.checkpoint import MANIFEST, find_checkpoint

    folders = [find_checkpoint(run, args.checkpoint) for run in (args.run_dir, *args.ensemble)]
    decoding = translator.decoding.model_dump()
    if decoding["precision"] == "fp32":
        del decoding["batch_size"]  # batches and buffers change nothing then
    else:
        decoding["buffer_size"] = size
    return {
        "transformer_mt": __version__,
        "torch": torch.__version__,
        "device": translator.device.type,
        "checkpoint": [hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest() for folder in folders],
        "shortlist": args.shortlist,
        "format": style.name,
        "added_prefix": args.added_prefix,
        "input_format": args.input_format,
        "source_field": args.source_field,
        **decoding,
    }


def _is_replaced(output: str | None) -> bool:
    """Whether the output is a file that appears as a whole; a device or pipe is written to."""
    return output not in (None, "/dev/stdout") and (Path(output).is_file() or not Path(output).exists())


def _say(args: argparse.Namespace, what: str) -> None:
    if not args.quiet:
        print(f"transformer-mt: {what}", file=sys.stderr)
