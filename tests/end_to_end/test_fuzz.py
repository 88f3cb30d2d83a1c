"""`tools/fuzz` runs: a small part of what `.ci/run` lets it do."""

from __future__ import annotations

import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_random_text_and_flags_keep_every_line() -> None:
    """B001, B007, B013, B014, B020: whatever comes in, lines out are lines in, or one line of error."""
    done = subprocess.run(
        [REPOSITORY / "tools" / "fuzz", "--inputs", "60", "--shell", "1", "--seed", "11"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("60 calls in one process and 1 through a shell, ")
    assert done.stdout.endswith(": 0 wrong\n")
