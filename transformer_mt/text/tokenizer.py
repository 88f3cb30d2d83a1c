"""Text <-> token ids by SentencePiece: train, load, encode, decode, sample.

Every string comes back unchanged from `decode(encode(text))`, whatever characters it holds, except that
U+2581 (SentencePiece's own mark for a space) comes back as a space: characters outside the vocabulary are
spelled in bytes, nothing is normalised, and special tokens cannot be typed. Knows nothing of files of text,
of languages, or of padding.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sentencepiece

from transformer_mt.errors import ConfigError, DataError

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
NUM_SPECIAL = 4
NUM_BYTES = 256
"""Byte pieces take the ids from NUM_SPECIAL on, in the order of the bytes."""

_MAX_TRAINING_LINES = 1_000_000
_MAX_LINE_BYTES = 4192
# Fixed, because the result of unigram training depends on it in the last digits.
_TRAINING_THREADS = 8
# SentencePiece accepts no lower coverage; what is rarer than this may be spelled in bytes.
_MIN_COVERAGE = 0.98
_USUAL_COVERAGE = 0.9995
_PROBE = "  Ａ½ ﬁ\t<pad></s><0x0A>\x00\n😀  "


class Tokenizer:
    """A SentencePiece model with this project's special ids."""

    def __init__(self, model: bytes, name: str) -> None:
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise DataError(f"{name}: is not a SentencePiece model, or a damaged one") from None
        processor = self._processor
        ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if ids != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
            raise DataError(
                f"{name}: pad, unk, bos, eos must have the ids 0, 1, 2, 3, but have "
                f"{', '.join(map(str, ids))}; train the tokenizer with this program"
            )
        if self.decode(self.encode(_PROBE)) != _PROBE:
            raise DataError(
                f"{name}: changes text on the way to tokens and back (normalisation, or no byte fallback); "
                "train the tokenizer with this program"
            )

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Read a model file.

        Raises:
            DataError: missing, damaged, or made with other special ids or with normalisation.
        """
        try:
            model = Path(path).read_bytes()
        except OSError as error:
            raise DataError(
                f"{path}: the tokenizer cannot be read: {error.strerror}; check the path"
            ) from None
        return cls(model, str(path))

    @classmethod
    def from_bytes(cls, model: bytes) -> Tokenizer:
        """The tokenizer of a serialised model."""
        return cls(model, "tokenizer model")

    def save(self, path: str | Path) -> None:
        """Write the model file."""
        Path(path).write_bytes(self._model)

    @property
    def vocab_size(self) -> int:
        """Number of pieces; ids run from 0 to this minus one."""
        return int(self._processor.get_piece_size())

    @property
    def fingerprint(self) -> str:
        """sha256 of the model."""
        return hashlib.sha256(self._model).hexdigest()

    def encode(self, text: str) -> list[int]:
        """Ids of the text, without bos and eos; an empty text has none."""
        ids: list[int] = self._processor.encode(_utf8(text), out_type=int)
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of many texts, on all cores."""
        batch: list[list[int]] = self._processor.encode(
            [_utf8(text) for text in texts], out_type=int, num_threads=os.cpu_count() or 1
        )
        return batch

    def sample(self, text: str, rate: float, seed: int) -> list[int]:
        """One random segmentation of the text: a pure function of its arguments.

        Args:
            rate: unigram: smoothing exponent alpha over all segmentations (Kudo 2018); BPE: share of merges
                left out (Provilkov et al. 2020).
            seed: any non-negative number. SentencePiece's generator is one per process, hence seeded anew
                for each call; do not call from several threads.
        """
        sentencepiece.set_random_generator_seed(seed % 2**32)
        ids: list[int] = self._processor.encode(
            _utf8(text), out_type=int, enable_sampling=True, alpha=rate, nbest_size=-1
        )
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids; special tokens have none."""
        text: str = self._processor.decode([int(token) for token in ids if token >= NUM_SPECIAL])
        return text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as SentencePiece writes them, special tokens included."""
        return [str(self._processor.id_to_piece(int(token))) for token in ids]

    def is_byte(self, token: int) -> bool:
        """Whether a piece stands for one byte of a character that has no piece of its own."""
        return bool(self._processor.is_byte(token))


class Tokenizers(NamedTuple):
    """The tokenizers of both sides: one object twice when the vocabulary is joint."""

    src: Tokenizer
    tgt: Tokenizer

    @property
    def shared(self) -> bool:
        """Whether both sides use one vocabulary."""
        return self.src.fingerprint == self.tgt.fingerprint

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.model, or tokenizer.src.model and tokenizer.tgt.model."""
        if self.shared:
            self.src.save(Path(folder) / "tokenizer.model")
        else:
            self.src.save(Path(folder) / "tokenizer.src.model")
            self.tgt.save(Path(folder) / "tokenizer.tgt.model")


def load_tokenizers(path: str | Path) -> Tokenizers:
    """The tokenizers of a folder, or one model file for both sides.

    Raises:
        DataError: no model there, or one that cannot be used.
    """
    path = Path(path)
    joint = path / "tokenizer.model" if path.is_dir() else path
    sides = [path / f"tokenizer.{side}.model" for side in ("src", "tgt")]
    if joint.exists():
        tokenizer = Tokenizer.load(joint)
        return Tokenizers(tokenizer, tokenizer)
    if all(side.exists() for side in sides):
        return Tokenizers(*(Tokenizer.load(side) for side in sides))
    raise DataError(
        f"{path}: holds no tokenizer.model and no pair tokenizer.src.model, tokenizer.tgt.model; "
        "name a run directory or a SentencePiece model file"
    )


def train_tokenizer(lines: Iterable[str], *, type: str, vocab_size: int) -> Tokenizer:
    """Learn a vocabulary from text; the same lines give the same model on every machine.

    At most _MAX_TRAINING_LINES are used, drawn evenly from all lines. Every character of the text becomes a
    piece while they fill at most half of the vocabulary; beyond that the rarest ones are spelled in bytes.

    Args:
        lines: training text, read once.
        type: `unigram` or `bpe`.
        vocab_size: pieces, the 4 special and 256 byte pieces included.

    Raises:
        DataError: no text.
        ConfigError: a vocabulary larger or smaller than the text allows, with the largest or smallest.
    """
    sample = _draw(piece for line in lines for piece in _training_pieces(line))
    if not sample:
        raise DataError("the training text is empty; there is nothing to learn a vocabulary from")
    try:
        return Tokenizer.from_bytes(_train(sample, type, vocab_size))
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


def _utf8(text: str) -> bytes:
    """Half of a surrogate pair, which a Python string may hold but text cannot, becomes a question mark."""
    return text.encode("utf-8", "replace")


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


def _draw(lines: Iterable[str]) -> list[str]:
    """At most _MAX_TRAINING_LINES lines that are not blank, each equally likely (Vitter's algorithm R)."""
    generator = random.Random(0)
    drawn: list[str] = []
    count = 0
    for line in lines:
        if not line.strip():
            continue
        count += 1
        if len(drawn) < _MAX_TRAINING_LINES:
            drawn.append(line)
        elif (place := generator.randrange(count)) < _MAX_TRAINING_LINES:
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
        f"tokenizer.vocab_size: must be at {given} {bound} for this training text, but is {vocab_size} instead"
    )


def _largest(sample: list[str], type: str, named: int) -> int:
    """The largest size that works: the one SentencePiece names may be too large again, as pruning depends on it."""

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
