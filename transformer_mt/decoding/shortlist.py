"""The few target tokens that may come in a translation, chosen for every sentence from its source tokens.

A sentence's tokens depend on the sentence alone, in number too, so that its log-probabilities do not depend
on the batch. The output matrix is cut to the tokens of the whole batch once, and each sentence then picks its
own columns. Knows neither where the tables come from nor how a search goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformer_mt.decoding.lexical_table import LexicalTable

FREQUENT = 200
"""Most frequent target tokens, in every shortlist."""
# Vector kernels end rows of another width differently.
_MULTIPLE = 64


@dataclass(frozen=True)
class BatchVocabulary:
    """The shortlists of B sentences.

    ids: (B, W) token ids, eos first and then rising; union: (U,) the ids of all of them, some perhaps twice;
    columns: (B, W) places of `ids` in `union`.
    """

    ids: Tensor
    union: Tensor
    columns: Tensor

    def keep(self, sentences: Tensor) -> BatchVocabulary:
        """sentences: (B',) the rows that stay."""
        return replace(self, ids=self.ids[sentences], columns=self.columns[sentences])

    def pick(self, logits: Tensor) -> Tensor:
        """(B, K, U) -> (B, K, W), every sentence its own."""
        return logits.gather(2, self.columns.unsqueeze(1).expand(-1, logits.size(1), -1))

    def columns_of(self, token_ids: Tensor) -> Tensor:
        """(B, ...) ids that are in the shortlists -> their places there; -1 stays."""
        rows = token_ids.reshape(len(token_ids), token_ids.numel() // len(token_ids))
        columns = torch.searchsorted(self.ids, rows.contiguous()).view_as(token_ids)
        return columns.masked_fill(token_ids < 0, -1)

    def token_ids(self, columns: Tensor) -> Tensor:
        """(B, N) places in a shortlist -> ids."""
        return self.ids.gather(1, columns)


class Shortlist:
    """Chooses for sentences of one padded length."""

    def __init__(
        self,
        table: LexicalTable,
        size: int,
        *,
        shared: bool,
        eos_id: int,
        banned: Sequence[int],
        device: torch.device,
    ) -> None:
        """Take a table.

        Args:
            table: of the run.
            size: N, likeliest target tokens per source token, at most LINKS.
            shared: source tokens are target tokens too, and each may come as it is.
            eos_id: always in, and below all ids that may come.
            banned: never in.
            device: of the source ids.
        """
        self.size, self.shared = size, shared
        self.eos_id, self.banned = eos_id, list(banned)
        best = torch.from_numpy(table.best[:, :size].copy()).long()
        self._best = best.masked_fill(best < 0, eos_id).to(device)  # (V_src, N)
        self._by_frequency = torch.from_numpy(table.by_frequency.copy()).long().to(device)  # (V,)

    def choose(self, src_ids: Tensor, wanted: Tensor | None = None) -> BatchVocabulary | None:
        """The vocabulary of a batch (B, S), or None where it would be no shorter than all.

        A shortlist of W tokens holds eos, the most frequent ones, what the table has for every source token,
        the source tokens themselves if `shared`, and then the next most frequent ones until it is full.

        Args:
            src_ids: (B, S).
            wanted: (B, P) ids that must be in it, none of them banned; -1 is none.
        """
        batch, length = src_ids.shape
        extra = 0 if wanted is None else wanted.size(1)
        width = -(-(FREQUENT + length * (self.size + 1) + extra) // _MULTIPLE) * _MULTIPLE
        if width > len(self._by_frequency) - len(self.banned):
            return None
        chosen = torch.zeros(batch, len(self._by_frequency), dtype=torch.bool, device=src_ids.device)
        chosen[:, self._by_frequency[:FREQUENT]] = True
        chosen.scatter_(1, self._best[src_ids].flatten(1), True)
        if self.shared:
            chosen.scatter_(1, src_ids, True)
        if wanted is not None:
            chosen.scatter_(1, wanted.masked_fill(wanted < 0, self.eos_id), True)
        chosen[:, self.banned] = False
        chosen[:, self.eos_id] = True
        missing = width - chosen.sum(1, keepdim=True)  # (B, 1)
        spare = ~chosen
        spare[:, self.banned] = False
        spare = spare[:, self._by_frequency]
        chosen[:, self._by_frequency] |= spare & (spare.cumsum(1) <= missing)
        ids = chosen.nonzero()[:, 1].view(batch, width)
        union = chosen.any(0)
        columns = (union.cumsum(0) - 1)[ids]
        found = union.nonzero().flatten()
        repeated = found[-1:].expand(-len(found) % _MULTIPLE)
        return BatchVocabulary(ids, torch.cat([found, repeated]), columns)
