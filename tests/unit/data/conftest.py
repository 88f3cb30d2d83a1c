"""A small recipe with its text on disk, for everything that prepares data."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.config import Recipe

Make = Callable[..., Recipe]


def write_sides(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    """`<name>.de` and `<name>.en`."""
    for side, lang in enumerate(("de", "en")):
        (folder / f"{name}.{lang}").write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())


def invented(count: int, seed: int) -> list[tuple[str, str]]:
    """Pairs of made-up words; the sides differ in length."""
    generator = random.Random(seed)
    words = ["".join(generator.choices("abcdefghij", k=4)) for _ in range(60)]
    pairs = []
    for _ in range(count):
        src = generator.choices(words, k=generator.randint(2, 9))
        pairs.append((" ".join(src), " ".join(word[::-1] for word in src[1:]) + "."))
    return pairs


@pytest.fixture
def make_recipe(tmp_path: Path) -> Make:
    """Writes 300 training, 20 validation and 10 test pairs; keyword arguments change data or tokenizer."""
    (tmp_path / "text").mkdir()
    write_sides(tmp_path / "text", "train", invented(300, 1))
    write_sides(tmp_path / "text", "valid", invented(20, 2))
    write_sides(tmp_path / "text", "test", invented(10, 3))

    def make(data: dict[str, Any] | None = None, tokenizer: dict[str, Any] | None = None) -> Recipe:
        return Recipe.model_validate(
            {
                "run_dir": str(tmp_path / "runs" / "one"),
                "data": {
                    "root": str(tmp_path / "text"),
                    "train": "train",
                    "valid": "valid",
                    "test": "test",
                    "src_lang": "de",
                    "tgt_lang": "en",
                    **(data or {}),
                },
                "tokenizer": {"type": "bpe", "vocab_size": 330, **(tokenizer or {})},
                "model": {"tied_embeddings": "decoder"},
            }
        )

    return make
