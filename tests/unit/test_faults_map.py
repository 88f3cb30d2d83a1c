"""tests/faults.md: every known fault is a row, and what a row says about tests is true."""

from __future__ import annotations

import ast
import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tools.faults.__main__ import MUTATIONS
from tools.faults.mutation import Mutation

TESTS = REPOSITORY / "tests"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    fault: str
    kind: str
    tests: tuple[str, ...]
    verdict: str


def _rows() -> list[Row]:
    lines = (TESTS / "faults.md").read_text(encoding="utf-8").split("\n")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| B")]
    assert all(len(row) == 4 for row in cells), [row for row in cells if len(row) != 4]
    return [Row(row[0], row[1], tuple(re.findall(r"`([^`]+::[^`]+)`", row[2])), row[3]) for row in cells]


ROWS = _rows()


@functools.cache
def _docstrings(path: Path) -> dict[str, str]:
    """Function of a test file -> its docstring and the module's."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    of_all = ast.get_docstring(tree) or ""
    return {
        node.name: f"{of_all}\n{ast.get_docstring(node) or ''}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def test_every_known_fault_is_one_row() -> None:
    """Against the list itself, where it lies beside the clone."""
    listed = REPOSITORY.parent / "shared" / "faults" / "known_faults.json"
    if not listed.is_file():
        pytest.skip("needs the list of known faults in ../shared/faults")
    known = [(fault["id"], fault["kind"]) for fault in json.loads(listed.read_text(encoding="utf-8"))]
    assert [(row.fault, row.kind) for row in ROWS] == known


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_a_row_is_true(row: Row) -> None:
    """Its tests exist and name the fault; a closed fault has a mutation that the tests of its row notice."""
    verdict, _, reason = row.verdict.partition(": ")
    assert verdict in ("closed", "reliability", "does not apply")
    assert (verdict == "closed" and not reason) or (verdict != "closed" and reason)
    for test in row.tests:
        file, _, function = test.partition("::")
        assert (TESTS / file).is_file(), test
        found = _docstrings(TESTS / file)
        assert function in found, test
        assert row.fault in found[function], f"{test} does not name {row.fault}"
    tried = [{test.partition("[")[0] for test in one.tests} for one in MUTATIONS if one.fault == row.fault]
    assert all(tests <= set(row.tests) for tests in tried), "a mutation runs a test that is not in the row"
    if verdict == "closed":
        assert row.tests
        assert tried, "no mutation"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: f"{one.fault}-{one.name.replace(' ', '_')}")
def test_a_mutation_is_not_stale(mutation: Mutation) -> None:
    """The text it replaces stands in its file exactly once."""
    text = (REPOSITORY / "transformer_mt" / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1
    assert mutation.new != mutation.old
    assert mutation.fault in {row.fault for row in ROWS}
