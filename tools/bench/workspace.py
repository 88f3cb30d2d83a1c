"""Parallel text -> the folder that all children work in: recipes, prepared data, common ids, random runs.

Prepared data are kept from call to call; the rest is made anew each time, so that it is what the package
makes today.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools.bench import exported
from tools.bench.task import DROPOUT, LABEL_SMOOTHING, MAX_TOKENS, SIZES
from transformer_mt.errors import DataError

if TYPE_CHECKING:
    from transformer_mt.config import Recipe
    from transformer_mt.text.tokenizer import Tokenizers

ROOT = Path(__file__).resolve().parents[2]
_MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"
_PACKINGS = ("", ".xz", ".gz")
_MAX_TEST = 1000


@dataclass(frozen=True)
class Corpus:
    """Where the text is: files <folder>/<train or test>.<language>, plain or packed."""

    folder: Path
    src_lang: str
    tgt_lang: str
    train: str
    test: str
    vocab_size: int
    note: str = ""


def find_corpus(folder: str | None) -> Corpus:
    """The text of a folder, or Multi30k beside the clone, or the bundled corpus with a note that it is that.

    Raises:
        DataError: a named folder lacks a file.
    """
    if folder is not None or _MULTI30K.is_dir():
        place = Path(folder).resolve() if folder is not None else _MULTI30K
        for name in ("train.de", "train.en", "test2016.de", "test2016.en"):
            if not any((place / (name + packing)).is_file() for packing in _PACKINGS):
                raise DataError(
                    f"{place}: has no {name} (plain, .xz or .gz); name another --data, "
                    "or leave it out to use the bundled corpus"
                )
        return Corpus(place, "de", "en", "train", "test2016", 8000)
    return Corpus(
        ROOT / "data" / "zh_en",
        "zh",
        "en",
        "train",
        "test",
        2000,
        "the bundled synthetic corpus, 2,000 pieces: its ratios are not those of the targets, name --data",
    )


def build(corpus: Corpus, runs: Path, sizes: Collection[str]) -> Path:
    """The workspace of a corpus, below the folder `runs`; with runs of random weights of these sizes."""
    key = hashlib.sha256(repr(corpus).encode()).hexdigest()[:8]
    folder = (runs / f"{corpus.src_lang}_{corpus.tgt_lang}_{key}").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        recipe = _recipe(corpus, folder, size)
        (folder / f"{size}.yaml").write_text(json.dumps(recipe, indent=1), encoding="utf-8")
    _export(folder, sizes)
    return folder


def _recipe(corpus: Corpus, folder: Path, size: str) -> dict[str, object]:
    """A recipe in JSON, which is YAML too. The test set stands in for validation text."""
    return {
        "run_dir": str(folder / size),
        "data": {
            "root": str(corpus.folder),
            "train": corpus.train,
            "valid": corpus.test,
            "src_lang": corpus.src_lang,
            "tgt_lang": corpus.tgt_lang,
        },
        "tokenizer": {"type": "bpe", "vocab_size": corpus.vocab_size},
        "model": {"architecture": SIZES[size].architecture, "preset": SIZES[size].preset},
        "training": {
            "max_tokens": MAX_TOKENS,
            "dropout": DROPOUT,
            "label_smoothing": LABEL_SMOOTHING,
        },
    }


def _export(folder: Path, sizes: Collection[str]) -> None:
    """Prepare the data as `train` does; write the common ids, and the runs of random weights."""
    from transformer_mt.cli.build_trainer import open_stream
    from transformer_mt.data.prepare import prepare
    from transformer_mt.recipe import load_recipe

    recipe = load_recipe(str(folder / "S.yaml"), [])
    prepared = prepare(recipe)
    pairs = [prepared.train.ids(index) for index in range(len(prepared.train))]
    tests = [prepared.valid.ids(index)[0] for index in range(min(len(prepared.valid), _MAX_TEST))]
    lines = [src for src, _ in prepared.valid_pairs()[:_MAX_TEST]]
    (folder / "test.src").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    prepared.tokenizers.save(folder)
    for size in sizes:
        _random_run(load_recipe(str(folder / f"{size}.yaml"), []), prepared.tokenizers)
    tokenizer = prepared.tokenizers.src
    exported.write(
        folder,
        {
            "src": [src for src, _ in pairs],
            "tgt": [tgt for _, tgt in pairs],
            "batches": open_stream(recipe, prepared)(1, 0).order(),
            "test": tests,
        },
        tokenizer.pieces(range(tokenizer.vocab_size)),
    )


def _random_run(recipe: Recipe, tokenizers: Tokenizers) -> None:
    """A run directory of one checkpoint, as training would leave it before its first update."""
    from transformer_mt.checkpoint_files import save_checkpoint
    from transformer_mt.model.build import build_model
    from transformer_mt.runtime.seeds import seed_weights

    seed_weights(recipe.training.seed)
    model = build_model(recipe.model, tokenizers.src.vocab_size, tokenizers.tgt.vocab_size)
    save_checkpoint(
        Path(recipe.run_dir),
        1,
        weights=dict(model.named_parameters()),
        state={},
        scalars={},
        recipe=recipe,
        tokenizers=tokenizers,
    )
