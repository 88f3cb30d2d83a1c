"""What the rules of `prepare` say of every line of the training text: kept, or dropped for which reason.

The prepared data hold what was kept, in order, and how many were not; this reads the text once more and says
which. Memory is 9 bytes a pair. Knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from transformer_mt.config import DataConfig
from transformer_mt.text.corpus import Pair, read_pairs
from transformer_mt.text.corpus_check import (
    KEPT,
    Codes,
    Hashes,
    HeldOut,
    check_lengths,
    check_text,
    mark_duplicates,
)
from transformer_mt.text.tokenizer import Tokenizer, Tokenizers

_CHUNK = 8192


def training_text(data: DataConfig) -> Iterator[Pair]:
    """All pairs of the training text, source after source.

    Raises:
        DataError: text that cannot be used.
    """
    for name in data.train:
        yield from read_pairs(name, data.root or ".", data.src_lang, data.tgt_lang)


def verdicts(data: DataConfig, tokenizers: Tokenizers) -> Codes:
    """(N,) codes of `corpus_check` for all pairs of the training text, as `prepare` found them.

    Raises:
        DataError: text that cannot be used.
    """
    held_out = HeldOut()
    for name in (*data.valid, *data.test):
        for src, tgt in _chunks(read_pairs(name, data.root or ".", data.src_lang, data.tgt_lang)):
            held_out.add(src, tgt)
    codes, hashes, by_length = list[Codes](), list[Hashes](), list[Codes]()
    for src, tgt in _chunks(training_text(data)):
        chunk_codes, chunk_hashes = check_text(src, tgt, held_out)
        codes.append(chunk_codes)
        hashes.append(chunk_hashes)
        by_length.append(
            check_lengths(
                _lengths(src, tokenizers.src),
                _lengths(tgt, tokenizers.tgt),
                max_length=data.max_length,
                max_length_ratio=data.max_length_ratio,
            )
        )
    all_codes = np.concatenate(codes)
    mark_duplicates(all_codes, np.concatenate(hashes))
    return np.where(all_codes == KEPT, np.concatenate(by_length), all_codes)


def _chunks(pairs: Iterator[Pair]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    while chunk := list(islice(pairs, _CHUNK)):
        src, tgt = zip(*chunk, strict=True)
        yield src, tgt


def _lengths(texts: Sequence[str], tokenizer: Tokenizer) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Tokens with eos."""
    return tokenizer.encode_flat([text.encode("utf-8", "replace") for text in texts])[1]
