"""ParallelDataset: random access into mapped files, and subword sampling."""

from __future__ import annotations

import gc
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from transformer_mt.data.dataset import ParallelDataset, SourceNoise
from transformer_mt.data.prepared_files import EXAMPLES, SplitWriter
from transformer_mt.text.noise import NoiseRates
from transformer_mt.text.tokenizer import EOS_ID, Tokenizer, Tokenizers, train_tokenizer
from transformer_mt.training.stream import MicroBatches

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
    assert len({str(drawn) for drawn in forward}) == 4


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


RATES = NoiseRates(upper=0.3, title=0.2, typos=0.3, no_final_punctuation=0.3)


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_noise_acts_on_the_source_alone(dataset: ParallelDataset, tokenizer: Tokenizer, rate: float) -> None:
    """B062, B147: by (seed, epoch, example), with and without subword sampling; the target stays."""
    noise = SourceNoise(RATES, max_length=500)

    def draw(index: int, epoch: int) -> str:
        src, tgt = dataset.drawn_ids(index, rate=rate, seed=1, epoch=epoch, max_length=500, noise=noise)
        assert src[-1] == tgt[-1] == EOS_ID
        assert tokenizer.decode(tgt) == TEXT[index][1]
        return tokenizer.decode(src)

    first = [draw(index, 1) for index in range(25)]
    assert [draw(index, 1) for index in reversed(range(25))] == first[::-1]
    shouted = sum(text == pair[0].upper() for text, pair in zip(first, TEXT, strict=True))
    unchanged = sum(text == pair[0] for text, pair in zip(first, TEXT, strict=True))
    assert 2 <= shouted <= 15
    assert 2 <= unchanged <= 20
    assert [draw(index, 2) for index in range(25)] != first


def test_batches_are_made_for_the_noised_lengths(dataset: ParallelDataset) -> None:
    """B147's neighbour: a budget for plain sources would be passed, or would let no shouted source in."""
    noise = SourceNoise(RATES, max_length=500)
    for epoch in (1, 2):
        lengths = dataset.noised_lengths(noise, seed=3, epoch=epoch)
        for index in range(25):
            src, _ = dataset.drawn_ids(index, rate=0.0, seed=3, epoch=epoch, max_length=1, noise=noise)
            assert len(src) == lengths[index]
        assert lengths.sum() > dataset.src_lengths.sum()


def test_a_noised_source_over_the_limit_stays_as_written(dataset: ParallelDataset) -> None:
    """Learned positions end somewhere; in ids and lengths alike, and before subword sampling."""
    plain = dataset.ids(2)[0]
    whole = NoiseRates(upper=1.0)
    shouted = dataset.noised_lengths(SourceNoise(whole, max_length=500), seed=1, epoch=1)[2]
    assert shouted > len(plain)
    for limit, expected in ((int(shouted), int(shouted)), (int(shouted) - 1, len(plain))):
        noise = SourceNoise(whole, max_length=limit)
        assert dataset.noised_lengths(noise, seed=1, epoch=1)[2] == expected
        src, _ = dataset.drawn_ids(2, rate=0.0, seed=1, epoch=1, max_length=500, noise=noise)
        assert len(src) == expected


def _own_bytes(process: int) -> int:
    """Memory that a process shares with no other: what it has copied, or made itself."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty", "Swap:")))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_copy_no_examples(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """B143: over two epochs the memory of processes that build batches grows by less than a tenth of the data
    set, as counting references to lists of Python would not."""
    count, length = 20_000, 250
    ids = pa.array(np.full(count * length, 300, dtype=np.int32))
    offsets = pa.array(np.arange(0, count * length + 1, length, dtype=np.int32))
    sides = [pa.ListArray.from_arrays(offsets, ids)] * 2
    with SplitWriter(tmp_path, "train", with_text=False) as writer:
        writer.write(pa.record_batch([*sides, *[pa.array([""] * count)] * 2], schema=EXAMPLES))
    size = (tmp_path / "train.arrow").stat().st_size
    dataset = ParallelDataset(tmp_path, "train", Tokenizers(tokenizer, tokenizer))
    batches = MicroBatches(dataset, max_tokens=16_000, seed=1, sampling=0.0, epoch=1, position=0, workers=2)
    gc.collect()
    gc.freeze()  # what other tests have left behind shall not be looked at, and copied, by the collector
    with closing(batches):
        batches.take(40)
        workers = [child.pid or 0 for child in multiprocessing.active_children()]
        assert len(workers) == 2
        before = [_own_bytes(process) for process in workers]
        for _ in range(2 * len(batches.order())):
            batches.take(1)
        grown = [_own_bytes(process) - old for process, old in zip(workers, before, strict=True)]
    gc.unfreeze()
    assert size > 30_000_000
    assert max(grown) < size / 4  # a copy would be all of it
