"""Corpus and tokenizer -> prepared data on disk, keyed by a fingerprint of all that goes into them.

A folder of prepared data appears whole or not at all, is never stale and never made twice. What goes into it
is `build.py`'s.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_mt.config import DataConfig, Recipe, TokenizerConfig
from transformer_mt.data.build import build, keeps_training_text
from transformer_mt.data.dataset import ParallelDataset
from transformer_mt.data.known_files import KnownFiles
from transformer_mt.data.prepared_files import damaged_file, read_manifest, write_manifest
from transformer_mt.data.report import vocabulary_warnings
from transformer_mt.errors import DataError
from transformer_mt.text.corpus import file_digest, source_fingerprint
from transformer_mt.text.tokenizer import Tokenizers, load_tokenizers
from transformer_mt.text.trained_on import SAMPLE, TrainedOn

FORMAT_VERSION = 1
"""Part of the fingerprint: raise it when the files or the rules that make them change."""

# Beside the folders of prepared data.
_DIGESTS = ".digests.json"
_LEFTOVER_SECONDS = 24 * 3600

Pair = tuple[str, str]
Log = Callable[[str], None]


def _log_to_stderr(message: str) -> None:
    print(message, file=sys.stderr)


@dataclass(frozen=True)
class PreparedData:
    """A folder of prepared data, opened."""

    folder: Path
    fingerprint: str
    tokenizers: Tokenizers
    train: ParallelDataset
    valid: ParallelDataset
    report: dict[str, Any]
    """Counts and reasons, as `report.json` holds them."""
    is_new: bool
    """False when the folder was there already."""

    def valid_pairs(self) -> list[Pair]:
        """Raw validation text, in the order of the files."""
        return [self.valid.text(index) for index in range(len(self.valid))]

    def trained_on(self) -> TrainedOn:
        """What a run remembers of the training text; of the texts, a sample from all over is read."""
        train, (src, tgt) = self.train, self.tokenizers
        sample = map(train.ids, range(0, len(train), -(-len(train) // SAMPLE)))
        pairs = [(src.decode(src_ids), tgt.decode(tgt_ids)) for src_ids, tgt_ids in sample]
        return TrainedOn.learn(train.src_lengths, pairs)


def prepare(recipe: Recipe, log: Log = _log_to_stderr) -> PreparedData:
    """The prepared data of a recipe, made now unless they are there already.

    Raises:
        DataError: text that cannot be used, no pair left to train on, a folder that holds something else,
            a full disk.
        ConfigError: a vocabulary size the text does not allow.
    """
    known_files = KnownFiles(prepared_folder(recipe, "").parent / _DIGESTS)
    fingerprint = data_fingerprint(recipe.data, recipe.tokenizer, known_files.digest)
    folder = prepared_folder(recipe, fingerprint)
    is_new = not _is_ready(folder, fingerprint, log)
    if is_new:
        log(f"preparing {folder}")
        try:
            _build(recipe, folder, fingerprint)
        except OSError as error:
            raise DataError(
                f"{folder}: prepared data cannot be written: {error.strerror or error}; "
                "free some space or name another data.prepared_dir"
            ) from None
    tokenizers = load_tokenizers(folder)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    if recipe.data.src_lang == recipe.data.tgt_lang:
        log(
            f"warning: data.src_lang and data.tgt_lang are both {recipe.data.src_lang}: right for "
            "paraphrases and corrections, but no translation"
        )
    for warning in vocabulary_warnings(report):
        log(warning)
    return PreparedData(
        folder=folder,
        fingerprint=fingerprint,
        tokenizers=tokenizers,
        train=ParallelDataset(folder, "train", tokenizers),
        valid=ParallelDataset(folder, "valid", tokenizers),
        report=report,
        is_new=is_new,
    )


def data_fingerprint(
    data: DataConfig, tokenizer: TokenizerConfig, digest_of: Callable[[Path], bytes] = file_digest
) -> str:
    """sha256 of the raw bytes of all text, of the options that shape the data, and of the format."""
    options = {
        "format": FORMAT_VERSION,
        "languages": [data.src_lang, data.tgt_lang],
        "lengths": [data.max_length, data.max_length_ratio],
        "tokenizer": _tokenizer_key(data, tokenizer),
    }
    for split, sources in _splits(data).items():
        options[split] = [
            source_fingerprint(source, data.root or ".", data.src_lang, data.tgt_lang, digest_of)
            for source in sources
        ]
    return hashlib.sha256(json.dumps(options, sort_keys=True).encode("utf-8")).hexdigest()


def prepared_folder(recipe: Recipe, fingerprint: str) -> Path:
    """Where the prepared data of a recipe are."""
    if recipe.data.prepared_dir is not None:
        return Path(recipe.data.root or ".") / recipe.data.prepared_dir
    return Path(recipe.run_dir).resolve().parent / "prepared" / fingerprint[:16]


def _splits(data: DataConfig) -> dict[str, tuple[str, ...]]:
    return {"train": data.train, "valid": data.valid, "test": data.test}


def _tokenizer_key(data: DataConfig, tokenizer: TokenizerConfig) -> list[Any]:
    keeps_text = keeps_training_text(data, tokenizer)
    if tokenizer.from_ is not None:
        return [*(side.fingerprint for side in load_tokenizers(tokenizer.from_)), keeps_text]
    key = [tokenizer.type, tokenizer.vocab_size, tokenizer.shared, keeps_text]
    # Noise shapes what is prepared through the vocabulary alone.
    return [*key, data.noise.model_dump()] if data.noise.is_on else key


def _is_ready(folder: Path, fingerprint: str, log: Log) -> bool:
    """Whether the folder holds these data, whole. A damaged one is removed, to be made again."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    manifest = read_manifest(folder)
    if manifest["fingerprint"] != fingerprint:
        raise DataError(
            f"{folder}: was prepared from other text or options; remove it or name another data.prepared_dir"
        )
    damaged = damaged_file(folder, manifest)
    if damaged is None:
        return True
    log(f"{folder / damaged}: is damaged; the data are prepared again")
    shutil.rmtree(folder)
    return False


def _build(recipe: Recipe, folder: Path, fingerprint: str) -> None:
    """Make everything in a temporary folder beside the final one, then rename it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(folder)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
    try:
        build(recipe.data, recipe.tokenizer, temporary)
        write_manifest(temporary, fingerprint)
        temporary.chmod(0o755)
        with contextlib.suppress(OSError):
            folder.rmdir()
        try:
            temporary.rename(folder)
        except OSError:
            # Another process may have been faster; its data are the same.
            if not folder.is_dir() or read_manifest(folder)["fingerprint"] != fingerprint:
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed attempts at this folder left behind; a young one may still be at work."""
    for leftover in folder.parent.glob(f".{folder.name}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _LEFTOVER_SECONDS:
                shutil.rmtree(leftover)
