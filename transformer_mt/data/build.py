"""Corpus -> the files of one folder: tokenizers, encoded splits, report.

The training text is read once into a temporary Arrow file, checked, used to learn the vocabulary, encoded
and thrown away. Memory does not grow with the corpus, except for 9 bytes a pair. Knows nothing of where the
folder is or when it is needed.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from transformer_mt.config import DataConfig, TokenizerConfig
from transformer_mt.data.prepared_files import SplitWriter
from transformer_mt.data.report import SplitReport, as_report
from transformer_mt.errors import ConfigError, DataError
from transformer_mt.text.corpus import place, read_pairs
from transformer_mt.text.corpus_check import (
    KEPT,
    Codes,
    Hashes,
    HeldOut,
    Notes,
    check_lengths,
    check_text,
    findings,
    mark_duplicates,
)
from transformer_mt.text.lines import is_blank
from transformer_mt.text.tokenizer import EOS_ID, Tokenizers, load_tokenizers, train_tokenizer

_CHUNK = 8192
_RAW_SCHEMA = pa.schema([("src", pa.string()), ("tgt", pa.string())])

Pair = tuple[str, str]


def build(data: DataConfig, tokenizer: TokenizerConfig, folder: Path) -> None:
    """Fill an empty folder.

    Raises:
        DataError: text that cannot be used, or no pair left to train on.
        ConfigError: a vocabulary size the text does not allow.
    """
    held_out = HeldOut()
    valid, valid_report = _read_held_out(data, data.valid, held_out)
    test_reports = {name: _read_held_out(data, (name,), held_out)[1] for name in data.test}
    sources = _Sources(data, data.train)
    raw = folder / "raw.arrow"
    codes, notes = _read_train(sources, raw, held_out)
    _refuse_nothing_left(codes, sources)
    tokenizers = _learn_or_load(tokenizer, raw, codes)
    tokenizers.save(folder)
    _write_valid(valid, tokenizers, folder, valid_report)
    train_report = _write_train(data, raw, codes, tokenizers, folder, with_text=tokenizer.sampling > 0.0)
    _refuse_nothing_left(codes, sources)
    raw.unlink()
    train_report.dropped, train_report.noted = findings(codes, sources.place), notes.findings
    sizes = (tokenizers.src.vocab_size, tokenizers.tgt.vocab_size)
    text = json.dumps(
        as_report(train_report, valid_report, test_reports, sizes), ensure_ascii=False, indent=1
    )
    (folder / "report.json").write_text(text + "\n", encoding="utf-8")


class _Sources:
    """Several sources read one after the other, and where each pair of them stands."""

    def __init__(self, data: DataConfig, names: Sequence[str]) -> None:
        self._data, self._names = data, names
        self._starts: list[int] = []

    def chunks(self) -> Iterator[list[Pair]]:
        """Lists of at most _CHUNK pairs."""
        pairs = self._pairs()
        while chunk := list(islice(pairs, _CHUNK)):
            yield chunk

    def place(self, index: int) -> str:
        """file:line of a pair that has been read."""
        number = bisect_right(self._starts, index) - 1
        where = (self._data.root or ".", self._data.src_lang, self._data.tgt_lang)
        return place(self._names[number], *where, index - self._starts[number] + 1)

    def _pairs(self) -> Iterator[Pair]:
        count = 0
        for name in self._names:
            self._starts.append(count)
            start = count
            for pair in read_pairs(name, self._data.root or ".", self._data.src_lang, self._data.tgt_lang):
                count += 1
                yield pair
            if count == start:
                raise DataError(f"{name}: is empty; a source must hold at least one pair")


def _read_held_out(
    data: DataConfig, names: Sequence[str], held_out: HeldOut
) -> tuple[list[Pair], SplitReport]:
    """A validation or test set: counted, never dropped from."""
    sources, notes, pairs = _Sources(data, names), Notes(), list[Pair]()
    for chunk in sources.chunks():
        for index, pair in enumerate(chunk, start=len(pairs)):
            where = partial(sources.place, index)
            notes.look(pair, where)
            if is_blank(pair[0]) or is_blank(pair[1]):
                notes.add("empty side", where)
        held_out.add(chunk)
        pairs += chunk
    return pairs, SplitReport(read=len(pairs), kept=len(pairs), noted=notes.findings)


def _read_train(sources: _Sources, raw: Path, held_out: HeldOut) -> tuple[Codes, Notes]:
    """Read and check the training text; it lands in `raw`, the verdicts are returned, one for each pair."""
    notes, codes, hashes, count = Notes(), list[Codes](), list[Hashes](), 0
    with pa.ipc.new_file(str(raw), _RAW_SCHEMA) as writer:
        for chunk in sources.chunks():
            chunk_codes, chunk_hashes = check_text(chunk, held_out)
            for index, pair in enumerate(chunk, start=count):
                notes.look(pair, partial(sources.place, index))
            columns = [pa.array([pair[side] for pair in chunk], type=pa.string()) for side in (0, 1)]
            writer.write_batch(pa.record_batch(columns, schema=_RAW_SCHEMA))
            codes.append(chunk_codes)
            hashes.append(chunk_hashes)
            count += len(chunk)
    all_codes = np.concatenate(codes)
    mark_duplicates(all_codes, np.concatenate(hashes))
    return all_codes, notes


def _kept_chunks(raw: Path, codes: Codes) -> Iterator[tuple[np.ndarray[Any, Any], list[Pair]]]:
    """(indices, pairs) of what is kept so far, one record batch at a time."""
    reader = pa.ipc.open_file(pa.memory_map(str(raw)))
    start = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        rows = np.flatnonzero(codes[start : start + batch.num_rows] == KEPT)
        kept = batch.take(pa.array(rows))
        yield start + rows, list(zip(kept["src"].to_pylist(), kept["tgt"].to_pylist(), strict=True))
        start += batch.num_rows


def _learn_or_load(options: TokenizerConfig, raw: Path, codes: Codes) -> Tokenizers:
    """Learned from the kept pairs, or taken from an earlier run."""
    if options.from_ is not None:
        loaded = load_tokenizers(options.from_)
        if options.shared and not loaded.shared:
            raise ConfigError(
                f"tokenizer.shared: is true, but {options.from_} holds one vocabulary a side; set it to false"
            )
        return loaded

    def lines(sides: tuple[int, ...]) -> Iterator[str]:
        return (pair[side] for _, pairs in _kept_chunks(raw, codes) for pair in pairs for side in sides)

    if options.shared:
        joint = train_tokenizer(lines((0, 1)), type=options.type, vocab_size=options.vocab_size)
        return Tokenizers(joint, joint)
    return Tokenizers(
        *(
            train_tokenizer(lines((side,)), type=options.type, vocab_size=options.vocab_size)
            for side in (0, 1)
        )
    )


def _encode(pairs: Sequence[Pair], tokenizers: Tokenizers) -> tuple[list[list[int]], list[list[int]]]:
    """Ids of both sides, ending in eos."""
    sides = []
    for side, tokenizer in enumerate(tokenizers):
        ids = tokenizer.encode_batch([pair[side] for pair in pairs])
        for row in ids:
            row.append(EOS_ID)
        sides.append(ids)
    return sides[0], sides[1]


def _write_valid(pairs: list[Pair], tokenizers: Tokenizers, folder: Path, report: SplitReport) -> None:
    """Encode the validation pairs, all of them; however long."""
    with SplitWriter(folder, "valid", with_text=True) as writer:
        for start in range(0, len(pairs), _CHUNK):
            chunk = pairs[start : start + _CHUNK]
            src, tgt = _encode(chunk, tokenizers)
            report.src.add(src)
            report.tgt.add(tgt)
            writer.write(src, tgt, chunk)


def _write_train(
    data: DataConfig, raw: Path, codes: Codes, tokenizers: Tokenizers, folder: Path, *, with_text: bool
) -> SplitReport:
    """Encode what is kept, drop what is too long or out of proportion (into `codes`), write the rest."""
    report = SplitReport(read=len(codes), kept=0)
    with SplitWriter(folder, "train", with_text=with_text) as writer:
        for indices, pairs in _kept_chunks(raw, codes):
            src, tgt = _encode(pairs, tokenizers)
            codes[indices] = check_lengths(
                np.fromiter(map(len, src), dtype=np.int64, count=len(src)),
                np.fromiter(map(len, tgt), dtype=np.int64, count=len(tgt)),
                max_length=data.max_length,
                max_length_ratio=data.max_length_ratio,
            )
            rows = np.flatnonzero(codes[indices] == KEPT).tolist()
            src, tgt = [src[row] for row in rows], [tgt[row] for row in rows]
            report.src.add(src)
            report.tgt.add(tgt)
            report.kept += len(rows)
            writer.write(src, tgt, [pairs[row] for row in rows])
    return report


def _refuse_nothing_left(codes: Codes, sources: _Sources) -> None:
    if not np.any(codes == KEPT):
        reasons = ", ".join(f"{found.count} {why}" for why, found in findings(codes, sources.place).items())
        raise DataError(
            f"no training pair is left of {len(codes)}: {reasons}; "
            "check the training text and data.max_length"
        )
