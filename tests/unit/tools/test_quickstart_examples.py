"""The examples at the end of the quickstart: enough long ones, drawn by seed, and never of unequal files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.quickstart_examples import LONG, choose, main

SOURCES = ["短" * n for n in (4, 29, 30, 31, 7, 45, 38, 12)]


def test_three_long_ones_are_drawn_by_seed() -> None:
    """Pins that 30 characters count as long, that none is drawn twice, and that a seed repeats its draw."""
    draws = [choose(SOURCES, seed) for seed in range(20)]
    for chosen in draws:
        assert len(set(chosen)) == 5
        assert sum(len(SOURCES[i]) >= LONG for i in chosen) == 3
    assert {i for chosen in draws for i in chosen} == set(range(8))
    assert choose(SOURCES, 7) == draws[7]


def test_too_few_long_ones_are_an_error() -> None:
    """Pins that a corpus without long sentences does not pass with short ones."""
    with pytest.raises(SystemExit, match="3 sentences of at least 30 characters are needed, but there are 2"):
        choose(SOURCES[:4], 1)


def write(folder: Path, *texts: str) -> list[str]:
    names = ("test.zh", "test.en", "a=b.en", "out.en")
    for name, text in zip(names, texts, strict=False):
        (folder / name).write_bytes(text.encode("utf-8"))
    systems = [f"{system}={folder / name}" for system, name in zip(("lstm", "ours"), names[2:], strict=True)]
    return [str(folder / name) for name in names[:2]] + systems[: len(texts) - 2]


def test_lines_stay_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pins that a U+2028 inside a sentence ends no line, so that columns cannot drift apart."""
    count = len(SOURCES)
    texts = [
        "".join(f"{text}\n" for text in SOURCES),
        "".join(f"ref\u2028erence {n}\n" for n in range(count)),
        "".join(f"first {n}\n" for n in range(count)),
        "".join(f"second {n}\n" for n in range(count)),
    ]
    monkeypatch.setattr(sys, "argv", ["examples", *write(tmp_path, *texts), "--seed", "3"])
    main()
    out = capsys.readouterr().out
    for index in choose(SOURCES, 3):
        assert (
            f"{SOURCES[index]}\n  reference  ref\u2028erence {index}\n"
            f"  lstm       first {index}\n  ours       second {index}\n" in out
        )


def test_files_of_unequal_length_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins that a short translation file is not shown against the wrong references."""
    monkeypatch.setattr(sys, "argv", ["examples", *write(tmp_path, "a\nb\n", "a\nb\n", "a\n")])
    with pytest.raises(SystemExit, match="have 2, 2, 1 lines; they must agree"):
        main()


def test_a_file_without_a_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pins that two systems can always be told apart."""
    monkeypatch.setattr(sys, "argv", ["examples", "a", "b", str(tmp_path / "out.en")])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "is not NAME=FILE" in capsys.readouterr().err
