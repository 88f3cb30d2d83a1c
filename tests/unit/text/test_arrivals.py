"""Buffers of lines: full ones of what lies there, and at once what comes slowly."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from transformer_mt.errors import DataError
from transformer_mt.text import arrivals
from transformer_mt.text.arrivals import Line, arriving_lines, is_regular


def _texts(buffers: Iterator[list[Line]]) -> list[list[str]]:
    return [[line.text for line in buffer] for buffer in buffers]


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[str, io.FileIO]]:
    """A FIFO by its name, and the end that a test writes into."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # or opening it for writing would wait
    writer = io.FileIO(path, "w")
    yield str(path), writer
    os.close(reader)
    if not writer.closed:
        writer.close()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_files_give_full_buffers_across_their_ends(tmp_path: Path, size: int) -> None:
    """Small files are sorted together; each line knows its own file and number."""
    for name, content in (("a", "1\n2\n3\n"), ("b", ""), ("c", "4\n\n6")):
        (tmp_path / name).write_text(content, encoding="utf-8")
    files = [str(tmp_path / name) for name in "abc"]
    buffers = list(arriving_lines(files, size))
    assert [len(buffer) for buffer in buffers[:-1]] == [size] * (len(buffers) - 1)
    lines = [line for buffer in buffers for line in buffer]
    assert [line.text for line in lines] == ["1", "2", "3", "4", "", "6"]
    assert [(Path(line.file).name, line.number) for line in lines] == [
        *(("a", 1), ("a", 2), ("a", 3)),
        *(("c", 1), ("c", 2), ("c", 3)),
    ]


def test_a_line_in_a_pipe_is_given_before_the_next_is_sent(pipe: tuple[str, io.FileIO]) -> None:
    """B179: also when part of the next line is there already, and never by halves."""
    path, writer = pipe
    buffers = arriving_lines([path], 100)
    writer.write(b"one\ntwo\nthr")
    assert [line.text for line in next(buffers)] == ["one", "two"]
    writer.write(b"ee\n")
    assert [line.text for line in next(buffers)] == ["three"]
    writer.write(b"four")
    writer.close()
    assert [line.text for line in next(buffers)] == ["four"]
    assert list(buffers) == []


def test_a_writer_without_a_pause_waits_for_a_full_buffer_only_so_long(
    pipe: tuple[str, io.FileIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B179: lines every few milliseconds must not keep the first one waiting for the thousandth."""
    monkeypatch.setattr(arrivals, "_LINGER_SECONDS", 1.0)
    path, writer = pipe
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            writer.write(b"line\n")
            time.sleep(0.005)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert 2 <= len(next(arriving_lines([path], 100_000))) < 10_000
    finally:
        stop.set()
        thread.join()


def test_what_is_read_goes_out_before_a_pipe_is_opened(tmp_path: Path) -> None:
    """Whoever will write into the pipe may wait for these lines first."""
    (tmp_path / "file").write_bytes(b"a\n")
    os.mkfifo(tmp_path / "fifo")
    buffers = arriving_lines([str(tmp_path / "file"), str(tmp_path / "fifo")], 100)
    assert [line.text for line in next(buffers)] == ["a"]


def test_what_comes_before_an_error_is_given_first(tmp_path: Path) -> None:
    """B020: of a stream nothing can be read twice."""
    (tmp_path / "good").write_bytes(b"a\nb\n")
    (tmp_path / "bad").write_bytes(b"c\n\xff\n")
    buffers = arriving_lines([str(tmp_path / "good"), str(tmp_path / "bad")], 100)
    assert [line.text for line in next(buffers)] == ["a", "b", "c"]
    with pytest.raises(DataError, match="bad:2: byte 1"):
        next(buffers)


def test_what_is_regular(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is, a pipe and a device are not; a missing file is told when it is opened."""
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    assert is_regular(str(tmp_path / "file"))
    assert is_regular(str(tmp_path / "missing"))
    assert not is_regular(str(tmp_path / "fifo"))
    assert not is_regular(os.devnull)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\nc")))
    assert is_regular("-")
    assert _texts(arriving_lines(["-"], 2)) == [["a", "b"], ["c"]]
