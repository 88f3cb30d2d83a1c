"""Any lines written come back the same, packed or not."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.text.lines import read_lines, write_lines

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n\r"))


@given(st.lists(TEXT))
def test_written_lines_come_back(lines: list[str]) -> None:
    """N lines in, N lines out, whatever they hold; only a byte-order mark at the very start is dropped."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        write_lines(path, lines)
        if lines and lines[0].startswith("\ufeff"):
            lines[0] = lines[0].removeprefix("\ufeff")
        assert list(read_lines(path)) == lines
        assert path.read_bytes().count(b"\n") == len(lines)
