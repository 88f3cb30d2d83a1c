"""Digests are remembered for files that have not changed, and for no others."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from transformer_mt.data import known_files
from transformer_mt.data.known_files import KnownFiles


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that counts as large, and as one that was not just written."""
    monkeypatch.setattr(known_files, "_LARGE", 10)
    monkeypatch.setattr(known_files, "_SETTLED_SECONDS", -1.0)
    path = tmp_path / "text.de"
    path.write_bytes(b"many lines\n")
    return path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were really read."""
    seen: list[Path] = []
    real = known_files.file_digest
    monkeypatch.setattr(known_files, "file_digest", lambda path: (seen.append(path), real(path))[1])
    return seen


def test_a_large_file_is_read_once(text: Path, read: list[Path], tmp_path: Path) -> None:
    expected = hashlib.sha256(b"many lines\n").digest()
    for _ in range(3):
        assert KnownFiles(tmp_path / "new" / "record").digest(text) == expected
    assert read == [text]


def test_a_file_that_changed_is_read_again(text: Path, read: list[Path], tmp_path: Path) -> None:
    """Also where its size is the same and its time was put back."""
    record, before = tmp_path / "record", text.stat()
    KnownFiles(record).digest(text)
    text.write_bytes(b"other line\n")
    os.utime(text, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert KnownFiles(record).digest(text) == hashlib.sha256(b"other line\n").digest()
    other = tmp_path / "moved"
    other.write_bytes(b"third line\n")
    other.rename(text)
    assert KnownFiles(record).digest(text) == hashlib.sha256(b"third line\n").digest()
    assert len(read) == 3


def test_small_files_and_young_ones_are_read_each_time(
    text: Path, read: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was just written may be written again within the same tick of the clock."""
    small = tmp_path / "small"
    small.write_bytes(b"x")
    monkeypatch.setattr(known_files, "_SETTLED_SECONDS", 1000.0)
    for _ in range(2):
        for path in (small, text):
            KnownFiles(tmp_path / "record").digest(path)
    assert read == [small, text, small, text]
    assert not (tmp_path / "record").exists()


@pytest.mark.parametrize("damage", [b"{", b"[]", b'{"text.de": 5}', b"\xff"])
def test_a_damaged_record_is_an_empty_one(
    text: Path, read: list[Path], tmp_path: Path, damage: bytes
) -> None:
    record = tmp_path / "record"
    record.write_bytes(damage)
    KnownFiles(record).digest(text)
    KnownFiles(record).digest(text)
    assert read == [text]


def test_a_record_that_cannot_be_written_costs_time_alone(
    text: Path, read: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for _ in range(2):
        assert KnownFiles(tmp_path / "file" / "record").digest(text)
    assert read == [text, text]
