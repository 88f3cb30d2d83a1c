"""Our scores against the sacrebleu command on the same files."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_mt.evaluation.scores import score


def _command(folder: Path, *options: str) -> list[dict[str, object]]:
    result = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *options, "-w", "6", "--format", "json"],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    found = json.loads(result.stdout)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("num_references", [1, 2])
def test_values_equal_those_of_the_command(tmp_path: Path, language: str, num_references: int) -> None:
    """A wrong option (word order, tokenizer, transposed references) changes a value in the second digit."""
    draw = random.Random(language)
    words = (
        ["我", "今天", "去", "学校", "，", "。"]
        if language == "zh"
        else ["The", "cat", "sat,", "it's", "a", "mat."]
    )
    space = "" if language == "zh" else " "
    streams = [[space.join(draw.choices(words, k=draw.randint(3, 9))) for _ in range(25)] for _ in range(3)]
    hypotheses, references = streams[0], streams[1 : 1 + num_references]
    for name, stream in (("hyp", hypotheses), ("ref0", references[0]), ("ref1", references[-1])):
        (tmp_path / name).write_bytes("".join(f"{line}\n" for line in stream).encode("utf-8"))
    names = ["ref0", "ref1"][:num_references]
    tokenizer = "zh" if language == "zh" else "13a"
    options = ["-i", "hyp", "-m", "bleu", "chrf", "ter", "--chrf-word-order", "2", "-tok", tokenizer]
    if language == "zh":  # without these TER takes a whole line for one word
        options += ["--ter-asian-support", "--ter-normalized"]
    expected = _command(tmp_path, *names, *options)
    found = score(hypotheses, references, ("bleu", "chrf", "ter"), language)
    assert [one.value for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-5)
    assert len({round(one.value, 2) for one in found}) == 3
    for one, other in zip(found, expected, strict=True):
        assert f"version:{other['version']}" in one.signature
        assert f"nrefs:{num_references}" in one.signature
