"""`tools/fuzz` runs: a small part of what `.ci/run` lets it do."""

from __future__ import annotations

import os
import subprocess
import time
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


def test_sigterm_ends_it_and_not_the_call_under_test(tmp_path: Path) -> None:
    """At once, with the shell that runs beside it, and nothing is left behind."""
    with subprocess.Popen(
        [REPOSITORY / "tools" / "fuzz", "--inputs", "100000", "--shell", "100"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        while not list(tmp_path.glob("*/source")) and process.poll() is None:
            time.sleep(0.05)
        time.sleep(1.0)
        process.terminate()
        try:
            stdout, stderr = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, stdout, stderr) == (143, b"", b"")
    assert not list(tmp_path.glob("tmp*"))
