"""--help of the program and of every verb: quick, whole, and without what only running needs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from transformer_mt.cli.main import VERBS

HEAVY = ("torch", "numpy", "datasets", "pyarrow", "sacrebleu", "sentencepiece", "matplotlib", "tensorboard")
LOADED = """
import sys
from transformer_mt.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as stop:
    print(stop.code, *[name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_imports_nothing_heavy(verb: str) -> None:
    """Pins that a verb imports torch and its friends only when it runs."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(heavy=HEAVY), *verb.split(), "--help"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stderr == "0\n"
    assert done.stdout.startswith(f"usage: transformer-mt {verb}".rstrip())
    assert "exit codes:" in done.stdout


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_answers_at_once(verb: str) -> None:
    """Pins the half second. The best of five: other work on the machine may slow four of them down."""
    script = Path(sys.executable).with_name("transformer-mt")
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([script, *verb.split(), "--help"], stdout=subprocess.DEVNULL, check=True)
        best = min(best, time.perf_counter() - start)
        if best < 0.5:
            break
    assert best < 0.5


def test_every_verb_is_listed(capfd: pytest.CaptureFixture[str]) -> None:
    """Pins that a verb cannot exist without standing in --help with its line."""
    script = Path(sys.executable).with_name("transformer-mt")
    subprocess.run([script, "--help"], check=True)
    listed = [line.split() for line in capfd.readouterr().out.split("\n") if line.startswith("    ")]
    assert [words[0] for words in listed if words[0] in VERBS and len(words) > 1] == list(VERBS)
