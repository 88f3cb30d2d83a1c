"""`tools/gpu_check` from the ids to the table, every part at toy size on the CPU."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.end_to_end.conftest import WORDS
from tools.gpu.__main__ import PARTS

TOOL = REPOSITORY / "tools" / "gpu_check"


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(TOOL), *map(str, args)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )


@pytest.mark.slow
def test_every_part_runs(tmp_path: Path) -> None:
    """Pins a part that breaks before the card is reached, and facts that are wrong on any device."""
    draw = random.Random(1)
    for split, count in (("train", 200), ("valid", 20), ("test2016", 20)):
        for side in ("de", "en"):
            lines = (" ".join(draw.choices(WORDS, k=draw.randint(2, 7))) for _ in range(count))
            (tmp_path / f"{split}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ids, result = tmp_path / "ids.npz", tmp_path / "result.json"
    made = run("--make-ids", ids, tmp_path, "--vocab-size", "310")
    assert made.returncode == 0, made.stderr
    done = run("--ids", ids, "--device", "cpu", "--quick", "--json", result, "--seconds", "550")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(result.read_text(encoding="utf-8"))
    assert list(found) == list(PARTS)
    assert all(lane["right"] for name, lane in found["lanes"].items() if name != "seconds_in_all")
    assert len(found["lanes"]) == 11
    assert found["repeats"]["same_update_twice"] is found["repeats"]["recomputed_layers"] is True
    lstm = found["lstm"]
    assert [lane["right"] for lane in lstm.values() if isinstance(lane, dict)] == [True] * 4
    assert lstm["general, translated alike"] == lstm["additive, fed, translated alike"] == 1.0
    assert found["train"]["updates"] == 4
    assert found["train"]["fp32, batch 256"]["same_as_first"] == 1.0
    assert "BLEU, bf16, batch 64" in found["train"]
    assert found["speed_base"]["packed, 4096 tokens"]["padding"] == 0.0
    assert "tokens_per_second" in done.stdout


def test_missing_text_is_named(tmp_path: Path) -> None:
    """Pins a traceback where a folder holds no text."""
    made = run("--make-ids", tmp_path / "ids.npz", tmp_path)
    assert made.returncode == 3
    assert "train.de: no such file, nor .xz or .gz; name the folder of the text" in made.stderr
