"""--help of the program and of every verb: quick, whole, and without what only running needs."""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
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
    """Pins the half second: in processor time, as other work on the machine stretches the clock's."""
    script = Path(sys.executable).with_name("transformer-mt")
    spent = []
    for _ in range(3):
        subprocess.run([script, *verb.split(), "--help"], stdout=subprocess.DEVNULL, check=True)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(usage.ru_utime + usage.ru_stime)
    assert min(after - before for before, after in itertools.pairwise(spent)) < 0.5


def test_every_verb_is_listed(capfd: pytest.CaptureFixture[str]) -> None:
    """Pins that a verb cannot exist without standing in --help with its line."""
    script = Path(sys.executable).with_name("transformer-mt")
    subprocess.run([script, "--help"], check=True)
    listed = [line.split() for line in capfd.readouterr().out.split("\n") if line.startswith("    ")]
    assert [words[0] for words in listed if words[0] in VERBS and len(words) > 1] == list(VERBS)
