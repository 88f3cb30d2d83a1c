"""The one reader and the one writer of text lines.

A line ends at the byte "\\n" and nowhere else, so that line numbers agree with every other byte-exact tool
and two sides of a corpus cannot drift apart. Text is strict UTF-8. Knows nothing of languages or tokens.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import lzma
import os
import tempfile
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from transformer_mt.errors import DataError

PACKED_SUFFIXES = ("", ".gz", ".xz")
_BUFFER_BYTES = 1 << 18
_BLOCK_BYTES = 1 << 20
_UTF8_BOM = b"\xef\xbb\xbf"
# Longest mark first: UTF-32-LE begins with the mark of UTF-16-LE.
_OTHER_ENCODINGS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


# White space, line and paragraph separators, control and format (zero-width) characters.
_BLANK_CATEGORIES = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})
# Letters, marks and a symbol that are drawn as nothing: fillers of Hangul, the empty Braille pattern, joiners
# and vowels that only order others, and selectors of variants, which change what stands before them.
_DRAWN_AS_NOTHING = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)


def is_blank(text: str) -> bool:
    """Whether a person sees nothing of the text."""
    if text and "!" <= text[0] <= "~":
        return False  # for most texts this answers
    return all(map(_shows_nothing, text))


def _shows_nothing(character: str) -> bool:
    return unicodedata.category(character) in _BLANK_CATEGORIES or character in _DRAWN_AS_NOTHING


def trimmed(text: str) -> str:
    """The text without what a person does not see at either end."""
    start, end = 0, len(text)
    if end and not is_blank(text[0]) and not is_blank(text[-1]):
        return text
    while start < end and is_blank(text[start]):
        start += 1
    while end > start and is_blank(text[end - 1]):
        end -= 1
    return text[start:end]


def read_lines(path: str | Path) -> Iterator[str]:
    """Lines of a plain, `.gz` or `.xz` file (by its name), without their ends.

    Raises:
        DataError: missing or unreadable file, broken archive, bytes that are not UTF-8 (file:line: byte).
    """
    with open_bytes(path) as stream:
        yield from itertools.chain.from_iterable(line_blocks(stream, str(path)))


@contextlib.contextmanager
def open_bytes(path: str | Path) -> Iterator[io.BufferedReader]:
    """The unpacked bytes of a plain, `.gz` or `.xz` file.

    Raises:
        DataError: missing or unreadable file, broken archive; while it is read too.
    """
    try:
        with _open(Path(path)) as stream:
            yield stream
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the archive is damaged or cut short ({error}); fetch it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; check the path") from None


def line_blocks(stream: io.BufferedIOBase, name: str) -> Iterator[list[str]]:
    """Lines of a byte stream, each as soon as it is complete: a block, maybe empty, for every read.

    A byte-order mark at the start and one "\\r" before each end are dropped; a final newline ends the last
    line and does not start another.

    Args:
        stream: bytes; standard input is `sys.stdin.buffer`.
        name: what error messages call the stream.

    Raises:
        DataError: bytes that are not UTF-8, with line and byte; the lines before them come first.
    """
    number = 1
    for block in _whole_lines(stream):
        lines, error = _lines_of(block, name, number)
        yield lines
        if error is not None:
            raise error
        number += len(lines)


def _whole_lines(stream: io.BufferedIOBase) -> Iterator[bytes]:
    """The lines that every read completes, if any; decoding and splitting many at a time is fast."""
    begun: list[bytes] = []
    # read1 waits for what is there, not for a full block: the stream may be a pipe.
    while data := stream.read1(_BLOCK_BYTES):
        end = data.rfind(b"\n") + 1
        if end:
            yield b"".join([*begun, data[:end]])
            begun = [data[end:]]
        else:
            yield b""
            begun.append(data)
    yield b"".join(begun)


def _lines_of(block: bytes, name: str, number: int) -> tuple[list[str], DataError | None]:
    """The lines of a block, of which the first has this number in the stream, up to one that is not UTF-8."""
    if number == 1:
        _refuse_other_encodings(block[: block.find(b"\n") + 1] or block, name)
        block = block.removeprefix(_UTF8_BOM)
    broken = None
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        start = block.rfind(b"\n", 0, error.start) + 1
        text = block[:start].decode("utf-8")
        broken = DataError(
            f"{name}:{number + text.count(chr(10))}: byte {error.start - start + 1} of the line "
            f"(0x{block[error.start]:02x}) is not UTF-8; convert the text with iconv or mend the line"
        )
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()  # the last end of line starts no other
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines, broken


def one_line(text: str) -> str:
    """The text with "\\n" and "\\r" as spaces, so that it stays one line of a file."""
    return text.replace("\n", " ").replace("\r", " ")


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write one line per text, all or nothing: an earlier file stays whole until the new one is on disk.

    A link stays a link, and a device or pipe, which cannot be replaced, is written to.
    """
    path = Path(path)
    try:
        if path.is_file() or not path.exists():
            _replace(Path(os.path.realpath(path)), lines)
        else:
            with path.open("wb") as stream:
                _write(stream, lines)
    except OSError as error:
        error.filename = error.filename or str(path)  # the system names no file when the disk is full
        raise


def _replace(path: Path, lines: Iterable[str]) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            _write(stream, lines)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _write(stream: BinaryIO, lines: Iterable[str]) -> None:
    stream.writelines(one_line(line).encode("utf-8") + b"\n" for line in lines)


def _open(path: Path) -> io.BufferedReader:
    # Archives are buffered once more: their own classes find line ends in Python, line by line.
    if path.suffix == ".gz":
        return io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb")), _BUFFER_BYTES)
    if path.suffix == ".xz":
        return io.BufferedReader(cast(io.RawIOBase, lzma.open(path, "rb")), _BUFFER_BYTES)
    return path.open("rb")


def _refuse_other_encodings(first: bytes, name: str) -> None:
    """UTF-16 without a mark passes as UTF-8 full of NUL, so alternate NUL bytes are looked for too."""
    found = next((encoding for mark, encoding in _OTHER_ENCODINGS if first.startswith(mark)), None)
    body = first[: len(first) // 2 * 2]
    halves = (body[::2], body[1::2])
    if found is None and len(body) >= 8 and any(not any(a) and all(b) for a, b in (halves, halves[::-1])):
        found = "UTF-16"
    if found:
        raise DataError(f"{name}: is {found}, but text must be UTF-8; convert it with iconv -t UTF-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
