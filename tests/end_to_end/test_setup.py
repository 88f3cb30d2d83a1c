"""tools/setup against a stand-in for Python that notes what pip is asked to do: nothing is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PYTHON = """#!/usr/bin/env bash
case "$*" in
-V) echo "Python 3.11.7" ;;
"-m pip --version") ;;
-) cat >/dev/null; echo "$FAKE_TORCH" ;;
"-c import sys;"*) exit "$FAKE_TOO_OLD" ;;
"-c import sysconfig"*) mkdir -p site; echo site ;;
"-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
"-m pip install "*)
    echo "$*" >>pip.log
    while [ "$1" != -c ]; do shift; done
    grep '^torch' "$2" >>pip.log ;;
*) echo "unexpected: $*" >&2; exit 9 ;;
esac
"""

Setup = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that set-up reads, in a folder with a space in its name."""
    clone = tmp_path / "my clone"
    (clone / "tools").mkdir(parents=True)
    for name in ("setup.cfg", "pyproject.toml", "tools/constraints.txt", "tools/setup"):
        shutil.copy(REPOSITORY / name, clone / name)
    (tmp_path / "python").write_text(PYTHON, encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    return clone


@pytest.fixture
def setup(clone: Path, tmp_path: Path) -> Setup:
    """Runs set-up from another folder; returns what it said."""

    def run(torch: str = "", too_old: int = 0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [clone / "tools" / "setup"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHON": str(tmp_path / "python"),
                "FAKE_TORCH": torch,
                "FAKE_TOO_OLD": str(too_old),
            },
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return run


def pinned_torch() -> str:
    text = (REPOSITORY / "tools" / "constraints.txt").read_text(encoding="utf-8")
    found = re.search(r"^torch==(\d+\.\d+\.\d+)$", text, re.MULTILINE)
    assert found, "torch is pinned without a build tag"
    return found[0]


def test_it_installs_once(setup: Setup, clone: Path) -> None:
    """Pins that running it again does nothing, and that a change of what it reads makes it install again."""
    installed = []
    for change in ("", "", "# a comment\n"):
        with open(clone / "setup.cfg", "a", encoding="utf-8") as stream:
            stream.write(change)
        done = setup()
        assert done.returncode == 0, done.stderr
        installed.append((clone / "pip.log").read_text(encoding="utf-8").count("pip install"))
    assert installed == [1, 1, 2]


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has an NVIDIA card")
def test_without_a_card_the_release_of_torch_is_named(setup: Setup, clone: Path) -> None:
    """Pins what makes pip prefer a CPU build: the exact release in the same command as the package."""
    assert setup().returncode == 0
    command, constraint = (clone / "pip.log").read_text(encoding="utf-8").strip().split("\n")
    assert command.endswith(f" {pinned_torch()} -e .[dev]")
    assert constraint == pinned_torch()


def test_a_torch_that_is_there_is_kept(setup: Setup, clone: Path) -> None:
    """Pins that the constraint follows the torch found, build tag included, and that its folder is joined."""
    assert setup(torch="2.11.1+cu130 /somewhere/site-packages").returncode == 0
    command, constraint = (clone / "pip.log").read_text(encoding="utf-8").strip().split("\n")
    assert "torch==" not in command
    assert constraint == "torch==2.11.1+cu130"
    joined = (clone / "site" / "packages_beside_torch.pth").read_text(encoding="utf-8")
    assert joined == "import site; site.addsitedir('/somewhere/site-packages')\n"


def test_an_old_python_is_refused(setup: Setup, clone: Path) -> None:
    """Pins that the message says what is needed and what was found, before anything is made."""
    done = setup(too_old=1)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer, found: Python 3.11.7; install one, or name it" in done.stderr
    assert not (clone / ".venv").exists()


def test_every_dependency_is_pinned() -> None:
    """Pins that a new line of setup.cfg comes with the release it was tested with."""
    text = (REPOSITORY / "setup.cfg").read_text(encoding="utf-8")
    wanted = {name.lower() for name in re.findall(r"^    ([A-Za-z][\w.-]*)>=", text, re.MULTILINE)}
    constraints = (REPOSITORY / "tools" / "constraints.txt").read_text(encoding="utf-8")
    pinned = {name.lower() for name in re.findall(r"^([\w.-]+)==", constraints, re.MULTILINE)}
    assert len(wanted) > 12
    assert wanted - pinned == set()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--sead", "3"],
            "tools/quickstart: error: unrecognized argument: --sead; see tools/quickstart --help",
        ),
        (
            ["run_dir=elsewhere"],
            "tools/quickstart: trains two models: name the folder of their runs with --runs",
        ),
    ],
)
def test_quickstart_refuses_what_it_does_not_know(words: list[str], said: str) -> None:
    """Pins that a misspelt flag is no override, nor one folder the home of two runs, and starts nothing."""
    done = subprocess.run(
        [REPOSITORY / "tools" / "quickstart", *words],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
