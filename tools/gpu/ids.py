"""One file of ids: parallel text made ready beforehand, for machines without `datasets` or the text.

Holds train, valid and test ids that end in eos, the tokenizer, and the raw references of the test set.
"""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from transformer_mt.errors import DataError
from transformer_mt.text.lines import read_lines
from transformer_mt.text.tokenizer import EOS_ID, Tokenizer, train_tokenizer

Rows = list[npt.NDArray[np.int64]]
SPLITS = ("train", "valid", "test2016")
_SUFFIXES = ("", ".xz", ".gz")
_MAX_LENGTH = 256


@dataclass(frozen=True)
class Corpus:
    """src and tgt: per split the sentences, each ending in eos; references: raw text of test2016."""

    src: dict[str, Rows]
    tgt: dict[str, Rows]
    references: list[str]
    tokenizer: Tokenizer


def make_ids(path: Path, folder: Path, src_lang: str, tgt_lang: str, vocab_size: int) -> None:
    """Learn a joint BPE vocabulary from the training text of a folder and write the ids of all splits.

    Args:
        path: the file to write.
        folder: holds train, valid and test2016 as NAME.LANG, plain, .xz or .gz.

    Raises:
        DataError: text is missing, or both sides of it differ in length.
        ConfigError: a vocabulary larger or smaller than the text allows.
    """

    def lines(split: str, lang: str) -> list[str]:
        found = [folder / f"{split}.{lang}{suffix}" for suffix in _SUFFIXES]
        present = [file for file in found if file.is_file()]
        if not present:
            raise DataError(f"{found[0]}: no such file, nor .xz or .gz; name the folder of the text")
        return list(read_lines(present[0]))

    text = {split: (lines(split, src_lang), lines(split, tgt_lang)) for split in SPLITS}
    for split, (src, tgt) in text.items():
        if len(src) != len(tgt) or not src:
            raise DataError(
                f"{folder / split}: {len(src)} lines of {src_lang} and {len(tgt)} of {tgt_lang}; "
                "give as many of both, at least one"
            )
    joined = [line for side in text["train"] for line in side]
    tokenizer = train_tokenizer(joined, type="bpe", vocab_size=vocab_size)
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer.save(Path(scratch) / "tokenizer.model")
        model = (Path(scratch) / "tokenizer.model").read_bytes()
    arrays: dict[str, Any] = {"tokenizer": np.frombuffer(model, np.uint8)}
    for split, sides in text.items():
        encoded = [[[*ids, EOS_ID] for ids in tokenizer.encode_batch(side)] for side in sides]
        pairs = list(zip(*encoded, strict=True))
        if split == "train":
            pairs = [pair for pair in pairs if max(map(len, pair)) <= _MAX_LENGTH and min(map(len, pair)) > 1]
        for name, rows in zip(("src", "tgt"), zip(*pairs, strict=True), strict=True):
            arrays[f"{split}.{name}"] = np.concatenate([np.asarray(row, np.int32) for row in rows])
            arrays[f"{split}.{name}_lengths"] = np.array([len(row) for row in rows], np.int32)
    arrays["references"] = np.frombuffer("\n".join(text["test2016"][1]).encode(), np.uint8)
    with path.open("wb") as file:  # given a name, numpy would add .npz to it
        np.savez_compressed(file, **arrays)


def load_ids(path: Path) -> Corpus:
    """Read what `make_ids` wrote.

    Raises:
        DataError: it is missing, damaged or something else.
    """
    try:
        with np.load(path) as file:
            return _corpus({name: file[name] for name in file.files})
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; check the path") from None
    # What numpy raises for text, an empty file, another array, a damaged archive, and one of other arrays.
    except (ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error, KeyError):
        raise DataError(f"{path}: is not a file of ids; make one with --make-ids") from None


def _corpus(arrays: dict[str, Any]) -> Corpus:

    def rows(name: str) -> Rows:
        ends = np.cumsum(arrays[f"{name}_lengths"])[:-1]
        return list(np.split(arrays[name].astype(np.int64), ends))

    return Corpus(
        src={split: rows(f"{split}.src") for split in SPLITS},
        tgt={split: rows(f"{split}.tgt") for split in SPLITS},
        references=arrays["references"].tobytes().decode().split("\n"),
        tokenizer=Tokenizer.from_bytes(arrays["tokenizer"].tobytes()),
    )


def bleu(tokenizer: Tokenizer, hypotheses: list[list[int]], references: list[str]) -> tuple[float, str]:
    """sacreBLEU of ids against raw text, and its signature.

    Raises:
        ImportError: this Python has no sacrebleu.
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU()
    score = metric.corpus_score([tokenizer.decode(ids) for ids in hypotheses], [references])
    return float(score.score), str(metric.get_signature())
