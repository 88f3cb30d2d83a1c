"""Data sets through the `datasets` library: a local folder stands for the Hub."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from transformer_mt.errors import DataError
from transformer_mt.text.corpus import read_pairs, source_fingerprint


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or fills the user's cache."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


def _folder(root: Path, splits: dict[str, list[object]]) -> None:
    (root / "corpus").mkdir(exist_ok=True)
    for split, records in splits.items():
        text = "".join(f"{json.dumps(record)}\n" for record in records)
        (root / "corpus" / f"{split}.jsonl").write_text(text, encoding="utf-8")


def _read(root: Path, source: str) -> list[tuple[str, str]]:
    return list(read_pairs(source, root, "de", "en"))


def test_translation_columns_and_splits(tmp_path: Path) -> None:
    """The Hub's usual layout; NA stays text."""
    pairs = [{"translation": {"de": f"Satz {number}", "en": "NA"}} for number in range(1001)]
    _folder(tmp_path, {"train": list(pairs), "validation": [{"translation": {"de": "c", "en": "d"}}]})
    assert _read(tmp_path, "hf:./corpus@train") == [(f"Satz {number}", "NA") for number in range(1001)]
    assert _read(tmp_path, "hf:./corpus@validation") == [("c", "d")]


def test_a_single_split_needs_no_name(tmp_path: Path) -> None:
    """Plain src and tgt columns, one split."""
    _folder(tmp_path, {"train": [{"src": "a", "tgt": "b"}]})
    assert _read(tmp_path, "hf:./corpus") == [("a", "b")]


def test_the_fingerprint_follows_the_text(tmp_path: Path) -> None:
    """B153: a changed file under the same name is other text."""
    _folder(tmp_path, {"train": [{"src": "a", "tgt": "b"}]})
    first = source_fingerprint("hf:./corpus", tmp_path, "de", "en")
    assert source_fingerprint("hf:./corpus", tmp_path, "de", "en") == first
    _folder(tmp_path, {"train": [{"src": "a", "tgt": "c"}]})
    assert source_fingerprint("hf:./corpus", tmp_path, "de", "en") != first


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """One line each: folder, split, columns."""
    with pytest.raises(DataError, match="corpus: no such folder; check data.root"):
        _read(tmp_path, "hf:./corpus")
    _folder(tmp_path, {"train": [{"de": "a", "fr": "b"}], "test": [{"de": "a", "fr": "b"}]})
    with pytest.raises(DataError, match="has several splits; write @SPLIT after the name, one of "):
        _read(tmp_path, "hf:./corpus")
    with pytest.raises(DataError, match="has no split `dev`; write @SPLIT after the name, one of "):
        _read(tmp_path, "hf:./corpus@dev")
    with pytest.raises(DataError, match="hf:./corpus@test:1: has no column `en`, only de, fr;"):
        _read(tmp_path, "hf:./corpus@test")


@pytest.mark.parametrize("name", ["nobody/nothing", "nothing", "nobody/nothing/de-en"])
def test_no_network_is_one_clear_line(tmp_path: Path, name: str) -> None:
    """HF_HUB_OFFLINE is set for all tests; the message says what to do."""
    with pytest.raises(
        DataError, match=rf"^hf:{name}@train: cannot be loaded: .*; check the name and"
    ) as error:
        _read(tmp_path, f"hf:{name}@train")
    assert "\n" not in str(error.value)


def test_a_name_with_too_many_parts(tmp_path: Path) -> None:
    """The form is spelled out."""
    with pytest.raises(DataError, match=r"cannot be loaded: must be hf:NAME\[/CONFIG\]\[@SPLIT\]"):
        _read(tmp_path, "hf:a/b/c/d")
