"""What `translate` reads: text and JSON Lines, prefixes beside them, and what is refused."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.cli.line_flags import reads_json
from transformer_mt.cli.source_lines import SourceLine, SourceLines
from transformer_mt.errors import DataError


def _lines(*files: Path, size: int = 100, **options: Any) -> list[SourceLine]:
    sources = SourceLines(list(map(str, files)), **options)
    return [line for buffer in sources.buffers(size) for line in buffer]


def _file(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_bytes(content.encode())
    return path


def test_the_name_of_each_file_tells_its_kind(tmp_path: Path) -> None:
    """Packed JSON Lines too; what is named explicitly counts for all files."""
    text = _file(tmp_path, "a.txt", '{"src": "a"}\n')
    lines = tmp_path / "b.jsonl.gz"
    lines.write_bytes(gzip.compress(b'{"src": "b"}\n'))
    assert [line.text for line in _lines(text, lines)] == ['{"src": "a"}', "b"]
    assert [line.text for line in _lines(text, lines, kind="jsonl")] == ["a", "b"]
    assert [line.is_json for line in _lines(text, lines, kind="text")] == [False, False]
    assert reads_json([str(text), str(lines)], None)
    assert not reads_json([str(text)], None)
    assert reads_json(["-"], "jsonl")


def test_the_source_is_the_first_field_that_is_there(tmp_path: Path) -> None:
    """As in a corpus: `src`, or the language, also inside a `translation`."""
    path = _file(
        tmp_path,
        "a.jsonl",
        '{"de": "x", "src": "y"}\n{"de": "x\\nz"}\n{"translation": {"de": "v", "en": "w"}}\n{"src": " "}\n',
    )
    assert [line.text for line in _lines(path, fields=["src", "de"])] == ["y", "x z", "v", " "]


def test_a_blank_line_among_json_is_a_blank_text(tmp_path: Path) -> None:
    """Every line has its translation: nothing behind a paragraph break is lost. It is an object with the
    field of the text before it, or with the first that a text may stand in."""
    path = _file(tmp_path, "a.jsonl", '\n{"src": "a"}\n{"de": "a"}\n\n \u00a0\n{"src": "b"}\n')
    for _ in range(2):  # what is read twice is the same both times
        lines = _lines(path, fields=["src", "de"])
        assert [(line.text, line.raw, line.is_json) for line in lines] == [
            ("", '{"src": ""}', True),
            ("a", '{"src": "a"}', True),
            ("a", '{"de": "a"}', True),
            ("", '{"de": ""}', True),
            (" \u00a0", '{"de": " \u00a0"}', True),
            ("b", '{"src": "b"}', True),
        ]


@pytest.mark.parametrize("blank", ["", "  ", "\u00a0", "\u200b"])
def test_a_prefix_that_nobody_sees_is_none(tmp_path: Path, blank: str) -> None:
    """The search would begin every translation with a space, and go on badly."""
    path, beside = _file(tmp_path, "a", "x\n"), str(_file(tmp_path, "p", f"{blank}\n"))
    assert [line.prefix for line in _lines(path, prefix_file=beside)] == [""]


def test_prefixes_come_from_a_field_or_a_file(tmp_path: Path) -> None:
    """One a line; a record without the field has none. They are part of what a line is known by."""
    path = _file(tmp_path, "a.jsonl", '{"src": "a", "p": "The"}\n{"src": "b"}\n{"src": "c", "p": null}\n')
    assert [line.prefix for line in _lines(path, prefix_field="p")] == ["The", "", ""]
    prefixes = str(_file(tmp_path, "p.txt", "A\n\nB\n"))
    lines = _lines(path, prefix_file=prefixes, size=2)
    assert [line.prefix for line in lines] == ["A", "", "B"]
    assert lines[0].key == b'{"src": "a", "p": "The"}\nA\nTrue'
    assert SourceLines([str(path)], prefix_file=prefixes).count() == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", r"a.jsonl:2: is not JSON"),
        ("[]", r"a.jsonl:2: must be an object"),
        ('{"text": "a"}', r"a.jsonl:2: has no field src or de, only text; .* --source-field"),
        ("{}", r"a.jsonl:2: has no field src or de, only none"),
        ('{"src": 1}', r"a.jsonl:2: `src` must be text"),
        ('{"src": "a", "p": 1}', r"a.jsonl:2: `p` must be text"),
        ('{"src": "a", "score": 1}', r"a.jsonl:2: has a field score already; .* --added-prefix mt_"),
    ],
)
def test_a_line_that_cannot_be_used_is_told_after_those_before(
    tmp_path: Path, content: str, message: str
) -> None:
    """Nothing of the user's is overwritten, and the lines before are not lost."""
    path = _file(tmp_path, "a.jsonl", '{"src": "a"}\n' + content + '\n{"src": "c"}\n')
    sources = SourceLines([str(path)], fields=["src", "de"], prefix_field="p", taken={"score"})
    buffers = sources.buffers(100)
    assert [line.text for line in next(buffers)] == ["a"]
    with pytest.raises(DataError, match=message):
        next(buffers)
    with pytest.raises(DataError, match=message):
        sources.count()


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [("A\n", r"p: has no line for .*a:2; give it one a line"), ("A\n\n\nB\n", r"p: has 2 more lines than")],
)
def test_there_must_be_as_many_prefixes_as_lines(tmp_path: Path, prefixes: str, message: str) -> None:
    """Otherwise all after a lost line would begin with another line's prefix."""
    path, beside = _file(tmp_path, "a", "x\ny\n"), str(_file(tmp_path, "p", prefixes))
    with pytest.raises(DataError, match=message):
        _lines(path, prefix_file=beside)


def test_files_are_counted_and_streams_are_not(tmp_path: Path) -> None:
    """B020: what is wrong with a file shows before any work; a pipe could not be read again."""
    path = _file(tmp_path, "a", "x\ny")
    os.mkfifo(tmp_path / "fifo")
    assert SourceLines([str(path), str(path)]).count() == 4
    assert SourceLines([str(path), "-"]).count() is None
    assert SourceLines([str(path), str(tmp_path / "fifo")]).count() is None
    with pytest.raises(DataError, match="missing: cannot be read"):
        SourceLines(["-", str(tmp_path / "missing")]).count()
