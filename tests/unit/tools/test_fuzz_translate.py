"""The judge of `tools/fuzz` against outcomes made by hand, and a few cases of every kind."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tools.fuzz_translate.inputs import Case, lines_of, make_case
from tools.fuzz_translate.judge import Outcome, problem

TEXT = Case("a\n\nb\u2028c\r\n".encode(), [], 0, ["a", "", "b\u2028c"])
GOOD = Outcome(0, "x\n\ny\u2028z\n".encode(), "", None)


def test_lines_are_counted_by_one_byte_alone() -> None:
    assert lines_of(TEXT.data) == TEXT.lines
    assert lines_of(b"\xef\xbb\xbf") == lines_of(b"") == []
    assert lines_of(b"\n\na\rb") == ["", "", "a\rb"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"exit_code": 3}, "exit code 3, not 0"),
        ({"stderr": "Traceback (most recent call last):\n"}, "a traceback"),
        ({"stdout": b"x\n\n"}, "2 lines for 3"),
        ({"stdout": b"x\n\ny\n\n"}, "4 lines for 3"),
        ({"stdout": b"x\n\ny"}, "the last line has no end"),
        ({"stdout": b"x\n\n\xe2\x80\n"}, "not UTF-8"),
        ({"stdout": b"x\ny\nz\n"}, "line 2: is blank, but not its translation"),
        ({"stdout": b"\xc2\xa0\n\nz\n"}, "line 1: is not blank, but its translation is"),
    ],
)
def test_what_a_text_must_be(changes: dict[str, object], said: str | None) -> None:
    found = problem(TEXT, replace(GOOD, **changes))  # type: ignore[arg-type]
    assert found is None if said is None else said in str(found)


@pytest.mark.parametrize(
    ("format", "stdout", "said"),
    [
        ("tsv", "1\t1\t-1.0\t\ta\\tb\tx\n", None),
        ("tsv", "1\t1\t-1.0\t\ta\tb\tx\n", "7 columns"),
        ("tsv", "1\t1\t-1.0\t\ta b\tx\n", "line 1: the source has changed"),
        ("tsv", "2\t1\t-1.0\t\ta\\tb\tx\n", "number 2 for 1 lines"),
        ("moses", "0 ||| x ||| Length= 1 ||| -1.0\n", None),
        ("moses", "", "numbers [] for 1 lines"),
        ("jsonl", '{"source": "a\\tb", "translation": "x"}\n', None),
        ("jsonl", '{"source": "ab", "translation": "x"}\n', "line 1: fields are lost"),
    ],
)
def test_what_the_other_formats_must_be(format: str, stdout: str, said: str | None) -> None:
    case = Case(b"a\tb\n", [], 0, ["a\tb"], format=format)
    outcome = Outcome(0, stdout.encode(), "", None)
    found = problem(case, outcome)
    assert found is None if said is None else said in str(found)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"stderr": ""}, "0 lines of error"),
        ({"stderr": "error: a\nerror: b\n"}, "2 lines of error"),
        ({"file": b""}, "an output file in spite of the error"),
        ({"stdout": b"x\n"}, "something on stdout in spite of the error"),
    ],
)
def test_what_an_error_must_be(changes: dict[str, object], said: str | None) -> None:
    outcome = Outcome(2, b"", "transformer-mt: error: no\n", None)
    found = problem(Case(b"a\n", [], 2, None), replace(outcome, **changes))  # type: ignore[arg-type]
    assert found is None if said is None else said in str(found)


def test_cases_are_of_every_kind_and_the_same_for_a_seed() -> None:
    """Pins that no kind of case is lost, and that one that went wrong can be seen again."""
    cases = [make_case(random.Random(f"1 {number}")) for number in range(400)]
    assert cases == [make_case(random.Random(f"1 {number}")) for number in range(400)]
    assert {case.exit_code for case in cases} == {0, 2, 3}
    assert {case.format for case in cases} == {"text", "tsv", "jsonl", "moses"}
    assert {(case.to_file, case.from_stdin) for case in cases} == {(a, b) for a in (0, 1) for b in (0, 1)}
    assert any(case.objects for case in cases)
    assert any(case.data.startswith(b"\xef\xbb\xbf") for case in cases)
    assert any(b"\r\n" in case.data for case in cases)
