"""The `transformer-mt` command: finds the verb, runs it, turns errors into one line and an exit code.

Each verb is a module of this folder with `HELP`, `add_arguments(parser)` and `run(args) -> exit code`; verbs
import torch and the stages inside `run`, so that `--help` answers at once. stdout carries data, stderr
the rest.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import errno
import fcntl
import importlib
import io
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn, TextIO

from transformer_mt import __version__
from transformer_mt.cli.stream_output import naming
from transformer_mt.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_TERMINATED, ConfigError, UserError

VERBS = (
    "prepare",
    "filter",
    "train",
    "translate",
    "score",
    "evaluate",
    "compare",
    "study",
    "average",
    "doctor",
)
# A scheduler sends SIGUSR1 some time before it ends a job, a terminal that is closed SIGHUP.
_TERMINATING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
# What several processes can do together, when torchrun starts them.
_SHARED = ("train", "translate")
_EXIT_CODES = """\
exit codes: 0 fine, 2 usage or recipe, 3 data, 4 training diverged, 5 checkpoint, 6 another process was lost,
130/143 interrupted (training: saved, the same command continues)"""


class _Parser(argparse.ArgumentParser):
    """Usage errors are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")


class _VerbParser(_Parser):
    """One verb: flags and other words may be mixed, and a misspelt flag is told its nearest name."""

    _mixing = False

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        # parse_known_intermixed_args comes back here for each of its two passes.
        if self._mixing:
            return super().parse_known_args(args, namespace)
        self._mixing = True
        parsed, unknown = self.parse_known_intermixed_args(args, namespace)
        self._mixing = False
        if unknown:
            flags = [*re.findall(r"--[\w-]+", self.format_usage()), "--help"]
            typed = next((word.partition("=")[0] for word in unknown if word.startswith("--")), "")
            near = difflib.get_close_matches(typed, flags, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return parsed, unknown


def build_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The command line that these words ask for, without importing what the verbs need to run.

    Flags of verbs that are not among the words are left out: there are ten times as many.
    """
    parser = _Parser(
        prog="transformer-mt",
        description="Train, translate with and score encoder-decoder translation models.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_VerbParser)
    for name in VERBS:
        module = importlib.import_module(f"transformer_mt.cli.{name}")
        verb = verbs.add_parser(
            name,
            help=module.HELP,
            description=module.HELP,
            epilog=_EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name in words:
            module.add_arguments(verb)
        verb.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb. Returns the exit code; only a fault of the program itself shows a traceback.

    Args:
        argv: words of the command line; None are those of this process, which ends after it.
    """
    _replace_closed_streams()
    _wait_for_streams()
    _speak_utf_8()
    before = signal.getsignal(signal.SIGINT)
    with _terminable():
        code = _run(argv)
    if argv is None and _is_one_of_several():
        # All is written and closed. An interpreter that ends while threads of a process group are still about
        # may abort ("terminate called"), and torchrun would take a training that is done for one that failed.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):  # told already, or nobody reads it
                stream.flush()
        os._exit(code)
    if argv is not None and before is not None:
        signal.signal(signal.SIGINT, before)  # the caller lives on, and so must its Ctrl-C
    return code


def _is_one_of_several() -> bool:
    """Whether torchrun started other processes beside this one."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


def _run(argv: Sequence[str] | None) -> int:
    try:
        words = sys.argv[1:] if argv is None else argv
        args = build_parser(words).parse_args(words)
        logging.basicConfig(format="%(message)s", stream=sys.stderr)
        logging.getLogger("transformer_mt").setLevel(logging.INFO)
        if args.verb not in _SHARED and _is_one_of_several():
            raise ConfigError(f"{args.verb}: works in one process; start it without torchrun")
        code: int = args.run(args)
        with naming("stdout"):
            sys.stdout.flush()
        return code
    except UserError as error:
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:
        _drop_unwritten()  # the reader of our output has seen enough
        return EXIT_OK
    except OSError as error:
        _drop_unwritten()
        if error.errno == errno.EBADF:
            return _fail("stdin or stdout is closed; open it, or name a file", 3)
        where = f"{error.filename}: " if error.filename else ""
        return _fail(
            f"{where}{error.strerror or error}; check the path, the permissions and the free space", 3
        )
    except KeyboardInterrupt as stop:
        for number in (signal.SIGINT, *_TERMINATING):
            signal.signal(number, signal.SIG_IGN)
        _drop_unwritten()
        if isinstance(stop, _Terminated):
            return _fail("; ".join(("terminated", *map(str, stop.args))), EXIT_TERMINATED)
        return _fail("; ".join(("interrupted", *map(str, stop.args))), EXIT_INTERRUPTED)


class _Terminated(KeyboardInterrupt):
    """SIGTERM or its like came: it ends a verb as Ctrl-C does, so that half-written files are removed."""


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise _Terminated

    # What nohup has this process ignore stays ignored.
    heeded = [number for number in _TERMINATING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _replace_closed_streams() -> None:
    """Where the shell closed a standard stream, Python has None and the next file would take its number.

    The stand-ins of stdin and stdout are open the wrong way: to use them is an error, as it should be.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), "r", encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None or not _takes_text(sys.stderr):
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _takes_text(stream: TextIO) -> bool:
    """False where a shell has put its script, open for reading, in the place of a stream that was closed."""
    try:
        return fcntl.fcntl(stream.fileno(), fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except (OSError, ValueError):
        return True  # an object of the caller's


def _wait_for_streams() -> None:
    """A parent may hand on pipes that do not wait, where "nothing yet" is taken for the end of the text."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.set_blocking(stream.fileno(), True)


def _speak_utf_8() -> None:
    """What is printed has names of files and texts in it, which a code page may not hold."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _drop_unwritten() -> None:
    """Where stdout takes no more text, Python must not try to flush into it again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    for line in message.split("\n"):
        print(f"transformer-mt: error: {line}", file=sys.stderr)
    return code
