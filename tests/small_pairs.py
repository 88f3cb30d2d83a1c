"""A small language whose translations a classifier can learn, prepared: word for word, in reverse order."""

from __future__ import annotations

import random
from pathlib import Path

from transformer_mt.config import Recipe
from transformer_mt.data.prepare import PreparedData, prepare
from transformer_mt.recipe import dump_recipe

WORDS = [(f"{a}{b}", f"{b.upper()}{a.upper()}") for a in "bdfgkl" for b in "aeiou"]
"""Source word and its translation."""


def invented(count: int, seed: int, *, fewest: int = 3, most: int = 6) -> list[tuple[str, str]]:
    """Sentences of so many words."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        words = draw.sample(WORDS, draw.randint(fewest, most))
        pairs.append((" ".join(src for src, _ in words), " ".join(tgt for _, tgt in reversed(words))))
    return pairs


def write_sides(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    """`<name>.de` and `<name>.en`."""
    folder.mkdir(parents=True, exist_ok=True)
    for side, lang in enumerate(("de", "en")):
        (folder / f"{name}.{lang}").write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())


def small_recipe(
    folder: Path, pairs: list[tuple[str, str]], *, shared: bool = True, vocab_size: int = 330
) -> Recipe:
    """A recipe for these training pairs, and 40 pairs for validation."""
    write_sides(folder / "text", "train", pairs)
    write_sides(folder / "text", "valid", invented(40, 99))
    return Recipe.model_validate(
        {
            "run_dir": str(folder / "run"),
            "data": {
                "root": str(folder / "text"),
                "train": "train",
                "valid": "valid",
                "src_lang": "de",
                "tgt_lang": "en",
            },
            "tokenizer": {"type": "bpe", "vocab_size": vocab_size, "shared": shared},
            "model": {
                "d_model": 32,
                "num_heads": 4,
                "d_ff": 64,
                "num_encoder_layers": 1,
                "num_decoder_layers": 1,
                "tied_embeddings": "decoder",
            },
            "training": {"learning_rate": 1e-2, "precision": "fp32", "dropout": 0.0},
        }
    )


def small_recipe_file(folder: Path, pairs: list[tuple[str, str]]) -> Path:
    """The same as a file."""
    path = folder / "small.yaml"
    path.write_text(dump_recipe(small_recipe(folder, pairs)), encoding="utf-8")
    return path


def prepared(
    folder: Path, pairs: list[tuple[str, str]], *, shared: bool = True, vocab_size: int = 330
) -> PreparedData:
    """The same, prepared."""
    recipe = small_recipe(folder, pairs, shared=shared, vocab_size=vocab_size)
    return prepare(recipe, log=lambda message: None)
