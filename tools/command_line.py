"""What the commands of this folder share: what a user can mend is one line and an exit code, no traceback."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from transformer_mt.errors import ConfigError, UserError

EXIT_OF_FILES = 3


class Parser(argparse.ArgumentParser):
    """Usage errors are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def count(text: str) -> int:
    """A whole number from 1 on, for `type` of an argument.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number from 1 on")
    return int(text)


@contextmanager
def one_line_errors(tool: str) -> Iterator[None]:
    """Ends the program with the code of a UserError, or 3 where the system refuses a file.

    Raises:
        SystemExit: such an error came.
    """
    try:
        yield
    except UserError as error:
        message, code = str(error), error.exit_code
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        message = f"{where}{error.strerror or error}; check the path, the permissions and the free space"
        code = EXIT_OF_FILES
    else:
        return
    print(f"{tool}: error: {message}", file=sys.stderr)
    raise SystemExit(code)


def writable(path: Path, flag: str) -> Path:
    """The file named by a flag, checked before hours of work whose result it is to take.

    Raises:
        ConfigError: it cannot be written.
    """
    existed = path.exists()
    try:
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
        path.open("ab").close()
    except OSError as error:
        raise ConfigError(f"{flag} {path}: cannot be written: {error.strerror}; name another file") from None
    if not existed:
        path.unlink()
    return path
