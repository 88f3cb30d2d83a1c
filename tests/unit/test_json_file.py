"""Small files: JSON that every reader takes, replaced as a whole, and named when damaged."""

import json
import math
import os

import pytest

from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import json_text, read_json, write_json, write_text


def _refuse(name):
    raise AssertionError(f"{name} is not JSON")


def test_what_is_not_finite_is_null(tmp_path):
    """Pins `NaN` and `Infinity`, which Python writes and hardly anything else reads."""
    value = {"nll": math.nan, "best": [math.inf, (-math.inf, 1.5)], "inner": {"x": math.nan, "n": 3}}
    expected = {"nll": None, "best": [None, [None, 1.5]], "inner": {"x": None, "n": 3}}
    assert json.loads(json_text(value), parse_constant=_refuse) == expected
    write_json(tmp_path / "run.json", value)
    text = (tmp_path / "run.json").read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=_refuse) == expected == read_json(tmp_path / "run.json")


def test_a_full_disk_leaves_a_small_file_as_it_was(tmp_path, monkeypatch):
    """Pins a config.yaml that is emptied before the new one fits: the run could not be continued."""
    path = tmp_path / "config.yaml"
    write_text(path, "old: 1\n")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
        write_text(path, "new: 2\n")
    assert path.read_bytes() == b"old: 1\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "cannot be read"),
        ("", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "no JSON object"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, text, told):
    """An empty list passed for a file that says nothing."""
    assert read_json(tmp_path / "best.json") is None
    (tmp_path / "best.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=f"best.json: .*{told}.*; delete it to go on without it"):
        read_json(tmp_path / "best.json")
