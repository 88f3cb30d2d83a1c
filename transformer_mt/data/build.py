"""Corpus -> the files of one folder: tokenizers, encoded splits, report.

The training text is read once into a temporary Arrow file, checked, used to learn the vocabulary, encoded
and thrown away. Memory does not grow with the corpus, except for 18 bytes a pair. Texts and ids stay in
columns: Python objects for each of them would cost more than finding the ids does. Knows nothing of where the
folder is or when it is needed.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transformer_mt.config import DataConfig, TokenizerConfig
from transformer_mt.data.prepared_files import EXAMPLES, SplitWriter, flat_ids
from transformer_mt.data.report import SplitReport, as_report
from transformer_mt.data.tokenizer_report import TokenizerCheck, TokenizerReport
from transformer_mt.errors import ConfigError, DataError
from transformer_mt.runtime.cores import usable_cores
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
from transformer_mt.text.noise import NoiseRates, noise_draws
from transformer_mt.text.tokenizer import Tokenizer, Tokenizers, load_tokenizers, train_tokenizer

_CHUNK = 8192
_TEXT = pa.schema([("src_text", pa.string()), ("tgt_text", pa.string())])

Pair = tuple[str, str]
Texts = tuple[str, ...]
Indices = npt.NDArray[np.int64]


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
    tokenizers = _learn_or_load(data, tokenizer, raw, codes)
    tokenizers.save(folder)
    _write_valid(valid, tokenizers, folder, valid_report)
    with_text = keeps_training_text(data, tokenizer)
    train_report, trust = _write_train(data, raw, codes, tokenizers, folder, with_text=with_text)
    _refuse_nothing_left(codes, sources)
    raw.unlink()
    train_report.dropped, train_report.noted = findings(codes, sources.place), notes.findings
    sizes = (tokenizers.src.vocab_size, tokenizers.tgt.vocab_size)
    text = json.dumps(
        as_report(train_report, valid_report, test_reports, sizes, trust), ensure_ascii=False, indent=1
    )
    (folder / "report.json").write_text(text + "\n", encoding="utf-8")


def keeps_training_text(data: DataConfig, tokenizer: TokenizerConfig) -> bool:
    """Whether training draws from the text itself, so that it is stored beside the ids."""
    return tokenizer.sampling > 0.0 or data.noise.is_on


class _Sources:
    """Several sources read one after the other, and where each pair of them stands."""

    def __init__(self, data: DataConfig, names: Sequence[str]) -> None:
        self._data, self._names = data, names
        self._starts: list[int] = []

    def chunks(self) -> Iterator[tuple[Texts, Texts]]:
        """Both sides of at most _CHUNK pairs."""
        pairs = self._pairs()
        while chunk := list(islice(pairs, _CHUNK)):
            src, tgt = zip(*chunk, strict=True)
            yield src, tgt

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
) -> tuple[list[pa.RecordBatch], SplitReport]:
    """A validation or test set: counted, never dropped from."""
    sources, notes, texts, count = _Sources(data, names), Notes(), list[pa.RecordBatch](), 0
    for src, tgt in sources.chunks():
        notes.look(src, tgt, lambda index, start=count: sources.place(start + index))  # type: ignore[misc]
        for index, pair in enumerate(zip(src, tgt, strict=True), start=count):
            if is_blank(pair[0]) or is_blank(pair[1]):
                notes.add("empty side", partial(sources.place, index))
        held_out.add(src, tgt)
        texts.append(_text_batch(src, tgt))
        count += len(src)
    return texts, SplitReport(read=count, kept=count, noted=notes.findings)


def _read_train(sources: _Sources, raw: Path, held_out: HeldOut) -> tuple[Codes, Notes]:
    """Read and check the training text; it lands in `raw`, the verdicts are returned, one for each pair."""
    notes, codes, hashes, count = Notes(), list[Codes](), list[Hashes](), 0
    with pa.ipc.new_file(str(raw), _TEXT) as writer:
        for src, tgt in sources.chunks():
            chunk_codes, chunk_hashes = check_text(src, tgt, held_out)
            notes.look(src, tgt, lambda index, start=count: sources.place(start + index))  # type: ignore[misc]
            writer.write_batch(_text_batch(src, tgt))
            codes.append(chunk_codes)
            hashes.append(chunk_hashes)
            count += len(src)
    all_codes = np.concatenate(codes)
    all_hashes = np.concatenate(hashes)
    hashes.clear()  # nothing here grows as these do
    mark_duplicates(all_codes, all_hashes)
    return all_codes, notes


def _text_batch(src: Texts, tgt: Texts) -> pa.RecordBatch:
    return pa.record_batch([pa.array(side, type=pa.string()) for side in (src, tgt)], schema=_TEXT)


def _kept_chunks(raw: Path, codes: Codes) -> Iterator[tuple[Indices, pa.RecordBatch]]:
    """(indices, texts) of what is kept so far, one record batch at a time."""
    reader = pa.ipc.open_file(pa.memory_map(str(raw)))
    start = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        rows = np.flatnonzero(codes[start : start + batch.num_rows] == KEPT)
        yield start + rows, batch.take(pa.array(rows))
        start += batch.num_rows


def _learn_or_load(data: DataConfig, options: TokenizerConfig, raw: Path, codes: Codes) -> Tokenizers:
    """Learned from the kept pairs, or taken from an earlier run."""
    if options.from_ is not None:
        loaded = load_tokenizers(options.from_)
        if options.shared and not loaded.shared:
            raise ConfigError(
                f"tokenizer.shared: is true, but {options.from_} holds one vocabulary a side; set it to false"
            )
        return loaded
    noise = NoiseRates(**data.noise.model_dump())

    def lines(sides: tuple[str, ...]) -> Iterator[str]:
        for indices, texts in _kept_chunks(raw, codes):
            columns = {side: _objects(texts.column(f"{side}_text")) for side in sides}
            if "src" in columns and data.noise.is_on:
                columns["src"] = _noised(columns["src"], indices, noise)
            yield from chain.from_iterable(zip(*columns.values(), strict=True))

    if options.shared:
        joint = train_tokenizer(lines(("src", "tgt")), type=options.type, vocab_size=options.vocab_size)
        return Tokenizers(joint, joint)
    return Tokenizers(
        *(
            train_tokenizer(lines((side,)), type=options.type, vocab_size=options.vocab_size)
            for side in ("src", "tgt")
        )
    )


def _noised(texts: list[str], indices: Indices, noise: NoiseRates) -> list[str]:
    """Sources as one epoch of training would draw them, so that shouted words get pieces of their own.

    Without them a vocabulary spells capitals letter by letter: of Multi30k's German (joint BPE, 8,000 pieces)
    5.4 pieces a word in upper case instead of 1.3.
    """
    if not len(indices):
        return texts
    first = int(indices[0])
    draws = noise_draws(0, 0, first, int(indices[-1]) - first + 1)[indices - first]
    for row in np.flatnonzero(noise.touched(draws)):
        texts[row] = noise.apply(texts[row], draws[row])
    return texts


def _examples(
    chunks: Iterable[tuple[Indices, pa.RecordBatch]], tokenizers: Tokenizers
) -> Iterator[tuple[Indices, pa.RecordBatch]]:
    """Texts -> ids of both sides, ending in eos, and the texts: on all cores, a few chunks in memory."""
    workers = usable_cores().number
    running: deque[tuple[Indices, pa.RecordBatch, list[Future[pa.ListArray]]]] = deque()

    def finished() -> tuple[Indices, pa.RecordBatch]:
        indices, texts, sides = running.popleft()
        return indices, pa.record_batch([*(side.result() for side in sides), *texts.columns], EXAMPLES)

    with ThreadPoolExecutor(workers) as pool:
        for indices, texts in chunks:
            # SentencePiece works outside of Python; one task a side, so that the last ones end together.
            sides = [pool.submit(_encode, *side) for side in zip(texts.columns, tokenizers, strict=True)]
            running.append((indices, texts, sides))
            if len(running) > 1 + workers // len(sides):
                yield finished()
        while running:
            yield finished()


def _encode(texts: pa.Array, tokenizer: Tokenizer) -> pa.ListArray:
    ids, lengths = tokenizer.encode_flat(_objects(texts.cast(pa.binary())))
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids))


def _objects(column: pa.Array) -> list[Any]:
    """A column as Python objects; several times faster than `to_pylist`."""
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return values


def _write_valid(
    texts: list[pa.RecordBatch], tokenizers: Tokenizers, folder: Path, report: SplitReport
) -> None:
    """Encode the validation pairs, all of them; however long."""
    chunks = ((np.arange(batch.num_rows), batch) for batch in texts)
    with SplitWriter(folder, "valid", with_text=True) as writer:
        for _, examples in _examples(chunks, tokenizers):
            _count(report, examples)
            writer.write(examples)


def _write_train(
    data: DataConfig, raw: Path, codes: Codes, tokenizers: Tokenizers, folder: Path, *, with_text: bool
) -> tuple[SplitReport, tuple[TokenizerReport, TokenizerReport]]:
    """Encode what is kept, drop what is too long or out of proportion (into `codes`), write the rest."""
    report = SplitReport(read=len(codes), kept=0)
    expected = int((codes == KEPT).sum())
    src, tgt = (TokenizerCheck(tokenizer, expected) for tokenizer in tokenizers)
    with SplitWriter(folder, "train", with_text=with_text) as writer:
        for indices, examples in _examples(_kept_chunks(raw, codes), tokenizers):
            codes[indices] = check_lengths(
                flat_ids(examples, "src")[1],
                flat_ids(examples, "tgt")[1],
                max_length=data.max_length,
                max_length_ratio=data.max_length_ratio,
            )
            kept = examples.filter(pa.array(codes[indices] == KEPT))
            _count(report, kept)
            report.kept += kept.num_rows
            src.add(kept.column("src"), kept.column("src_text"))
            tgt.add(kept.column("tgt"), kept.column("tgt_text"))
            writer.write(kept)
    return report, (src.finished(), tgt.finished())


def _count(report: SplitReport, examples: pa.RecordBatch) -> None:
    report.src.add(*flat_ids(examples, "src"))
    report.tgt.add(*flat_ids(examples, "tgt"))


def _refuse_nothing_left(codes: Codes, sources: _Sources) -> None:
    if not np.any(codes == KEPT):
        reasons = ", ".join(f"{found.count} {why}" for why, found in findings(codes, sources.place).items())
        raise DataError(
            f"no training pair is left of {len(codes)}: {reasons}; "
            "check the training text and data.max_length"
        )
