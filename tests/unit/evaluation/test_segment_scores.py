"""Tables of an outside metric: what is read, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from transformer_mt.errors import DataError
from transformer_mt.evaluation.segment_scores import lower_is_better, read_segment_scores


def write(folder: Path, text: str) -> Path:
    path = folder / "comet.tsv"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("metric", "lower"),
    [("MetricX-24", True), ("HTER", True), ("wmt22-comet-da", False), ("BLEURT20", False), ("mine", None)],
)
def test_the_names_of_well_known_metrics_tell_the_direction(metric: str, lower: bool | None) -> None:
    assert lower_is_better(metric) is lower


def test_columns_go_by_name_not_by_place(tmp_path: Path) -> None:
    """Pins order, a BOM and CRLF."""
    path = write(tmp_path, "\ufeffnew\told\r\n0.5\t-1e-1\r\n0.25\t3\r\n")
    assert read_segment_scores(path, ["old", "new"], 2) == {"old": [-0.1, 3.0], "new": [0.5, 0.25]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its first line must name the systems old, new, separated by tabs, but is missing"),
        ("old\n1\n2\n", "must name the systems old, new, separated by tabs, but is old$"),
        ("old\told\n1\t1\n2\t2\n", "but is old, old$"),
        ("old\tnew\n1\t2\n", "has 1 rows of scores below its first line, but the set has 2 lines"),
        ("old\tnew\n1\t2\n3\n", "comet.tsv:3: has 1 columns, but there are 2 systems"),
        ("old\tnew\n1\tgood\n3\t4\n", "comet.tsv:2: 'good' is no finite number"),
        ("old\tnew\n1\t2\n3\tnan\n", "comet.tsv:3: 'nan' is no finite number"),
        ("old\tnew\n1\t2\n3\t-1e308\n", "comet.tsv:3: '-1e308' is no finite number below 1e100"),
        ("old\tnew\n1\t2\n3\t\n", "comet.tsv:3: '' is no finite number"),
    ],
)
def test_what_is_no_such_table_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_segment_scores(write(tmp_path, text), ["old", "new"], 2)
