"""Special ids, and how a vocabulary is learned from text by SentencePiece.

The same lines give the same model on every machine. At most _MAX_TRAINING_LINES are used, drawn evenly from
all lines. Every character of the text becomes a piece while they fill at most half of the vocabulary; beyond
that the rarest ones are spelled in bytes. Knows nothing of languages or of files.
"""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import sentencepiece

from transformer_mt.errors import ConfigError, DataError

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
NUM_SPECIAL = 4
NUM_BYTES = 256
"""Byte pieces take the ids from NUM_SPECIAL on, in the order of the bytes."""

# Unigram training takes minutes for each 100,000 lines of unsegmented script; with 100,000 instead of 667,000
# lines of Japanese and English, the text came out 0.7% shorter in tokens, not longer.
_MAX_TRAINING_LINES = {"unigram": 200_000, "bpe": 1_000_000}
_MAX_LINE_BYTES = 4192
# Fixed, because the result of unigram training depends on it in the last digits.
_TRAINING_THREADS = 8
# SentencePiece accepts no lower coverage; what is rarer than this may be spelled in bytes.
_MIN_COVERAGE = 0.98
_USUAL_COVERAGE = 0.9995


def learn_vocabulary(lines: Iterable[str], *, type: str, vocab_size: int) -> bytes:
    """The serialised SentencePiece model; arguments and errors are those of `train_tokenizer`."""
    sample = _draw((piece for line in lines for piece in _training_pieces(line)), _MAX_TRAINING_LINES[type])
    if not sample:
        raise DataError("the training text is empty; there is nothing to learn a vocabulary from")
    try:
        return _train(sample, type, vocab_size)
    except RuntimeError as error:
        raise _vocabulary_error(str(error), sample, type, vocab_size) from None


def _train(sample: list[str], type: str, vocab_size: int) -> bytes:
    """The serialised model; RuntimeError is SentencePiece's complaint about the vocabulary size."""
    model = io.BytesIO()
    options: dict[str, Any] = {
        "model_type": type,
        "vocab_size": vocab_size,
        "byte_fallback": True,
        "character_coverage": _coverage(sample, vocab_size),
        # Spelled in bytes, the mark for a space would come back as itself.
        "required_chars": "\u2581",
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": True,
        "pad_id": PAD_ID,
        "unk_id": UNK_ID,
        "bos_id": BOS_ID,
        "eos_id": EOS_ID,
        "max_sentence_length": _MAX_LINE_BYTES,
        "num_threads": _TRAINING_THREADS,
        "minloglevel": 2,
    }
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sample), model_writer=model, **options)
    return model.getvalue()


def _training_pieces(line: str) -> Iterator[str]:
    """The line in pieces that SentencePiece does not skip: within its limit of bytes, without U+2585."""
    line = line.replace("\u2585", " ")
    if len(line) * 4 <= _MAX_LINE_BYTES or len(line.encode("utf-8")) <= _MAX_LINE_BYTES:
        yield line
        return
    size = _MAX_LINE_BYTES // 4
    start = 0
    while start < len(line):
        space = line.rfind(" ", start + 1, start + size)
        end = space if space > 0 and start + size < len(line) else start + size
        yield line[start:end]
        start = end


def _draw(lines: Iterable[str], limit: int) -> list[str]:
    """At most `limit` lines that are not blank, each equally likely (Vitter's algorithm R)."""
    generator = random.Random(0)
    drawn: list[str] = []
    count = 0
    for line in lines:
        if not line.strip():
            continue
        count += 1
        if len(drawn) < limit:
            drawn.append(line)
        elif (place := generator.randrange(count)) < limit:
            drawn[place] = line
    return drawn


def _coverage(lines: Iterable[str], vocab_size: int) -> float:
    """Share of the text whose characters become pieces of their own.

    All of it while they fill at most half of the vocabulary; else the rarest ones, up to one character in
    2,000, are left to bytes; only if even those do not fit, up to one in 50.
    """
    counts: Counter[str] = Counter({" ": 1})
    for line in lines:
        counts.update(line)
    room = vocab_size - NUM_SPECIAL - NUM_BYTES
    if len(counts) <= room // 2:
        return 1.0
    covered = np.cumsum([count for _, count in counts.most_common()]) / counts.total()
    coverage = max(float(covered[max(room // 2, 1) - 1]), _USUAL_COVERAGE)
    fits = int(np.searchsorted(covered, coverage)) < room
    return coverage if fits else _MIN_COVERAGE


def _vocabulary_error(message: str, sample: list[str], type: str, vocab_size: int) -> ConfigError:
    """SentencePiece's complaint in this program's words."""
    if largest := re.search(r"set it to a value <= (\d+)", message):
        bound, given = _largest(sample, type, int(largest[1])), "most"
    elif smallest := re.search(r"required_chars\. \d+ vs (\d+)", message):
        bound, given = int(smallest[1]), "least"
    else:
        return ConfigError(
            f"tokenizer: SentencePiece cannot learn this vocabulary: {' '.join(message.split())}"
        )
    return ConfigError(
        f"tokenizer.vocab_size: must be at {given} {bound} for this training text, "
        f"but is {vocab_size} instead"
    )


def _largest(sample: list[str], type: str, named: int) -> int:
    """The largest size that works; the one SentencePiece names may not, as it prunes by what is asked."""

    def works(size: int) -> bool:
        try:
            return bool(_train(sample, type, size))
        except RuntimeError:
            return False

    low, high = NUM_SPECIAL + NUM_BYTES, named + 1
    middle = named
    while high - low > 1:
        if works(middle):
            low = middle
        else:
            high = middle
        # Near the top first: the named size is seldom far off.
        middle = high - max((high - low) // 4, 1)
    return low
