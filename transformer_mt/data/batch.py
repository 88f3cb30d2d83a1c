"""Examples -> one batch, padded or packed, with decoder input and labels shifted against each other.

Knows nothing of text, of how examples were chosen, or of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from transformer_mt.text.tokenizer import BOS_ID, PAD_ID

IGNORED_LABEL = -100
"""Label of padding: the loss leaves it out."""

Ids = Sequence[int] | npt.NDArray[np.integer]


@dataclass(frozen=True)
class Batch:
    """Tensors of one micro-batch; B examples, S source and T target positions."""

    src_ids: Tensor
    """(B, S) int64, each row ending in eos, then pad."""
    src_mask: Tensor
    """(B, 1, 1, S) bool, True = may attend."""
    decoder_input_ids: Tensor
    """(B, T) int64: bos, then the target without its eos, then pad."""
    labels: Tensor
    """(B, T) int64: the target with its eos, then -100."""
    num_tokens: int
    """Target tokens with eos, padding not counted."""
    num_src_tokens: int
    """Source tokens with eos, padding not counted."""
    indices: npt.NDArray[np.int64]
    """(B,) which examples of the data set these are."""

    @property
    def padded_tokens(self) -> int:
        """Places of both sides, padding counted."""
        return self.src_ids.numel() + self.labels.numel()

    def to(self, device: torch.device | str) -> Batch:
        """The batch on another device; the copy to a card does not wait for it."""
        return _moved(self, torch.device(device))

    def halves(self) -> list[Batch]:
        """Two batches of half the rows each, no longer than their own rows are; one row stays as it is."""
        if len(self.labels) < 2:
            return [self]
        real = self.labels != IGNORED_LABEL  # (B, T)
        src_real = self.src_mask[:, 0, 0]  # (B, S)
        middle = len(self.labels) // 2
        halves = []
        for rows in (slice(None, middle), slice(middle, None)):
            src_longest, tgt_longest = (int(side[rows].sum(1).max()) for side in (src_real, real))
            halves.append(
                Batch(
                    src_ids=self.src_ids[rows, :src_longest],
                    src_mask=self.src_mask[rows, :, :, :src_longest],
                    decoder_input_ids=self.decoder_input_ids[rows, :tgt_longest],
                    labels=self.labels[rows, :tgt_longest],
                    num_tokens=int(real[rows].sum()),
                    num_src_tokens=int(src_real[rows].sum()),
                    indices=self.indices[rows],
                )
            )
        return halves

    def packed(self) -> PackedBatch:
        """The same sentences without padding."""
        real = self.labels != IGNORED_LABEL  # (B, T)
        src_real = self.src_mask[:, 0, 0]  # (B, S)
        src_positions, src_starts, src_longest = _places(src_real)
        tgt_positions, tgt_starts, tgt_longest = _places(real)
        return PackedBatch(
            src_ids=self.src_ids[src_real],
            src_positions=src_positions,
            src_starts=src_starts,
            src_longest=src_longest,
            decoder_input_ids=self.decoder_input_ids[real],
            labels=self.labels[real],
            tgt_positions=tgt_positions,
            tgt_starts=tgt_starts,
            tgt_longest=tgt_longest,
            num_tokens=self.num_tokens,
            num_src_tokens=self.num_src_tokens,
        )


@dataclass(frozen=True)
class PackedBatch:
    """One micro-batch as two rows of tokens, M of the source and N of the target, sentence after sentence."""

    src_ids: Tensor
    """(M,) int64, each sentence ending in eos."""
    src_positions: Tensor
    """(M,) int64, the place of each token in its sentence."""
    src_starts: Tensor
    """(B + 1,) int32, source tokens before each sentence, and M at last."""
    src_longest: int
    """Tokens of the longest source."""
    decoder_input_ids: Tensor
    """(N,) int64, each sentence beginning with bos, its eos left out."""
    labels: Tensor
    """(N,) int64, each sentence ending in eos."""
    tgt_positions: Tensor
    """(N,) int64."""
    tgt_starts: Tensor
    """(B + 1,) int32, and N at last."""
    tgt_longest: int
    """Tokens of the longest target."""
    num_tokens: int
    """N."""
    num_src_tokens: int
    """M."""

    @property
    def padded_tokens(self) -> int:
        """Places of both sides; none of them is padding."""
        return self.num_src_tokens + self.num_tokens

    def to(self, device: torch.device | str) -> PackedBatch:
        """The batch on another device; the copy to a card does not wait for it."""
        return _moved(self, torch.device(device))


def make_batch(
    pairs: Sequence[tuple[Ids, Ids]], indices: Sequence[int] | npt.NDArray[np.integer] = ()
) -> Batch:
    """Pad examples to one length a side.

    Args:
        pairs: B pairs (source ids, target ids), both ending in eos.
        indices: B positions in the data set (default: 0 … B-1).
    """
    assert pairs, "a batch needs at least one example"
    src_ids = _padded([src for src, _ in pairs], PAD_ID)  # (B, S)
    labels = _padded([tgt for _, tgt in pairs], IGNORED_LABEL)  # (B, T)
    decoder_input_ids = torch.full_like(labels, BOS_ID)
    decoder_input_ids[:, 1:] = labels[:, :-1]
    # Where the label is ignored the input is padding; eos itself is never an input.
    decoder_input_ids[labels == IGNORED_LABEL] = PAD_ID
    return Batch(
        src_ids=src_ids,
        src_mask=(src_ids != PAD_ID)[:, None, None, :],  # (B, 1, 1, S)
        decoder_input_ids=decoder_input_ids,
        labels=labels,
        num_tokens=sum(len(tgt) for _, tgt in pairs),
        num_src_tokens=sum(len(src) for src, _ in pairs),
        indices=np.asarray(indices if len(indices) else range(len(pairs)), dtype=np.int64),
    )


AnyBatch = TypeVar("AnyBatch", Batch, PackedBatch)


def _moved(batch: AnyBatch, device: torch.device) -> AnyBatch:
    """The batch with its tensors on `device`; copies to a card come from pinned memory."""

    def move(tensor: Tensor) -> Tensor:
        if device.type == "cuda" and tensor.device.type == "cpu":
            return tensor.pin_memory().to(device, non_blocking=True)
        return tensor.to(device)

    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    moved: dict[str, Any] = {name: move(value) for name, value in values.items() if isinstance(value, Tensor)}
    return replace(batch, **moved)


def _places(real: Tensor) -> tuple[Tensor, Tensor, int]:
    """(B, T) bool, True in the first places of each row -> positions, starts, longest of the packed row."""
    lengths = real.sum(1)  # (B,)
    starts = torch.zeros(len(lengths) + 1, dtype=torch.int32)
    starts[1:] = lengths.cumsum(0)
    positions = torch.arange(real.size(1)).expand(real.shape)[real]  # (N,)
    return positions, starts, int(lengths.max())


def _padded(rows: Sequence[Ids], padding: int) -> Tensor:
    """Rows of ids -> (B, longest) int64."""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    assert lengths.min() > 0, "every side of an example ends in eos"
    table = np.full((len(rows), int(lengths.max())), padding, dtype=np.int64)
    # Row-major filling of the places left of each row's length: one copy for the whole batch.
    table[np.arange(table.shape[1]) < lengths[:, None]] = np.concatenate([np.asarray(row) for row in rows])
    return torch.from_numpy(table)
