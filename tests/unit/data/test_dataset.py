"""ParallelDataset: random access into mapped files, and subword sampling."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from transformer_mt.data.dataset import ParallelDataset
from transformer_mt.data.prepared_files import EXAMPLES, SplitWriter
from transformer_mt.text.tokenizer import EOS_ID, Tokenizer, Tokenizers, train_tokenizer

TEXT = [(f"hallo welt nummer {n} " * (n % 3 + 1), f"hello world number {n}") for n in range(25)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """One vocabulary for both sides."""
    return train_tokenizer([text for pair in TEXT for text in pair], type="bpe", vocab_size=310)


@pytest.fixture(scope="module")
def dataset(tokenizer: Tokenizer) -> Iterator[ParallelDataset]:
    """25 examples in record batches of 4."""
    with tempfile.TemporaryDirectory() as folder:
        with SplitWriter(Path(folder), "train", with_text=True) as writer:
            for start in range(0, len(TEXT), 4):
                chunk = TEXT[start : start + 4]
                ids = [[[*tokenizer.encode(pair[side]), EOS_ID] for pair in chunk] for side in (0, 1)]
                writer.write(pa.record_batch([*ids, *zip(*chunk, strict=True)], schema=EXAMPLES))
            writer.write(pa.record_batch([[], [], [], []], schema=EXAMPLES))
        yield ParallelDataset(folder, "train", Tokenizers(tokenizer, tokenizer))


def test_every_example_in_its_place(dataset: ParallelDataset, tokenizer: Tokenizer) -> None:
    """The ends of record batches are where an index can be off by one."""
    assert len(dataset) == 25
    for index, pair in enumerate(TEXT):
        assert dataset.text(index) == pair
        for ids, text, lengths in zip(
            dataset.ids(index), pair, (dataset.src_lengths, dataset.tgt_lengths), strict=True
        ):
            assert ids.tolist() == [*tokenizer.encode(text), EOS_ID]
            assert len(ids) == lengths[index]


def test_ids_are_views_of_the_mapped_file(dataset: ParallelDataset) -> None:
    """B143: memory does not grow with use; nobody can write into the file."""
    ids, _ = dataset.ids(3)
    assert not ids.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 1


@pytest.mark.parametrize("index", [-1, 25])
def test_no_example_beyond_the_ends(dataset: ParallelDataset, index: int) -> None:
    """A wrong index must not give a neighbour."""
    with pytest.raises(IndexError, match=str(index)):
        dataset.ids(index)


def test_sampling_is_a_pure_function(dataset: ParallelDataset, tokenizer: Tokenizer) -> None:
    """B147: the same (seed, epoch, example) gives the same draw in any order; others differ."""

    def draw(index: int, seed: int, epoch: int) -> tuple[list[int], list[int]]:
        src, tgt = dataset.drawn_ids(index, rate=0.4, seed=seed, epoch=epoch, max_length=500, noise=None)
        assert tokenizer.decode(src) == TEXT[index][0]
        assert tokenizer.decode(tgt) == TEXT[index][1]
        assert src[-1] == tgt[-1] == EOS_ID
        return src.tolist(), tgt.tolist()

    forward = [draw(2, seed, epoch) for seed in (1, 2) for epoch in (1, 2)]
    backward = [draw(2, seed, epoch) for seed in (2, 1) for epoch in (2, 1)]
    assert forward == backward[::-1]
    assert len({str(drawn) for drawn in forward}) > 1


def test_a_draw_over_the_budget_is_the_plain_segmentation(dataset: ParallelDataset) -> None:
    """The batch was made for the plain lengths; a longer draw must not pass its budget."""
    plain = dataset.ids(2)
    limit = len(plain[0])
    src, tgt = dataset.drawn_ids(2, rate=0.9, seed=1, epoch=1, max_length=limit, noise=None)
    assert np.array_equal(src, plain[0])
    assert len(tgt) <= limit
    long_src, _ = dataset.drawn_ids(2, rate=0.9, seed=1, epoch=1, max_length=500, noise=None)
    assert len(long_src) > limit
    exact, _ = dataset.drawn_ids(2, rate=0.9, seed=1, epoch=1, max_length=len(long_src), noise=None)
    assert np.array_equal(exact, long_src)


def test_no_sampling_is_the_plain_segmentation(dataset: ParallelDataset) -> None:
    """Rate 0 draws nothing."""
    src, _ = dataset.drawn_ids(2, rate=0.0, seed=1, epoch=1, max_length=500, noise=None)
    assert np.array_equal(src, dataset.ids(2)[0])
