"""What all tests share: one thread, no network, the command line as a function. Knows no stage."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# Before anything imports torch or datasets: workers share the cores, and no test may need the network.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the clone."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real parallel text beside the clone; tests that need it are skipped without it."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real parallel text in ../shared/data")
    return folder


@pytest.fixture(scope="session")
def cli() -> Cli:
    """`cli("train", recipe, cwd=folder)` runs the command in a process of its own; text in and out."""

    def run(*args: str | Path, cwd: Path = REPOSITORY, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "transformer_mt", *map(str, args)],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=600,
        )

    return run
