"""Names of systems: what is taken apart, what is not, and how equal names are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from transformer_mt.cli.system_names import NamedSystem, distinct, parse_system
from transformer_mt.errors import ConfigError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("runs/a", "runs/b", "runs/lr=1", "runs/x,y", "old/a"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("word", "name", "paths", "given"),
    [
        ("runs/a", "a", ("runs/a",), False),
        ("runs/a/", "a", ("runs/a/",), False),
        ("it=runs/a", "it", ("runs/a",), True),
        ("runs/a,runs/b", "a", ("runs/a", "runs/b"), False),
        ("it=runs/a,runs/b", "it", ("runs/a", "runs/b"), True),
        ("runs/lr=1", "lr=1", ("runs/lr=1",), False),
        ("runs/lr=1,runs/a", "lr=1", ("runs/lr=1", "runs/a"), False),
        ("it=runs/lr=1", "it", ("runs/lr=1",), True),
        ("runs/x,y", "x,y", ("runs/x,y",), False),
        ("it=runs/x,y", "it", ("runs/x,y",), True),
        ("lr=1=runs/a", "lr=1", ("runs/a",), True),
        ("lr=1=runs/lr=1,runs/b", "lr=1", ("runs/lr=1", "runs/b"), True),
        ("lr=1=gone", "lr", ("1=gone",), True),
        ("gone", "gone", ("gone",), False),
    ],
)
def test_a_path_that_exists_is_never_taken_apart(
    word: str, name: str, paths: tuple[str, ...], given: bool
) -> None:
    assert parse_system(word) == NamedSystem(name, paths, given)


@pytest.mark.parametrize("word", ["=runs/a", "it="])
def test_half_a_pair_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match="must be NAME=PATH, but one of the two is missing"):
        parse_system(word)


def test_a_run_is_not_its_own_second_seed() -> None:
    with pytest.raises(ConfigError, match="it=runs/a,runs/b,runs/a: names runs/a twice"):
        parse_system("it=runs/a,runs/b,runs/a")
    with pytest.raises(ConfigError, match="names ./runs/a twice"):
        parse_system("runs/a,./runs/a")


def names(*words: str) -> list[str]:
    return [one.name for one in distinct([parse_system(word) for word in words])]


def test_equal_folder_names_are_told_apart_by_their_parents() -> None:
    """B178: two runs with one base name; those that do not clash keep theirs."""
    assert names("runs/a", "old/a", "runs/b") == ["runs/a", "old/a", "b"]
    assert names("runs/a", "a=old/a") == ["runs/a", "a"]


@pytest.mark.parametrize("words", [("a=runs/a", "a=runs/b"), ("runs/a", "runs/a"), ("runs/a", "./runs/a")])
def test_names_that_stay_equal_are_refused(words: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="are both named a; tell them apart with NAME="):
        names(*words)
