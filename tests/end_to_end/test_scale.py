"""`tools/scale`: a row of costs for each size of a corpus that is multiplied."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.small_corpora import write_made_up


def scale(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [REPOSITORY / "tools" / "scale", *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
def test_a_row_for_each_size(tmp_path: Path) -> None:
    write_made_up(tmp_path / "corpus", "de", "en")
    folder = tmp_path / "scale"
    words = ["--root", tmp_path / "corpus", "--src", "de", "--tgt", "en", "--folder", folder]
    done = scale(*words, "--pairs", "4000", "7000", "--steps", "2", "--vocab-size", "330")
    assert done.returncode == 0, done.stderr
    _, first, second = (line.split() for line in done.stdout.splitlines())
    assert (first[0], second[0]) == ("4,000", "7,000")
    assert len(first) == 8  # the last number belongs to the largest corpus alone
    assert len(second) == 9
    assert all(float(value) >= 0.0 for value in [*first[1:], *second[1:]])
    assert float(second[6]) > 0.1
    assert [path.name for path in folder.iterdir()] == ["tokenizer"]


def test_a_corpus_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = scale(
        "--root", tmp_path, "--src", "de", "--tgt", "en", "--folder", tmp_path / "scale", "--pairs", "10"
    )
    assert done.returncode == 3
    assert done.stderr.startswith(f"tools/scale: error: {tmp_path}/")
    assert done.stderr.count("\n") == 1
