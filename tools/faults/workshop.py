"""A copy of the clone in which one mutation after another is applied and the tests of it are run.

The checkout itself is never changed. Knows nothing of what the mutations mean.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.faults.mutation import Mutation

KILLED, SURVIVED, STALE, BROKEN, TOO_SLOW = "killed", "SURVIVED", "STALE", "BROKEN", "TOO SLOW"
_COPIED = ("transformer_mt", "tests", "tools")
_NOT_COPIED = ("runs", ".git")
# Of pytest: some tests failed; all passed.
_FAILED, _PASSED = 1, 0


class Workshop:
    """A copy in a folder of its own.

    Args:
        clone: root of the clone.
        folder: an empty folder.
    """

    def __init__(self, clone: Path, folder: Path) -> None:
        self.root = folder / "clone"
        self.root.mkdir()
        for entry in clone.iterdir():
            copy = self.root / entry.name
            if entry.name in _COPIED:
                shutil.copytree(entry, copy, ignore=shutil.ignore_patterns("__pycache__"))
            elif entry.is_file():
                shutil.copy2(entry, copy)
            elif entry.name not in _NOT_COPIED:
                copy.symlink_to(entry)
        if (clone.parent / "shared").exists():
            (folder / "shared").symlink_to(clone.parent / "shared")

    def verdict(self, mutation: Mutation, seconds: float) -> str:
        """What becomes of the tests of a mutation: killed, SURVIVED, STALE, BROKEN or TOO SLOW.

        A text that does not occur exactly once is stale; tests that cannot even be collected, as after a
        change that is no Python, prove nothing and are broken. Tests that do not end in time prove nothing
        either: the machine may be busy, and a test that hangs has not failed.

        Args:
            seconds: how long they may take.
        """
        path = self.root / "transformer_mt" / mutation.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text.count(mutation.old) != 1:
            return STALE
        path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        try:
            code = self.run_tests(mutation.tests, seconds)
        finally:
            path.write_text(text, encoding="utf-8")
        return {_FAILED: KILLED, _PASSED: SURVIVED, None: TOO_SLOW}.get(code, BROKEN)

    def run_tests(self, tests: Sequence[str], seconds: float) -> int | None:
        """pytest's exit code; None when it had to be stopped."""
        with (self.root / "pytest.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider"]
                + [f"tests/{test}" for test in tests],
                cwd=self.root,
                # Bytecode is told from changed text by size and whole seconds only: none is written.
                env=os.environ | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            with _stopped_with_its_children(process):
                try:
                    return process.wait(seconds)
                except subprocess.TimeoutExpired:
                    return None

    def output(self) -> str:
        """What the last run of tests printed."""
        return (self.root / "pytest.log").read_text(encoding="utf-8", errors="replace")


@contextmanager
def _stopped_with_its_children(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
