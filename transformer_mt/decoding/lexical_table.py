"""Which target tokens translate which source token, learned from a run's training data and kept beside it.

The probabilities are those of IBM Model 1 (Brown et al. 1993, "The Mathematics of Statistical Machine
Translation", section 4.2), with an empty source word that takes what belongs to none. Knows no search.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from transformer_mt.checkpoint import find_checkpoint
from transformer_mt.checkpoint_files import read_recipe
from transformer_mt.errors import CheckpointError, DataError
from transformer_mt.text.tokenizer import PAD_ID, Tokenizers

FILE = "shortlist.safetensors"
LINKS = 100
"""Target tokens kept for every source token."""
_ROUNDS = 5
# Source tokens times target tokens, summed over sentence pairs: what is learned from at most (some 2 GB).
_MAX_PRODUCTS = 20_000_000

Ids = npt.NDArray[np.int32]
Pair = tuple[Ids, Ids]


@dataclass(frozen=True)
class LexicalTable:
    """best: (V_src, LINKS) int32, the likeliest target tokens of every source token, -1 where there are no
    more; by_frequency: (V_tgt,) int32, all target tokens, the most frequent first."""

    best: Ids
    by_frequency: Ids


def lexical_table(run: str | Path, checkpoint: str | int, tokenizers: Tokenizers) -> LexicalTable:
    """The table of a run: read from its directory, or learned now and written there.

    Raises:
        CheckpointError: a damaged file, or one made for other tokenizers.
        DataError: there is no file, and the training data are gone or have changed.
    """
    folder = find_checkpoint(run, checkpoint)
    home = folder.parent.parent if folder.parent.name == "checkpoints" else folder
    path = home / FILE
    if path.exists():
        return read_table(path, tokenizers)
    from transformer_mt.data.prepare import prepare  # brings in pyarrow, once per run

    recipe = read_recipe(folder).model_copy(update={"run_dir": str(home)})
    print(f"transformer-mt: learning {path} from the training data, once for this run", file=sys.stderr)
    try:
        data = prepare(recipe)
    except DataError as error:
        raise DataError(f"{path}: has to be learned from the training data first, but: {error}") from None
    if _tokenizers_key(data.tokenizers) != _tokenizers_key(tokenizers):
        raise DataError(
            f"{path}: has to be learned from the training data first, but {recipe.data.root} holds other "
            "text than the run was trained on; leave --shortlist out, or bring the old text back"
        )
    products = data.train.src_lengths.astype(np.int64) * data.train.tgt_lengths
    step = max(-(-int(products.sum()) // _MAX_PRODUCTS), 1)
    pairs = (data.train.ids(index) for index in range(0, len(data.train), step))
    table = learn(pairs, tokenizers.src.vocab_size, tokenizers.tgt.vocab_size)
    try:
        _write(path, table, _tokenizers_key(tokenizers))
    except OSError as error:
        print(
            f"transformer-mt: warning: {path} cannot be written ({error.strerror or error}); it serves this "
            "time and is learned again the next",
            file=sys.stderr,
        )
    return table


def learn(pairs: Iterable[Pair], src_vocab_size: int, tgt_vocab_size: int) -> LexicalTable:
    """Model 1 from pairs of ids, each side ending in eos, which has no part in it.

    Args:
        pairs: at least one.
        src_vocab_size: V_src; the id of pad stands for the empty source word.
        tgt_vocab_size: V_tgt.
    """
    empty = np.array([PAD_ID], dtype=np.int32)
    products, widths, targets = [], [], []
    for src, tgt in pairs:
        words = np.concatenate([empty, src[:-1]]).astype(np.int64)
        products.append((words * tgt_vocab_size + tgt[:-1, None]).ravel())  # T rows of S + 1 keys
        widths.append(np.full(len(tgt) - 1, len(words)))
        targets.append(tgt[:-1])
    width = np.concatenate(widths)  # keys of every target token
    starts = np.cumsum(width) - width
    keys, place = np.unique(np.concatenate(products), return_inverse=True)
    sources, partners = np.divmod(keys, tgt_vocab_size)
    probability = np.ones(len(keys))
    for _ in range(_ROUNDS):
        shares = probability[place]
        shares /= np.repeat(np.add.reduceat(shares, starts), width)
        counts = np.bincount(place, weights=shares, minlength=len(keys))
        totals = np.bincount(sources, weights=counts, minlength=src_vocab_size)
        probability = counts / totals[sources]
    best = np.full((src_vocab_size, LINKS), -1, dtype=np.int32)
    order = np.lexsort((partners, -probability, sources))
    rank = np.arange(len(keys)) - np.searchsorted(sources, sources)  # both are sorted by source
    kept = rank < LINKS
    best[sources[kept], rank[kept]] = partners[order][kept]
    best[PAD_ID] = -1
    frequency = np.bincount(np.concatenate(targets), minlength=tgt_vocab_size)
    return LexicalTable(best, np.argsort(-frequency, kind="stable").astype(np.int32))


def _tokenizers_key(tokenizers: Tokenizers) -> str:
    return json.dumps([tokenizers.src.fingerprint, tokenizers.tgt.fingerprint])


def _write(path: Path, table: LexicalTable, learned_for: str) -> None:
    """As a whole, under another name first: several commands may do so at once."""
    tensors = {"best": table.best, "by_frequency": table.by_frequency}
    about = {"tokenizers": learned_for, "sha256": _digest(tensors, learned_for)}
    temporary = path.with_name(f".writing-{os.getpid()}-{path.name}")
    try:
        temporary.write_bytes(safetensors.numpy.save(tensors, metadata=about))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_table(path: Path, tokenizers: Tokenizers) -> LexicalTable:
    """The table of a file.

    Raises:
        CheckpointError: it is damaged, or was learned for other tokenizers.
    """
    try:
        with safetensors.safe_open(path, framework="numpy") as stream:
            about = stream.metadata() or {}
            tensors = {name: stream.get_tensor(name) for name in ("best", "by_frequency")}
        learned_for = about.get("tokenizers", "")
        whole = about.get("sha256") == _digest(tensors, learned_for)
    except (OSError, safetensors.SafetensorError):
        whole = False
    if not whole:
        raise CheckpointError(f"{path}: is damaged or something else; delete it, and it is learned again")
    if learned_for != _tokenizers_key(tokenizers):
        raise CheckpointError(
            f"{path}: was learned for another tokenizer; delete it, and it is learned again"
        )
    return LexicalTable(tensors["best"], tensors["by_frequency"])


def _digest(tensors: dict[str, Ids], learned_for: str) -> str:
    """sha256 of all that a file holds: names, shapes, dtypes and contents, and for whom it was made."""
    digest = hashlib.sha256(learned_for.encode("utf-8"))
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tensor.shape} ".encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()
