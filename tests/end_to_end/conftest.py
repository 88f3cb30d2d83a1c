"""Small corpora and recipes that train in seconds."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

WORDS = ["red", "green", "blue", "white", "black", "small", "large", "old", "new", "round", "warm", "cold"]

TINY = """\
run_dir: {run_dir}
data:
  train: train
  valid: valid
  src_lang: xx
  tgt_lang: yy
tokenizer:
  type: bpe
  vocab_size: 310
model:
  d_model: 64
  num_heads: 2
  d_ff: 128
  num_encoder_layers: 1
  num_decoder_layers: 1
training:
  max_steps: 20
  max_tokens: 512
  learning_rate: 3e-3
  warmup_steps: 10
  dropout: 0.1
  precision: fp32
  log_every: 5
  save_every: 10
  validate_every: 10
decoding:
  beam_size: 2
"""

LSTM = {"d_model: 64\n  num_heads: 2\n  d_ff: 128": "architecture: lstm\n  d_model: 64"}
"""What makes an LSTM of the recipe above, for `replace` below."""

MakeTask = Callable[..., Path]


@pytest.fixture(scope="session")
def copy_task(tmp_path_factory: pytest.TempPathFactory) -> MakeTask:
    """copy_task(**texts) -> a recipe file whose corpus must be copied; `{old: new}` replaces recipe text."""

    def make(replace: dict[str, str] | None = None, pairs: int = 600, num_valid: int = 40) -> Path:
        folder = tmp_path_factory.mktemp("task")
        generator = random.Random(1)
        drawn = (generator.choices(WORDS, k=generator.randint(2, 7)) for _ in range(2 * (pairs + num_valid)))
        lines = list(dict.fromkeys(map(" ".join, drawn)))
        for name, part in (("train", lines[:pairs]), ("valid", lines[pairs : pairs + num_valid])):
            for side in ("xx", "yy"):
                (folder / f"{name}.{side}").write_text("\n".join(part) + "\n", encoding="utf-8")
        text = TINY.format(run_dir=folder / "run")
        for old, new in (replace or {}).items():
            assert old in text
            text = text.replace(old, new)
        (folder / "recipe.yaml").write_text(text, encoding="utf-8")
        return folder / "recipe.yaml"

    return make
