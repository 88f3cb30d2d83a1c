"""tools/mutate_faults on a small clone of its own: what it calls killed, surviving, stale and broken."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tools.faults import __main__ as command
from tools.faults.mutation import Mutation
from tools.faults.workshop import Workshop

MODULE = "ANSWER = 42\nWAIT = 0\n"
TESTS = """import time
from transformer_mt.module import ANSWER, WAIT

def test_answer():
    time.sleep(WAIT)
    assert ANSWER == 42

def test_nothing():
    pass
"""
RIGHT = Mutation("B001", "another answer", "module.py", "42", "43", ("test_it.py::test_answer",))
UNNOTICED = replace(RIGHT, fault="B002", tests=("test_it.py::test_nothing",))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = tmp_path / "its clone"
    for name, text in (
        ("transformer_mt/__init__.py", ""),
        ("transformer_mt/module.py", MODULE),
        ("tests/test_it.py", TESTS),
        ("setup.cfg", "[tool:pytest]\npythonpath = .\n"),
        ("data/text", "linked"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.mark.slow
def test_each_verdict(clone: Path, tmp_path: Path) -> None:
    """A test that ends the change, one that does not see it, a text that is gone, a change that is no Python,
    and tests that hang; the clone keeps its text, and so does the copy."""
    (tmp_path / "copy").mkdir()
    workshop = Workshop(clone, tmp_path / "copy")
    assert workshop.run_tests(RIGHT.tests, 60) == 0
    assert workshop.verdict(RIGHT, 60) == "killed"
    assert workshop.verdict(UNNOTICED, 60) == "SURVIVED"
    assert workshop.verdict(replace(RIGHT, old="44"), 60) == "STALE"
    assert workshop.verdict(replace(RIGHT, file="gone.py"), 60) == "STALE"
    assert workshop.verdict(replace(RIGHT, new="("), 60) == "BROKEN"
    started = time.monotonic()
    assert workshop.verdict(replace(RIGHT, old="WAIT = 0", new="WAIT = 600"), 4) == "TOO SLOW"
    assert time.monotonic() - started < 60
    for root in (clone, workshop.root):
        assert (root / "transformer_mt" / "module.py").read_text(encoding="utf-8") == MODULE
    assert (workshop.root / "data" / "text").read_text(encoding="utf-8") == "linked"


def test_the_command(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 only if every mutation is killed and the tests pass without them; --id chooses."""

    def run_tests(self: Workshop, tests: Sequence[str], seconds: float) -> int:
        (self.root / "pytest.log").write_text("what pytest said", encoding="utf-8")
        mutated = "ANSWER = 43" in (self.root / "transformer_mt" / "module.py").read_text(encoding="utf-8")
        return int(broken or (mutated and RIGHT.tests[0] in tests))

    broken = False
    monkeypatch.setattr(Workshop, "run_tests", run_tests)
    monkeypatch.setattr(command, "ROOT", clone)
    monkeypatch.setattr(command, "MUTATIONS", (RIGHT, UNNOTICED))
    assert command.main(["--id", "B001"]) == 0
    assert capsys.readouterr().out.split("\n")[-2] == "1 killed"
    assert command.main(["--all"]) == 1
    assert "B002  SURVIVED" in capsys.readouterr().out
    broken = True
    assert command.main(["--all"]) == 1
    assert "what pytest said\nthe 2 tests do not pass without any change" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        command.main(["--id", "B999"])
    assert stop.value.code == 2
    assert "--id B999: has no mutation" in capsys.readouterr().err


def test_the_draw_repeats_with_its_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pins that 30 are drawn, none twice, others with another seed."""
    many = tuple(replace(RIGHT, fault=f"B{number:03}") for number in range(90))
    monkeypatch.setattr(command, "MUTATIONS", many)

    def draw(*words: str) -> list[str]:
        return [one.fault for one in command.choose(command.parser().parse_args(words))]

    assert len(set(draw())) == 30
    assert draw("--seed", "5") == draw("--seed", "5") != draw("--seed", "6")
    assert draw("--number", "3", "--seed", "5") == sorted(draw("--number", "3", "--seed", "5"))
    assert draw("--all") == [one.fault for one in many]
    assert command.main(["--list"]) == 0
    assert capsys.readouterr().out.count("\n") == 90
