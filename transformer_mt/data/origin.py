"""Where examples of the prepared data stand in the text that they were made of.

Prepared data do not store it: it is asked for when training ends in an error, and one pass over the text
finds it. Knows nothing of training.
"""

from __future__ import annotations

from collections.abc import Iterable

from transformer_mt.config import DataConfig
from transformer_mt.data.dataset import ParallelDataset
from transformer_mt.errors import DataError
from transformer_mt.text.corpus import place, read_pairs
from transformer_mt.text.tokenizer import Tokenizers


def origins(
    data: DataConfig, train: ParallelDataset, tokenizers: Tokenizers, indices: Iterable[int]
) -> list[str]:
    """file:line of each of these examples; its number in the prepared data where the text is gone.

    Of equal pairs the first one stands for all: it is the one that was kept.
    """
    wanted: dict[tuple[str, str], int] = {}
    for index in map(int, indices):
        src_ids, tgt_ids = train.ids(index)
        wanted[tokenizers.src.decode(src_ids), tokenizers.tgt.decode(tgt_ids)] = index
    found = {index: f"example {index + 1} of the prepared data" for index in wanted.values()}
    root = data.root or "."
    try:
        for source in data.train:
            for number, pair in enumerate(read_pairs(source, root, data.src_lang, data.tgt_lang), start=1):
                # Tokens spell that character as a space.
                index = wanted.pop((pair[0].replace("\u2581", " "), pair[1].replace("\u2581", " ")), -1)
                if index >= 0:
                    found[index] = place(source, root, data.src_lang, data.tgt_lang, number)
    except DataError:
        pass  # the text has been moved or changed since: numbers are all there is
    return list(found.values())


def valid_origin(data: DataConfig, index: int) -> str:
    """file:line of a validation pair, none of which is dropped; its number where the text is gone."""
    root = data.root or "."
    first = 0
    try:
        for source in data.valid:
            count = sum(1 for _ in read_pairs(source, root, data.src_lang, data.tgt_lang))
            if index < first + count:
                return place(source, root, data.src_lang, data.tgt_lang, index - first + 1)
            first += count
    except DataError:
        pass
    return f"validation pair {index + 1}"
