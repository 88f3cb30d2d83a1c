"""A run with random weights, for everything that translates."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_run import random_run

from transformer_mt.checkpoint import LoadedRun, load_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one")


@pytest.fixture
def loaded(run: Path) -> LoadedRun:
    return load_run(run)
