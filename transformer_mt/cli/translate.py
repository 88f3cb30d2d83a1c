"""`transformer-mt translate`: text lines in, one translation per line out.

Parses flags, reads and writes; everything else is `decoding.translator`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import queue
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, get_args

from transformer_mt.config import DecodingConfig
from transformer_mt.errors import EXIT_OK, ConfigError

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Translation, Translator

HELP = "translate text with a trained run: one output line per input line"
_CHUNK = 1024
# Chunks that several workers sort together; the first output waits for all of them.
_MOST_CHUNKS = 16
# How long to wait for more piped lines before those that are there are translated.
_LINGER = 0.02
_Item = str | Exception | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `translate` takes; the decoding flags default to the run's recipe."""
    parser.add_argument("run_dir", metavar="RUN", help="run directory")
    parser.add_argument("files", metavar="FILE", nargs="*", help="text, also .gz or .xz (default: stdin)")
    parser.add_argument(
        "--output", metavar="FILE", help="write here instead of to stdout; appears when all is done"
    )
    add_model_arguments(parser)


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Which weights, where, and a flag for every key of the recipe's decoding section."""
    parser.add_argument(
        "--checkpoint",
        default="best",
        metavar="WHICH",
        help="best, latest, averaged or a step (default: best)",
    )
    parser.add_argument("--device", help="cpu, cuda or cuda:N (default: a GPU where there is one)")
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
    group = parser.add_argument_group("decoding (default: as in the run's recipe)")
    for key, field in DecodingConfig.model_fields.items():
        kind = type(field.default)
        about = (field.description or "").rstrip(".")
        if key == "nbest":
            about += "; with more than 1 each is a line: input line, rank, score, text, separated by tabs"
        flag = f"--{key.replace('_', '-')}"
        if kind is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=about)
            continue
        choices = get_args(field.annotation) if key == "precision" else None
        group.add_argument(
            flag,
            type=kind,
            choices=choices,
            metavar=None if choices else "N" if kind is int else "X",
            help=about,
        )


def load_translator(args: argparse.Namespace) -> Translator:
    """The translator that the arguments of `add_model_arguments` ask for."""
    from transformer_mt.decoding.translator import Translator
    from transformer_mt.runtime.device import set_up_process

    set_up_process()
    return Translator.load(
        args.run_dir,
        checkpoint=args.checkpoint,
        device=args.device,
        workers=args.workers,
        shortlist=args.shortlist,
        **decoding_flags(args),
    )


def decoding_flags(args: argparse.Namespace) -> dict[str, Any]:
    """The keys of the decoding section that the arguments of `add_model_arguments` name."""
    given: dict[str, Any] = {key: getattr(args, key) for key in DecodingConfig.model_fields}
    return {key: value for key, value in given.items() if value is not None}


def run(args: argparse.Namespace) -> int:
    """Translate files or stdin."""
    refuse_overwriting("--output", args.output, args.files)
    from tqdm import tqdm

    from transformer_mt.text.lines import one_line, write_lines

    translator = load_translator(args)
    notes = _Notes()
    with tqdm(unit=" lines", disable=None, file=sys.stderr) as bar:
        # Every worker has a chunk's worth of lines: together they find more of like length.
        size = _CHUNK * min(translator.num_workers, _MOST_CHUNKS)
        chunks = _file_chunks(args.files, size) if args.files else _stdin_chunks()
        if args.output:
            write_lines(
                args.output, itertools.chain.from_iterable(_translate(translator, chunks, notes, bar))
            )
        else:
            for lines in _translate(translator, chunks, notes, bar):
                sys.stdout.buffer.write(b"".join(one_line(line).encode() + b"\n" for line in lines))
                sys.stdout.buffer.flush()
    notes.tell()
    return EXIT_OK


class _Notes:
    """Counts what a user should know about the whole text, said once at the end."""

    def __init__(self) -> None:
        self.lines = 0
        self.at_limit: list[int] = []

    def add(self, translations: list[Translation]) -> None:
        for number, translation in enumerate(translations, start=self.lines + 1):
            if translation.at_limit:
                self.at_limit.append(number)
        self.lines += len(translations)

    def tell(self) -> None:
        if self.at_limit:
            print(
                f"transformer-mt: note: {len(self.at_limit)} of {self.lines} translations were cut off at "
                f"their longest length, first in line {self.at_limit[0]}; see --max-len-a and --max-len-b",
                file=sys.stderr,
            )


def _translate(
    translator: Translator, chunks: Iterable[list[str]], notes: _Notes, bar: Any
) -> Iterator[list[str]]:
    """Output lines, chunk by chunk."""
    for chunk in chunks:
        first = notes.lines + 1
        translations = translator.translate(chunk, first_line=first)
        notes.add(translations)
        bar.update(len(chunk))
        if translator.decoding.nbest == 1:
            yield [translation.text for translation in translations]
        else:
            yield [
                f"{number}\t{rank}\t{candidate.score:.6f}\t{candidate.text}"
                for number, translation in enumerate(translations, start=first)
                for rank, candidate in enumerate(translation.nbest, start=1)
            ]


def _file_chunks(files: list[str], size: int) -> Iterator[list[str]]:
    from transformer_mt.text.lines import read_lines

    lines = itertools.chain.from_iterable(read_lines(file) for file in files)
    while chunk := list(itertools.islice(lines, size)):
        yield chunk


def _stdin_chunks() -> Iterator[list[str]]:
    """What has arrived so far, again and again: a slow writer is answered at once, a fast one in batches."""
    waiting: queue.Queue[_Item] = queue.Queue(_CHUNK)
    threading.Thread(target=_read_into, args=(sys.stdin.buffer, waiting), daemon=True).start()
    item = waiting.get()
    while isinstance(item, str):
        chunk = [item]
        item = ""
        while len(chunk) < _CHUNK:
            try:
                item = waiting.get(timeout=_LINGER)
            except queue.Empty:
                break
            if not isinstance(item, str):
                break
            chunk.append(item)
        yield chunk
        if isinstance(item, str):
            item = waiting.get()
    if item is not None:
        raise item


def _read_into(stream: BinaryIO, waiting: queue.Queue[_Item]) -> None:
    """Lines of a stream, then None, or the error that ended it."""
    from transformer_mt.text.lines import decode_lines

    try:
        for line in decode_lines(stream, "stdin"):
            waiting.put(line)
        waiting.put(None)
    except Exception as error:  # raised again by the thread that translates
        waiting.put(error)


def refuse_overwriting(flag: str, output: str | None, files: Sequence[str]) -> None:
    """An output that cannot be written, or that is an input, is refused before any work is done."""
    if output is None:
        return
    folder = Path(output).resolve().parent
    if not folder.is_dir():
        raise ConfigError(f"{flag} {output}: there is no folder {folder}; create it first")
    if Path(output).is_dir():
        raise ConfigError(f"{flag} {output}: is a folder; name a file")
    for file in files:
        if os.path.exists(file) and os.path.exists(output) and os.path.samefile(file, output):
            raise ConfigError(f"{flag} {output}: is also the input {file}; name another file")
