"""A run of each architecture with random weights, for everything that translates."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_run import MODELS, random_run

from transformer_mt.checkpoint import LoadedRun, load_run


@pytest.fixture(scope="module", params=MODELS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one", model=MODELS[request.param])


@pytest.fixture
def loaded(run: Path) -> LoadedRun:
    return load_run(run)
