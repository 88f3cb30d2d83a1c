"""ParallelDataset: the examples of one split, in memory-mapped Arrow.

Nothing is held in memory but the places of the record batches: ids are views of the mapped file. Knows
nothing of batches or of order.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transformer_mt.text.noise import Draws, NoiseRates, noise_draws
from transformer_mt.text.tokenizer import EOS_ID, Tokenizers

Ids = npt.NDArray[np.int32]

_NOISE_CHUNK = 8192


class SourceNoise(NamedTuple):
    """How the sources of a training set are noised."""

    rates: NoiseRates
    max_length: int
    """A source that would have more tokens, eos included, stays as written."""


class ParallelDataset:
    """Source and target ids of N examples, all ending in eos."""

    def __init__(self, folder: str | Path, name: str, tokenizers: Tokenizers) -> None:
        folder = Path(folder)
        self.src_lengths: Ids = np.load(folder / f"{name}.src_lengths.npy", mmap_mode="r")
        """(N,) source tokens with eos."""
        self.tgt_lengths: Ids = np.load(folder / f"{name}.tgt_lengths.npy", mmap_mode="r")
        """(N,) target tokens with eos."""
        self._tokenizers = tokenizers
        reader = pa.ipc.open_file(pa.memory_map(str(folder / f"{name}.arrow")))
        self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])
        self._ids = [
            tuple(
                (batch.column(side).offsets.to_numpy(), batch.column(side).values.to_numpy())
                for side in ("src", "tgt")
            )
            for batch in self._batches
        ]
        self.has_text = "src_text" in reader.schema.names
        """Whether the raw text is there too."""

    def __len__(self) -> int:
        return len(self.src_lengths)

    def ids(self, index: int) -> tuple[Ids, Ids]:
        """Source and target ids of one example, both ending in eos; views that must not be written to."""
        number, row = self._find(index)
        (src_offsets, src), (tgt_offsets, tgt) = self._ids[number]
        return (
            src[src_offsets[row] : src_offsets[row + 1]],
            tgt[tgt_offsets[row] : tgt_offsets[row + 1]],
        )

    def text(self, index: int) -> tuple[str, str]:
        """Raw source and target of one example; needs `has_text`."""
        number, row = self._find(index)
        batch = self._batches[number]
        return batch.column("src_text")[row].as_py(), batch.column("tgt_text")[row].as_py()

    def noised_lengths(self, noise: SourceNoise, *, seed: int, epoch: int) -> Ids:
        """(N,) source tokens with eos in an epoch, before subword sampling; needs `has_text`.

        Batches are made by these: a source in upper case has up to four times the tokens it has as written.
        """
        lengths: Ids = np.array(self.src_lengths)
        for start in range(0, len(self), _NOISE_CHUNK):
            draws = noise_draws(seed, epoch, start, min(_NOISE_CHUNK, len(self) - start))
            rows = np.flatnonzero(noise.rates.touched(draws))
            texts = [noise.rates.apply(self.text(start + int(row))[0], draws[row]) for row in rows]
            for row, ids in zip(rows, self._tokenizers.src.encode_batch(texts), strict=True):
                if len(ids) < noise.max_length:
                    lengths[start + row] = len(ids) + 1
        return lengths

    def drawn_ids(
        self, index: int, *, rate: float, seed: int, epoch: int, max_length: int, noise: SourceNoise | None
    ) -> tuple[Ids, Ids]:
        """Ids of one example as an epoch draws them: a pure function of the arguments.

        The source is noised first; both sides are then segmented at random. Needs `has_text` for either.

        Args:
            rate: see `Tokenizer.sample`; 0 gives the plain segmentation.
            seed: seed of the run.
            epoch: epoch the draw is for.
            max_length: a side whose random segmentation would be longer, eos included, keeps the plain one,
                so that the batch stays within the budget it was made for.
            noise: None leaves the source as written.
        """
        plain, texts = self.ids(index), None
        if noise is not None:
            draws = noise_draws(seed, epoch, index, 1)
            if noise.rates.touched(draws)[0]:
                texts, plain = self._noised(index, draws[0], noise)
        if rate == 0.0:
            return plain
        seeds = np.random.SeedSequence((seed, epoch, index)).generate_state(2)
        sides = []
        for tokenizer, text, seed_of_side, ids in zip(
            self._tokenizers, texts or self.text(index), seeds, plain, strict=True
        ):
            drawn = tokenizer.sample(text, rate, int(seed_of_side))
            short = len(drawn) < max_length
            sides.append(np.array([*drawn, EOS_ID], dtype=np.int32) if short else ids)
        return sides[0], sides[1]

    def _noised(self, index: int, draw: Draws, noise: SourceNoise) -> tuple[tuple[str, str], tuple[Ids, Ids]]:
        """Texts and ids of one example with its source noised, if that is not too long."""
        (src_text, tgt_text), (src, tgt) = self.text(index), self.ids(index)
        noised = noise.rates.apply(src_text, draw)
        ids = self._tokenizers.src.encode(noised)
        if len(ids) < noise.max_length:
            src_text, src = noised, np.array([*ids, EOS_ID], dtype=np.int32)
        return (src_text, tgt_text), (src, tgt)

    def _find(self, index: int) -> tuple[int, int]:
        """(record batch, row in it)."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        number = int(np.searchsorted(self._starts, index, side="right")) - 1
        return number, index - int(self._starts[number])
