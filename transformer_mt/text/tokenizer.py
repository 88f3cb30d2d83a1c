"""Text <-> token ids by SentencePiece: load, encode, decode, sample.

Every string comes back unchanged from `decode(encode(text))`, whatever characters it holds, except that
U+2581 (SentencePiece's own mark for a space) comes back as a space, unless `encode_exactly` makes the ids:
characters outside the vocabulary are spelled in bytes, nothing is normalised, and special tokens cannot be
typed. What nobody sees (soft hyphens, zero-width joiners, U+0085, control characters) is text like any other:
it cuts a word where it stands and comes back there. What a model writes may hold line ends and halves of
characters, spelled in bytes: `decode` gives line ends as they are and U+FFFD for a broken character. Knows
nothing of files of text, of languages, or of padding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import sentencepiece

from transformer_mt.errors import DataError
from transformer_mt.runtime.cores import usable_cores
from transformer_mt.text.subword_sampling import SubwordSampler
from transformer_mt.text.vocabulary import (
    BOS_ID,
    EOS_ID,
    NUM_BYTES,
    NUM_SPECIAL,
    PAD_ID,
    UNK_ID,
    learn_vocabulary,
)

__all__ = [
    "BOS_ID",
    "EOS_ID",
    "NUM_BYTES",
    "NUM_SPECIAL",
    "PAD_ID",
    "UNK_ID",
    "Tokenizer",
    "Tokenizers",
    "load_tokenizers",
    "train_tokenizer",
]

Ids = Sequence[int] | npt.NDArray[np.integer]

_SPACE = "\u2581"
# Characters of a batch; for less, one thread is done before others have begun, however busy the machine is.
_WORTH_THREADS = 16_384
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
        """`encode` of many texts: on all cores, where that is quicker than to begin threads."""
        threads = usable_cores().number if sum(map(len, texts)) >= _WORTH_THREADS else 1
        batch: list[list[int]] = self._processor.encode(
            [_utf8(text) for text in texts], out_type=int, num_threads=threads
        )
        return batch

    def encode_exactly(self, text: str) -> list[int]:
        """`encode`, but U+2581 is spelled in bytes, so that it comes back too.

        For text that a translation shall hold; in what a model reads it is a space, as in training.
        """
        if _SPACE not in text:
            return self.encode(text)
        # A character without a piece is spelled in bytes, and shows where those of U+2581 belong.
        unused = (chr(code) for code in range(0x10FFFD, 0xF0000, -1))
        other = next(one for one in unused if one not in text and self._processor.piece_to_id(one) == UNK_ID)
        ids = "".join(map(chr, self.encode(text.replace(_SPACE, other))))
        spelled, wanted = (
            "".join(chr(NUM_SPECIAL + byte) for byte in one.encode()) for one in (other, _SPACE)
        )
        return list(map(ord, ids.replace(spelled, wanted)))

    def encode_flat(self, texts: Sequence[bytes]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Ids of many texts, each ending in eos, one after the other; and how many each text has.

        One thread; others may encode at the same time.

        Args:
            texts: UTF-8.

        Returns:
            ids (sum of lengths,), lengths (N,).
        """
        rows = self._processor.encode(list(texts), out_type=int, add_eos=True, num_threads=1)
        lengths = np.fromiter(map(len, rows), dtype=np.int32, count=len(rows))
        total = int(lengths.sum(dtype=np.int64))
        return np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=total), lengths

    def sample(self, text: str, rate: float, seed: int) -> list[int]:
        """One random segmentation of the text: a pure function of its arguments.

        Args:
            rate: unigram: smoothing exponent alpha over all segmentations (Kudo 2018), where 0 makes all
                equally likely; BPE: share of merges left out (Provilkov et al. 2020), where 0 is `encode`.
                In text without spaces BPE needs more of it: that paper takes 0.1, but 0.6 for Chinese.
            seed: any non-negative number.
        """
        return self._sampler.sample(_utf8(text).decode(), rate, seed)

    @cached_property
    def _sampler(self) -> SubwordSampler:
        """Made when first needed: it reads all pieces, which most programs never ask for."""
        return SubwordSampler(self._processor)

    def decode(self, ids: Ids) -> str:
        """Text of the ids; special tokens have none."""
        text: str = self._processor.decode([int(token) for token in ids if token >= NUM_SPECIAL])
        return text

    def pieces(self, ids: Ids) -> list[str]:
        """The pieces as SentencePiece writes them, special tokens included."""
        return [str(self._processor.id_to_piece(int(token))) for token in ids]

    def spans(self, ids: Ids) -> list[tuple[int, int]]:
        """Where the characters of every token stand in `decode(ids)`: from its first to after its last.

        The bytes of one character all stand at its place. Special tokens have no characters, and neither has
        the space that SentencePiece puts before every text.
        """
        text, place = self.decode(ids), 0
        spans = [(0, 0)] * len(ids)
        shown = [index for index, token in enumerate(ids) if token >= NUM_SPECIAL]
        pieces = self.pieces([ids[index] for index in shown])
        number = 0
        while number < len(shown):
            count, size = 1, len(pieces[number])
            if self.is_byte(int(ids[shown[number]])):
                spelled = [f"<0x{byte:02X}>" for byte in text[place].encode()]
                # A byte that is no part of UTF-8 text is shown as U+FFFD, and so is a single one.
                count, size = len(spelled) if pieces[number : number + len(spelled)] == spelled else 1, 1
            elif number == 0 and pieces[0].startswith(_SPACE):
                size -= 1
            for index in shown[number : number + count]:
                spans[index] = (place, place + size)
            number, place = number + count, place + size
        return spans

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
    """A tokenizer whose vocabulary is learned from text; see `vocabulary.py` for how.

    Args:
        lines: training text, read once.
        type: `unigram` or `bpe`.
        vocab_size: pieces, the 4 special and 256 byte pieces included.

    Raises:
        DataError: no text.
        ConfigError: a vocabulary larger or smaller than the text allows, with the largest or smallest.
    """
    return Tokenizer.from_bytes(learn_vocabulary(lines, type=type, vocab_size=vocab_size))


def _utf8(text: str) -> bytes:
    """Half of a surrogate pair, which a Python string may hold but text cannot, becomes a question mark."""
    return text.encode("utf-8", "replace")
