"""Sources of parallel text: every kind, and every way in which one can be wrong."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from transformer_mt.errors import DataError
from transformer_mt.text.corpus import place, read_pairs, source_fingerprint

PAIRS = [("ein Haus", "a house"), ("", "b "), (" c\u2028d", "\u3000"), ("&amp; \x00", "e")]


def _prefix(folder: Path, src: str, tgt: str) -> None:
    (folder / "train.de").write_bytes(src.encode())
    (folder / "train.en").write_bytes(tgt.encode())


def _read(folder: Path, source: str) -> list[tuple[str, str]]:
    return list(read_pairs(source, folder, "de", "en"))


def _jsonl(folder: Path, records: list[object]) -> None:
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    (folder / "train.jsonl").write_text(
        "".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n"
    )


def test_two_files(tmp_path: Path) -> None:
    """B019, B148, B149: blank lines stay where they are, nothing is dropped."""
    _prefix(tmp_path, *("".join(f"{pair[side]}\n" for pair in PAIRS) for side in (0, 1)))
    assert _read(tmp_path, "train") == PAIRS


def test_a_final_newline_may_be_missing_on_one_side(tmp_path: Path) -> None:
    """B008: a good corpus is not refused and keeps its last pair."""
    _prefix(tmp_path, "a\nb", "c\nd\n")
    assert _read(tmp_path, "train") == [("a", "c"), ("b", "d")]


def test_packed_sides_may_differ(tmp_path: Path) -> None:
    """One side plain, the other packed."""
    (tmp_path / "train.de").write_bytes(b"a\n")
    (tmp_path / "train.en.xz").write_bytes(lzma.compress(b"b\n"))
    assert _read(tmp_path, "train") == [("a", "b")]


@pytest.mark.parametrize(("src", "tgt", "counts"), [("a\nb\nc\n", "d\n", (3, 1)), ("a\n", "b\nc\n", (1, 2))])
def test_unequal_sides(tmp_path: Path, src: str, tgt: str, counts: tuple[int, int]) -> None:
    """B148: both files and both counts are named."""
    _prefix(tmp_path, src, tgt)
    with pytest.raises(DataError, match=rf"train.de has {counts[0]} lines but .*train.en has {counts[1]};"):
        _read(tmp_path, "train")


def test_missing_and_ambiguous_files(tmp_path: Path) -> None:
    """The paths tried are named, and none is chosen silently."""
    with pytest.raises(DataError, match=r"train.de: no such file, nor with .gz, .xz; check data.root"):
        _read(tmp_path, "train")
    with pytest.raises(DataError, match=r"train.tsv.gz: no such file; check data.root"):
        _read(tmp_path, "train.tsv.gz")
    _prefix(tmp_path, "a\n", "b\n")
    (tmp_path / "train.en.gz").write_bytes(b"")
    with pytest.raises(DataError, match=r"train.en and .*train.en.gz both exist; remove one"):
        _read(tmp_path, "train")


def test_tsv(tmp_path: Path) -> None:
    """B156: spaces and quotes are text; there is no quoting."""
    (tmp_path / "train.tsv").write_bytes(b'"a\tb" \nc \t D\n')
    assert _read(tmp_path, "train.tsv") == [('"a', 'b" '), ("c ", " D")]
    (tmp_path / "train.tsv.xz").write_bytes(lzma.compress(b"NA\tnull\n"))
    assert _read(tmp_path, "train.tsv.xz") == [("NA", "null")]


@pytest.mark.parametrize(
    ("line", "columns"), [("a\tb\tc", "3 columns"), ("a b", "1 column;"), ("", "1 column;")]
)
def test_tsv_with_another_number_of_columns(tmp_path: Path, line: str, columns: str) -> None:
    """B156: a TAB inside a sentence must not shift columns."""
    (tmp_path / "train.tsv").write_bytes(f"a\tb\n{line}\n".encode())
    with pytest.raises(DataError, match=rf"train.tsv:2: must be source TAB target, but has {columns}"):
        _read(tmp_path, "train.tsv")


@pytest.mark.parametrize(
    "record",
    [
        {"src": "a\tb", "tgt": "c", "id": 1},
        {"translation": {"en": "c", "de": "a\tb"}},
        {"translation": {"src": "a\tb", "tgt": "c"}, "id": None},
        {"en": "c", "de": "a\tb"},
    ],
)
def test_jsonl(tmp_path: Path, record: object) -> None:
    """The three layouts in use, and a TAB in the text."""
    _jsonl(tmp_path, [record])
    assert _read(tmp_path, "train.jsonl") == [("a\tb", "c")]


def test_line_ends_inside_json_become_spaces(tmp_path: Path) -> None:
    """One pair is one line everywhere after this."""
    _jsonl(tmp_path, [{"src": "a\nb", "tgt": "c\r\nd"}])
    assert _read(tmp_path, "train.jsonl") == [("a b", "c  d")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON"),
        ("", "is not JSON"),
        ("[" * 100_000, "is nested too deeply to be read; write one flat object a line"),
        ("[1]", "must be an object, but is an array; write one object a line"),
        ('{"de": "a", "fr": "b"}', "has no column `en`, only de, fr; needed are src and tgt, de and en, or"),
        ("{}", "has no column `de`, only none;"),
        ('{"src": null, "tgt": "a"}', "`src` must be text, but is null; mend it"),
        ('{"src": "a", "tgt": "\\ud800"}', "`tgt` holds half of a surrogate pair"),
    ],
)
def test_bad_jsonl_names_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    """Each fault of a record, found at its line."""
    (tmp_path / "train.jsonl").write_bytes(b'{"src": "a", "tgt": "b"}\n' + line.encode() + b"\n")
    with pytest.raises(DataError, match=rf"train.jsonl:2: {message}"):
        _read(tmp_path, "train.jsonl")


def test_where_a_pair_stands(tmp_path: Path) -> None:
    """Findings are reported as file:line."""
    _prefix(tmp_path, "a\n", "b\n")
    assert place("train", tmp_path, "de", "en", 7) == f"{tmp_path}/train.de:7"
    assert place("hf:name@train", tmp_path, "de", "en", 7) == "hf:name@train:7"


def test_the_fingerprint_is_of_raw_bytes(tmp_path: Path) -> None:
    """B153: any changed byte of either side changes it; the folder's name does not."""
    _prefix(tmp_path, "a\n", "b\n")
    first = source_fingerprint("train", tmp_path, "de", "en")
    (tmp_path / "moved").mkdir()
    _prefix(tmp_path / "moved", "a\n", "b\n")
    assert source_fingerprint("moved/train", tmp_path, "de", "en") == first
    assert source_fingerprint("train", tmp_path, "en", "de") != first
    _prefix(tmp_path, "a\n", "b")
    assert source_fingerprint("train", tmp_path, "de", "en") != first


def test_one_file_cannot_be_both_sides(tmp_path: Path) -> None:
    """Pins a model that is trained to copy because a recipe names one language twice, or a link."""
    (tmp_path / "train.de").write_text("eins\n", encoding="utf-8")
    (tmp_path / "train.en").symlink_to("train.de")
    (tmp_path / "train.tsv").write_text("eins\tein\n", encoding="utf-8")
    (tmp_path / "train.jsonl").write_text('{"de": "eins"}\n', encoding="utf-8")
    (tmp_path / "pairs.jsonl").write_text('{"src": "eins", "tgt": "ein"}\n', encoding="utf-8")
    for tgt_lang in ("de", "en"):
        with pytest.raises(DataError, match=r"train.de: would be source and target at once; name two files"):
            list(read_pairs("train", tmp_path, "de", tgt_lang))
    with pytest.raises(DataError, match=r"train.jsonl:1: its column `de` would be source and target at once"):
        list(read_pairs("train.jsonl", tmp_path, "de", "de"))
    for source in ("train.tsv", "pairs.jsonl"):
        assert list(read_pairs(source, tmp_path, "de", "de")) == [("eins", "ein")]
