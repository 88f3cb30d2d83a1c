"""Sources of parallel text -> aligned pairs of raw lines.

A source is a file prefix (`train` reads `train.<lang>`, also packed), a `.tsv` or `.jsonl` file (also
packed) or `hf:NAME[/CONFIG][@SPLIT]` (`hub.py`). Nothing is dropped, changed or counted here: that is
`corpus_check.py`. Knows nothing of tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from transformer_mt.errors import DataError
from transformer_mt.text.arrivals import STDIN, lines_of
from transformer_mt.text.hub import HUB_PREFIX, read_hub
from transformer_mt.text.json_lines import columns_of, parse_json, text_of
from transformer_mt.text.lines import PACKED_SUFFIXES, read_lines

Pair = tuple[str, str]

_CHUNK = 4096


def read_pairs(source: str, root: str | Path, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    """Aligned raw text of one source, in its order.

    Args:
        source: prefix, `.tsv`, `.jsonl` or `hf:` name, as in a recipe.
        root: folder that relative paths start from.
        src_lang: source language.
        tgt_lang: target language.

    Raises:
        DataError: no such file, several that could be meant, unequal numbers of lines, a line that is not a
            pair, bytes that are not UTF-8.
    """
    if source.startswith(HUB_PREFIX):
        return _record_pairs(read_hub(source, root), src_lang, tgt_lang)
    kind = _kind(source)
    paths = source_files(source, root, src_lang, tgt_lang)
    if kind == "tsv":
        return _tsv_pairs(paths[0])
    if kind == "jsonl":
        return _record_pairs(_json_records(paths[0]), src_lang, tgt_lang)
    return line_pairs(*paths)


def source_files(source: str, root: str | Path, src_lang: str, tgt_lang: str) -> list[Path]:
    """The files of a source that is not on the Hub: one, or one a side.

    Raises:
        DataError: none found (with the paths tried), several that could be meant, or one for both sides.
    """
    base = Path(root) / source
    if _kind(source) != "prefix":
        if not base.is_file():
            raise DataError(f"{base}: no such file; check data.root and the source name `{source}`")
        return [base]
    src, tgt = (_only_one(base, lang) for lang in (src_lang, tgt_lang))
    if src.samefile(tgt):
        raise DataError(
            f"{src}: would be source and target at once; name two files by data.src_lang {src_lang} and "
            f"data.tgt_lang {tgt_lang}, or use a .tsv or .jsonl source"
        )
    return [src, tgt]


def file_digest(path: Path) -> bytes:
    """sha256 of the raw bytes of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def source_fingerprint(
    source: str,
    root: str | Path,
    src_lang: str,
    tgt_lang: str,
    digest_of: Callable[[Path], bytes] = file_digest,
) -> str:
    """sha256 of the digests of the files of a source; of its texts when it comes through `datasets`."""
    digest = hashlib.sha256()
    if source.startswith(HUB_PREFIX):
        for pair in read_pairs(source, root, src_lang, tgt_lang):
            digest.update("\t".join(pair).encode("utf-8") + b"\n")
        return digest.hexdigest()
    for path in source_files(source, root, src_lang, tgt_lang):
        try:
            digest.update(digest_of(path))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    return digest.hexdigest()


def place(source: str, root: str | Path, src_lang: str, tgt_lang: str, number: int) -> str:
    """Where the pair with this 1-based number stands: file:line."""
    if source.startswith(HUB_PREFIX):
        return f"{source}:{number}"
    return f"{source_files(source, root, src_lang, tgt_lang)[0]}:{number}"


def _kind(source: str) -> str:
    for suffix in PACKED_SUFFIXES:
        bare = source.removesuffix(suffix)
        if bare.endswith((".tsv", ".jsonl")):
            return bare.rpartition(".")[2]
    return "prefix"


def _only_one(base: Path, lang: str) -> Path:
    tried = [base.parent / f"{base.name}.{lang}{suffix}" for suffix in PACKED_SUFFIXES]
    found = [path for path in tried if path.is_file()]
    if not found:
        raise DataError(
            f"{tried[0]}: no such file, nor with {', '.join(PACKED_SUFFIXES[1:])}; "
            f"check data.root, the source name `{base.name}` and the language `{lang}`"
        )
    if len(found) > 1:
        raise DataError(f"{' and '.join(map(str, found))} both exist; remove one of them")
    return found[0]


def line_pairs(src_path: str | Path, tgt_path: str | Path) -> Iterator[Pair]:
    """The lines of two files, side by side; one of them may be `-`, standard input.

    Raises:
        DataError: as `read_lines`; unequal numbers of lines, after all pairs.
    """
    src_lines, tgt_lines = lines_of(str(src_path)), lines_of(str(tgt_path))
    src_count = tgt_count = 0
    while True:
        srcs, tgts = list(islice(src_lines, _CHUNK)), list(islice(tgt_lines, _CHUNK))
        yield from zip(srcs, tgts, strict=False)
        src_count += len(srcs)
        tgt_count += len(tgts)
        if not srcs and not tgts:
            break
    if src_count != tgt_count:
        src, tgt = ("stdin" if path == STDIN else path for path in (src_path, tgt_path))
        raise DataError(
            f"{src} has {src_count} lines but {tgt} has {tgt_count}; "
            "both sides must have one line for each pair"
        )


def _tsv_pairs(path: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), start=1):
        yield tsv_pair(line, f"{path}:{number}")


def tsv_pair(line: str, where: str) -> Pair:
    """The two columns of a line.

    Args:
        line: source TAB target.
        where: file:line, for the message.

    Raises:
        DataError: another number of columns.
    """
    columns = line.split("\t")
    if len(columns) != 2:
        raise DataError(
            f"{where}: must be source TAB target, but has {len(columns)} "
            f"column{'s' * (len(columns) != 1)}; mend the line or use two files or JSONL"
        )
    return columns[0], columns[1]


def _json_records(path: Path) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        yield where, parse_json(line, where)


def _record_pairs(records: Iterator[tuple[str, Any]], src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    for where, record in records:
        yield record_pair(record, where, src_lang, tgt_lang)


def record_pair(record: Any, where: str, src_lang: str, tgt_lang: str) -> Pair:
    """The two texts of an object.

    Args:
        record: from `parse_json`.
        where: file:line, for messages.
        src_lang: field of the source where there are no src and tgt.
        tgt_lang: the same of the target.

    Raises:
        DataError: no such fields, or no text in them.
    """
    columns = columns_of(record, where)
    names = ("src", "tgt") if "src" in columns and "tgt" in columns else (src_lang, tgt_lang)
    missing = [column for column in names if column not in columns]
    if missing:
        raise DataError(
            f"{where}: has no column `{missing[0]}`, only {', '.join(map(str, columns)) or 'none'}; "
            f"needed are src and tgt, {src_lang} and {tgt_lang}, or a `translation` that holds them"
        )
    if names[0] == names[1]:
        raise DataError(
            f"{where}: its column `{src_lang}` would be source and target at once; name the sides src and tgt"
        )
    return text_of(columns[names[0]], where, names[0]), text_of(columns[names[1]], where, names[1])
