"""Faults of long input that users of other toolkits met, tried through the command.

A run of the random models here knows lines of its recipe's max_length; what is longer comes out in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from random_run import MODELS, random_run

from transformer_mt.cli.main import main

DATA = {"train": "t", "valid": "v", "src_lang": "de", "tgt_lang": "en", "max_length": 48}
RUNS: dict[str, dict[str, Any]] = {
    "sinusoidal": {**MODELS["transformer"], "positions": "sinusoidal"},
    "learned": {**MODELS["transformer"], "positions": "learned", "max_positions": 50},
    "lstm": MODELS["lstm"],
}
FLAGS = ("--device", "cpu", "--beam-size", "1", "--max-len-a", "0.2", "--max-len-b", "3")

Translate = Callable[[list[str]], tuple[list[str], str]]


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one", model=RUNS[request.param], data=DATA)


@pytest.fixture
def translate(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Translate:
    """Lines -> the lines that come out, and what is said on stderr."""

    def lines(texts: list[str]) -> tuple[list[str], str]:
        source = tmp_path / "in.txt"
        source.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
        assert main(["translate", str(run), str(source), *FLAGS]) == 0
        captured = capfd.readouterr()
        return captured.out.split("\n")[:-1], captured.err

    return lines


@pytest.mark.parametrize("long", ["w " * 5000, "wort " * 8000, "x" * 5000, "短い文です。" * 500])
def test_a_long_line_takes_no_other_with_it(translate: Translate, long: str) -> None:
    """B009, B052: it comes out whole, in parts, which is said with its number; its neighbours are what they
    are without it, and the lines after it come out too."""
    found, said = translate(["short one", long.strip(), "short two"])
    alone, _ = translate(["short one", "short two"])
    assert [found[0], *found[2:]] == alone
    assert len(found[1]) > 200
    assert "1 of 3 lines are more than the model knows and were translated in parts, first line 2" in said


def test_the_room_for_a_translation_grows_with_its_source(translate: Translate) -> None:
    """B054: by max_len_a for every token, and part by part: no paragraph comes back as its first sentence."""
    sentence = "Abd eik lm ist nor stu."
    found, _ = translate([sentence, " ".join([sentence] * 4), " ".join([sentence] * 40)])
    lengths = list(map(len, found))
    assert lengths[1] > lengths[0]
    assert lengths[2] > 5 * lengths[1]
