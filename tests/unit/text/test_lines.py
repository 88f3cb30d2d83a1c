"""Reading and writing lines: where a line ends, what is refused, what survives an interruption."""

from __future__ import annotations

import gzip
import io
import lzma
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from transformer_mt.errors import DataError
from transformer_mt.text.lines import line_blocks, one_line, read_lines, write_lines

# Everything that str.splitlines() or universal newlines would take for the end of a line.
ODD = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\rj"


def _read(folder: Path, content: bytes) -> list[str]:
    path = folder / "text"
    path.write_bytes(content)
    return list(read_lines(path))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"a\n\n\nb\n\n", ["a", "", "", "b", ""]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\r\n", ["a\r"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b"\xef\xbb\xbf\xef\xbb\xbfa", ["\ufeffa"]),
        (b"a\x00b\n\x00\n", ["a\x00b", "\x00"]),
        (b" a \t\n", [" a \t"]),
    ],
)
def test_lines_end_at_newline_bytes_only(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    """B001, B004, B007, B008, B013, B023, B024: the number of lines is that of `wc -l`."""
    assert _read(tmp_path, content) == lines


def test_other_line_separators_stay_in_the_line(tmp_path: Path) -> None:
    """B002: U+2028, U+0085, VT, FF, FS, GS, RS and a lone CR end no line."""
    assert _read(tmp_path, f"{ODD}\nnext\n".encode()) == [ODD, "next"]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_packed_files_are_read_by_their_name(tmp_path: Path, suffix: str, pack: object) -> None:
    """A packed file gives the lines of the plain one."""
    path = tmp_path / f"text{suffix}"
    path.write_bytes(pack(f"{ODD}\n第二\n".encode()))  # type: ignore[operator]
    assert list(read_lines(path)) == [ODD, "第二"]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("damage", ["cut", "not an archive", "flipped"])
def test_a_broken_archive_is_an_error(tmp_path: Path, suffix: str, pack: object, damage: str) -> None:
    """A half-fetched archive must not pass as a shorter text."""
    path = tmp_path / f"text{suffix}"
    packed: bytes = pack(os.urandom(4000).hex().encode())  # type: ignore[operator]
    middle = len(packed) // 2
    path.write_bytes(
        {
            "cut": packed[:middle],
            "not an archive": b"plain text\n",
            "flipped": packed[:middle] + bytes([packed[middle] ^ 255]) + packed[middle + 1 :],
        }[damage]
    )
    with pytest.raises(DataError, match=rf"text{suffix}: the archive is damaged or cut short"):
        list(read_lines(path))


def test_bad_utf8_names_file_line_and_byte(tmp_path: Path) -> None:
    """B020: a Latin-1 byte deep in a corpus."""
    with pytest.raises(DataError, match=r"text:3: byte 4 of the line \(0xe9\) is not UTF-8; convert"):
        _read(tmp_path, "ä\nb\ncaf".encode() + b"\xe9\nd\n")


def test_blocks_do_not_show(tmp_path: Path) -> None:
    """A line across two blocks of a file is one line, and line numbers count all blocks before."""
    lines = [f"{number} " + "ä" * (number % 700) for number in range(8000)]
    content = "\r\n".join(lines).encode()
    assert len(content) > 4 << 20
    assert _read(tmp_path, content) == lines
    with pytest.raises(DataError, match=r"text:8000: byte 6 of the line \(0xff\)"):
        _read(tmp_path, content.replace(b"\n7999 ", b"\n7999 \xff"))


def test_bad_utf8_after_a_byte_order_mark_counts_from_the_text(tmp_path: Path) -> None:
    """The mark is dropped before bytes are counted."""
    with pytest.raises(DataError, match=r"text:1: byte 2 of the line \(0xff\)"):
        _read(tmp_path, b"\xef\xbb\xbfa\xff\n")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_wide_encodings_are_refused_by_name(tmp_path: Path, encoding: str) -> None:
    """B024: UTF-16 without a mark would pass as UTF-8 full of NUL."""
    if encoding == "utf-32-le":
        content = "\ufeffhello world\n".encode(encoding)
    else:
        content = "hello world\n".encode(encoding)
    with pytest.raises(DataError, match=r"text: is UTF-(16|32), but text must be UTF-8"):
        _read(tmp_path, content)


def test_a_short_line_with_nul_is_not_called_utf16(tmp_path: Path) -> None:
    """Text may hold NUL; only a whole first line of alternate NULs is another encoding."""
    assert _read(tmp_path, b"a\x00b\x00 some text\n") == ["a\x00b\x00 some text"]


def test_missing_file_and_folder(tmp_path: Path) -> None:
    """The path is named."""
    with pytest.raises(DataError, match=r"nowhere: cannot be read: No such file"):
        list(read_lines(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        list(read_lines(tmp_path))


class _Pipe(io.BufferedIOBase):
    """A stream that gives these parts, one a read."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = list(parts)

    def read1(self, size: int = -1) -> bytes:
        return self._parts.pop(0) if self._parts else b""


def test_a_stream_gives_each_line_as_it_comes() -> None:
    """B179: a line is there once its end is, whatever has come of the next; bytes of a character may part."""
    pipe = _Pipe(b"\xef\xbb", b"\xbfa\nb", b"c", b"d\r", b"\n\ne\xc3", b"\xa4")
    assert list(line_blocks(pipe, "stdin")) == [[], ["a"], [], [], ["bcd", ""], [], ["e\u00e4"]]
    assert list(line_blocks(_Pipe(b"a\n", b"b\n"), "stdin")) == [["a"], ["b"], []]


def test_what_comes_before_bad_bytes_is_not_lost() -> None:
    """B020: of a stream, which nobody can read twice; and the name and number in the message are right."""
    blocks = line_blocks(_Pipe(b"a\nb\n", b"c\nd", b"\xff\ne\n"), "stdin")
    assert [next(blocks), next(blocks), next(blocks)] == [["a", "b"], ["c"], []]
    with pytest.raises(DataError, match=r"^stdin:4: byte 2 of the line \(0xff\)"):
        next(blocks)
    whole = line_blocks(_Pipe(b"a\nb\nc\xffd\ne\n"), "stdin")
    assert next(whole) == ["a", "b"]
    with pytest.raises(DataError, match=r"^stdin:3: byte 2"):
        next(whole)


def test_one_line_cannot_break_a_file(tmp_path: Path) -> None:
    """A newline that byte fallback generates must not shift the lines after it."""
    assert one_line("a\nb\r\nc") == "a b  c"
    write_lines(tmp_path / "out", ["a\nb", "", ODD])
    assert list(read_lines(tmp_path / "out")) == ["a b", "", ODD.replace("\r", " ")]
    assert (tmp_path / "out").read_bytes().count(b"\n") == 3


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    """B185: output is all or nothing, and input may be the output."""
    path = tmp_path / "out"
    write_lines(path, ["old"])

    def fail() -> Iterator[str]:
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_lines(path, fail())
    assert path.read_bytes() == b"old\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    write_lines(path, (line + "er" for line in read_lines(path)))
    assert path.read_bytes() == b"older\n"


def test_written_files_have_ordinary_permissions(tmp_path: Path) -> None:
    """A temporary file is private; the result must not be."""
    path = tmp_path / "out"
    write_lines(path, ["a"])
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode


def test_what_cannot_be_replaced_is_written_to(tmp_path: Path) -> None:
    """`--output /dev/null` must not turn the device into a file, nor a link into a copy."""
    (tmp_path / "link").symlink_to("out")
    write_lines(tmp_path / "out", ["old"])
    write_lines(tmp_path / "link", ["new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "out").read_bytes() == b"new\n"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_lines(tmp_path / "pipe", ["a", "b"])
    assert os.read(reader, 100) == b"a\nb\n"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(IsADirectoryError, match="directory"):
        write_lines(tmp_path, ["a"])


def test_a_full_disk_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's own error names no file."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*out'"):
        write_lines(tmp_path / "out", ["a"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_device_is_told_by_its_name() -> None:
    """It is written to and not replaced, so that it fails elsewhere."""
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_lines("/dev/full", ["a"])
