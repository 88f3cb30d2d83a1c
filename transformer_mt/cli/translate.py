"""`transformer-mt translate`: lines in, translations of them out, in order.

Parses flags and joins the parts: `source_lines` reads, `decoding.translator` translates, `line_formats` and
`partial_output` write, `finished_output` finds what is done already, `summary` counts.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt.cli.line_flags import add_line_arguments, pick_format, reads_json
from transformer_mt.cli.line_formats import LineFormat
from transformer_mt.cli.model_flags import (
    add_model_arguments,
    decoding_flags,
    load_translator,
    refuse_overwriting,
)
from transformer_mt.cli.output_journal import names_beside
from transformer_mt.cli.run_check import FORGETFUL
from transformer_mt.cli.source_lines import SourceLine, SourceLines
from transformer_mt.cli.stream_output import NoOutput, StreamOutput
from transformer_mt.cli.translate_flags import LINES_PER_WORKER, add_input_arguments, add_output_arguments
from transformer_mt.errors import EXIT_OK, ConfigError, DataError
from transformer_mt.text.arrivals import STDIN, is_regular
from transformer_mt.text.lines import one_line
from transformer_mt.text.protection import compile_patterns

if TYPE_CHECKING:
    from transformer_mt.cli.partial_output import PartialOutput
    from transformer_mt.cli.summary import Summary
    from transformer_mt.decoding.translation import Translation
    from transformer_mt.decoding.translator import Translator
    from transformer_mt.runtime.distributed import Ranks

# Seconds that one of several processes may be late with its share of a buffer.
_PROCESS_TIMEOUT = 3600.0

HELP = "translate text with a trained run: one output line per input line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `translate` takes; the decoding flags default to the run's recipe."""
    add_line_arguments(parser, does="translates", files="text")
    add_output_arguments(parser)
    add_input_arguments(parser)
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Translate files or stdin. Returns 3 where a line did not fit into the memory and has no translation."""
    from transformer_mt.runtime.distributed import joined

    with joined(_PROCESS_TIMEOUT) as ranks:
        return _run(args, ranks)


def _run(args: argparse.Namespace, ranks: Ranks) -> int:
    """Translate, alone or with other processes; the first of them reads, writes and speaks for all."""
    from transformer_mt.checkpoint import find_checkpoint
    from transformer_mt.checkpoint_files import read_recipe
    from transformer_mt.cli.summary import Summary
    from transformer_mt.cli.translate_settings import buffer_size, settings_of, translator_options
    from transformer_mt.decoding.shares import translate_in_shares
    from transformer_mt.recipe import parse_section

    files = args.files or [STDIN]
    _refuse(args, files)
    if ranks.world > 1:
        _share(args, files, ranks)
    if args.quiet:
        logging.getLogger("transformer_mt").setLevel(logging.WARNING)
    recipe = read_recipe(find_checkpoint(args.run_dir, args.checkpoint))
    decoding = parse_section(decoding_flags(args), recipe.decoding)
    style, sources = _formats(args, files, recipe.data.src_lang, nbest=decoding.nbest > 1)
    total, size = sources.count(), args.buffer_size or int(ranks.sums(buffer_size(args))[0])
    settings = settings_of(args, decoding, style.name, size, ranks.world)
    done = ranks.gathered(_done(args, settings, sources) if args.resume and ranks.first else None)[0]
    if done is not None:
        return int(done)
    with ranks.one_after_the_first():  # which may have to learn a shortlist
        translator = load_translator(args, *args.ensemble, **translator_options(args))
    if decoding.split_long and not translator.counts_sentences:
        _say(args, f"note: {args.run_dir} {FORGETFUL}")
    style = replace(style, pieces=_spelling(translator))
    summary = Summary()
    with _output(args, settings) if ranks.first else nullcontext() as own:
        found = ranks.gathered(own.found if own else 0)[0]
        output = own or NoOutput(found)
        steps = _translated(
            partial(translate_in_shares, translator, ranks), sources.buffers(size), style, output, summary
        )
        _show_progress(args, steps, total, found)
    for line in summary.told():
        _say(args, line)
    return _exit_code(args, ranks.gathered(output.unfit)[0])


def _exit_code(args: argparse.Namespace, unfit: Sequence[int]) -> int:
    """Every line has come out, but not every translation where some did not fit into the memory."""
    from transformer_mt.cli.summary import unfit_note

    if not unfit:
        return EXIT_OK
    _say(args, unfit_note(args.output or "stdout", unfit))
    return DataError.exit_code


def _spelling(translator: Translator) -> Callable[[Sequence[int]], list[str]]:
    from transformer_mt.text.tokenizer import EOS_ID

    return lambda ids: translator.tokenizers.tgt.pieces([*ids, EOS_ID])


def _refuse(args: argparse.Namespace, files: Sequence[str]) -> None:
    """What can be seen to be wrong before anything is read."""
    compile_patterns(args.protect)
    if args.buffer_size is not None and args.buffer_size < 1:
        raise ConfigError(f"--buffer-size {args.buffer_size}: must be at least 1")
    if args.resume and not _is_replaced(args.output):
        raise ConfigError("--resume: goes on with an output file; name that file with --output")
    if args.prefix and args.prefix_field:
        raise ConfigError("--prefix-field: --prefix names a file already; leave one of them out")
    if args.prefix == STDIN and STDIN in files:
        raise ConfigError("--prefix -: stdin is the source already; name a file for one of them")
    if not _is_replaced(args.output):
        refuse_overwriting("--output", args.output, [])
        return
    read = [*files, args.prefix] if args.prefix else files
    for written in (args.output, *map(str, names_beside(args.output))):
        refuse_overwriting("--output", written, read)


def _share(args: argparse.Namespace, files: Sequence[str], ranks: Ranks) -> None:
    """What is otherwise where several processes share the lines: each reads all of them."""
    from transformer_mt.runtime.device import pick_device

    for file in [*files, args.prefix] if args.prefix else files:
        if file == STDIN or not is_regular(file):
            raise ConfigError(
                f"{'stdin' if file == STDIN else file}: several processes each read all lines, so these must "
                "stand in a file; name one, or start without torchrun"
            )
    args.device = str(pick_device(args.device, ranks))
    args.quiet = args.quiet or not ranks.first


def _formats(
    args: argparse.Namespace, files: Sequence[str], src_lang: str, *, nbest: bool
) -> tuple[LineFormat, SourceLines]:
    """How lines are written and read."""
    more = {"--nbest": nbest, "--token-scores": args.token_scores, "--alignment": args.alignment is not None}
    asked = next((flag for flag, given in more.items() if given), None)
    fields = [args.source_field] if args.source_field else ["src", src_lang]
    json_in = reads_json(files, args.input_format)
    for flag, given in (("--source-field", args.source_field), ("--prefix-field", args.prefix_field)):
        if given and not json_in:
            raise ConfigError(f"{flag}: lines of text have no fields; add --input-format jsonl")
    name = pick_format(args, json_in=json_in, asked=asked, roomy="tsv, jsonl or moses")
    style = LineFormat(
        name,
        nbest=nbest,
        alignment=args.alignment is not None,
        token_scores=args.token_scores,
        added_prefix=args.added_prefix,
    )
    return style, SourceLines(
        files,
        kind=args.input_format,
        fields=fields,
        prefix_field=args.prefix_field,
        prefix_file=args.prefix,
        taken=style.added_fields if name == "jsonl" else (),
    )


def _done(args: argparse.Namespace, settings: dict[str, Any], sources: SourceLines) -> int | None:
    """The exit code where an earlier command has left nothing to do; a script may always say --resume."""
    from transformer_mt.cli.finished_output import check_finished, stands_whole

    if not stands_whole(args.output):
        return None
    record = names_beside(args.output).record
    if not record.exists():
        _say(args, f"{args.output}: no {record.name} says what it was made of; all of it is translated anew")
        return None
    keys = (line.key for buffer in sources.buffers(LINES_PER_WORKER) for line in buffer)
    journal = check_finished(args.output, settings, keys)
    _say(args, f"{args.output}: is there, with all {journal.lines} lines; delete it to begin anew")
    return _exit_code(args, journal.unfit)


def _translated(
    translate: Callable[..., list[Translation]],
    buffers: Iterable[list[SourceLine]],
    style: LineFormat,
    output: PartialOutput | StreamOutput | NoOutput,
    summary: Summary,
) -> Iterator[int]:
    """Translate and write buffer by buffer; of each, how many lines it has."""
    from transformer_mt.decoding.translation import MEMORY

    for buffer in buffers:
        lines = buffer[output.skip_done([line.key for line in buffer]) :]
        if not lines:
            continue
        first, start = output.found + summary.lines + 1, time.perf_counter()
        texts = [line.text for line in lines]
        translations = translate(texts, first, prefixes=[line.prefix for line in lines])
        summary.add(first, translations, time.perf_counter() - start)
        summary.look_at(texts)
        written = style.lines(first, lines, translations)
        data = b"".join(one_line(text).encode() + b"\n" for text in written)
        unfit = [number for number, one in enumerate(translations, first) if MEMORY in one.flags]
        output.write([line.key for line in lines], data, unfit)
        yield len(lines)


def _show_progress(args: argparse.Namespace, done: Iterator[int], total: int | None, found: int) -> None:
    """A bar on stderr where that is a terminal, unless the lines come out there too."""
    from tqdm import tqdm

    hidden = args.quiet or (args.output is None and sys.stdout.isatty())
    with tqdm(total=total, initial=found, unit=" lines", disable=hidden or None, file=sys.stderr) as bar:
        for lines in done:
            bar.update(lines)


def _output(args: argparse.Namespace, settings: dict[str, Any]) -> PartialOutput | StreamOutput:
    from transformer_mt.cli.partial_output import PartialOutput

    if not _is_replaced(args.output):
        return StreamOutput(args.output)
    output = PartialOutput(args.output, settings, resume=args.resume)
    if output.found:
        _say(args, f"{output.partial}: has {output.found} lines; goes on with line {output.found + 1}")
    elif args.resume:
        _say(args, f"{output.partial}: nothing is there yet; begins with line 1")
    return output


def _is_replaced(output: str | None) -> bool:
    """Whether the output is a file that appears as a whole; a device or pipe is written to."""
    return output not in (None, "/dev/stdout") and (Path(output).is_file() or not Path(output).exists())


def _say(args: argparse.Namespace, what: str) -> None:
    if not args.quiet:
        print(f"transformer-mt: {what}", file=sys.stderr)
