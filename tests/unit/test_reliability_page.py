"""docs/reliability.md: the test behind every promise is there."""

from __future__ import annotations

import ast
import re

from tests.conftest import REPOSITORY

TESTS = REPOSITORY / "tests"


def test_every_promise_has_its_tests() -> None:
    """A row without a test is no promise, and a test that was renamed takes its row along."""
    text = (REPOSITORY / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = [line for line in text.split("\n") if line.startswith("| ") and line != "| promise | test |"]
    assert len(rows) > 20
    assert [row for row in rows if "::" not in row.split("|")[2]] == []
    for file, name in re.findall(r"`([\w/]+\.py)::(\w+)`", text):
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (
            f"{file}::{name}"
        )
