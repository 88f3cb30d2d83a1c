"""What studies watch while a model trains: how large its attention scores are, and how its attention spreads.

A probe is a pass in evaluation mode, without gradients, over the first micro-batch of an update that was just
made. It draws no random number and changes no weight, so a probed run has the bits of any other; its time
counts in no speed. Of a Transformer every attention is watched; of the LSTM the one of each decoder layer,
whose scores have no scale to ask about: it has no `score_variance`. Knows neither the loop nor any file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from transformer_mt.data.batch import IGNORED_LABEL, Batch
from transformer_mt.model.attention import MultiHeadAttention, attention_weights
from transformer_mt.model.lstm import Attention, AttentionalLstm
from transformer_mt.model.transformer import Transformer
from transformer_mt.training.precision import autocast

SATURATED = 0.99
"""A row of weights whose largest is above this is saturated: hardly any gradient passes its softmax."""


class AttentionSums:
    """Sums over all that one attention sees in one pass, heads and sentences alike.

    A row is one query of one head. Rows that see one key alone have no choice, and are left out.
    """

    def __init__(self, real: Tensor) -> None:
        """Args: real, (B, T) bool, queries that are no padding; they come in order, in one call or more."""
        self._real = real
        self._passed = 0
        self._scores: list[Tensor] = []
        self._rows: list[Tensor] = []

    def see(self, attention: MultiHeadAttention, query: Tensor, key: Tensor, mask: Tensor | None) -> None:
        """Queries (B, H, T, E) and keys (B, H_kv, S, E) as they are about to be multiplied."""
        query, key = query.float(), key.float()
        each = key.repeat_interleave(query.size(1) // key.size(1), dim=1)  # (B, H, S, E)
        scores = query @ each.transpose(-2, -1)  # (B, H, T, S), not divided
        visible = self._visible(scores, mask)
        self._scores.append(_moments(scores[visible.expand_as(scores)]))
        self._add(attention_weights(query, key, mask, attention.scale), visible)

    def see_lstm(self, attention: Attention, inputs: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
        """What the attention of an LSTM is called with: query, keys, memory, mask."""
        query, keys, _, mask = inputs
        weights = attention.weights(query, keys, mask)[:, None]  # (B, 1, T, S)
        self._add(weights, self._visible(weights, mask))

    def results(self) -> dict[str, float | None]:
        """Metric -> its value; None where it is not finite, or where there was no row.

        score_variance: of the products of queries and visible keys, before any division; saturated: share of
        rows with one weight above 0.99; entropy: of the weights, nats, mean over rows; entropy_share: the
        same, that of even weights being 1.
        """
        found: dict[str, float | None] = {}
        if self._scores:
            count, total, squares = torch.stack(self._scores).sum(0).tolist()
            found["score_variance"] = _finite(squares / count - (total / count) ** 2) if count else None
        count, *sums = torch.stack(self._rows).sum(0).tolist()
        for name, total in zip(("saturated", "entropy", "entropy_share"), sums, strict=True):
            found[name] = _finite(total / count) if count else None
        return found

    def _visible(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """(B, 1, T, S) bool: which real query of this call may see which key."""
        first, self._passed = self._passed, self._passed + scores.size(2)
        real = self._real[:, None, first : self._passed, None]  # (B, 1, T, 1)
        return (real if mask is None else real & mask).expand(-1, -1, -1, scores.size(3))

    def _add(self, weights: Tensor, visible: Tensor) -> None:
        keys = visible.sum(-1).expand(weights.shape[:-1])  # (B, H, T)
        rows = keys >= 2
        chosen = weights[rows].double()  # (N, S)
        largest, entropy = chosen.amax(-1), torch.special.entr(chosen).sum(-1)  # (N,)
        saturated = torch.where(largest.isnan(), largest, (largest > SATURATED).double())
        share = entropy / keys[rows].double().log()
        self._rows.append(torch.stack((rows.sum().double(), saturated.sum(), entropy.sum(), share.sum())))


def probe(model: nn.Module, batch: Batch, precision: str, device: torch.device) -> dict[str, float | None]:
    """`METRIC/MODULE` -> value, for every attention of a model; see `AttentionSums.results`.

    Args:
        model: on the device; it comes back in the mode it was in.
        batch: what it is shown.
        precision: arithmetic of training; the statistics themselves are taken in fp32.
        device: where.
    """
    assert isinstance(model, Transformer | AttentionalLstm)
    batch = batch.to(device)
    was_training = model.training
    with torch.no_grad(), autocast(precision, device), _watched(model, batch) as watched:
        model.eval()
        model.hidden(batch.src_ids, batch.src_mask, batch.decoder_input_ids)
        model.train(was_training)
        results = {name: sums.results() for name, sums in watched.items()}
    metrics = dict.fromkeys(metric for found in results.values() for metric in found)
    return {f"{metric}/{name}": results[name][metric] for metric in metrics for name in results}


@contextmanager
def _watched(model: Transformer | AttentionalLstm, batch: Batch) -> Iterator[dict[str, AttentionSums]]:
    """Name of each attention -> its sums over what passes through it inside this context."""
    src_real, tgt_real = batch.src_mask[:, 0, 0], batch.labels != IGNORED_LABEL  # (B, S), (B, T)
    watched: dict[str, AttentionSums] = {}
    attentions, hooks = [], []
    for name, module in model.named_modules():
        if not isinstance(module, MultiHeadAttention | Attention):
            continue
        sums = watched[name] = AttentionSums(src_real if name.startswith("encoder.") else tgt_real)
        if isinstance(module, MultiHeadAttention):
            module.watch = partial(sums.see, module)
            attentions.append(module)
        else:
            hooks.append(module.register_forward_pre_hook(sums.see_lstm))
    try:
        yield watched
    finally:
        for attention in attentions:
            attention.watch = None
        for hook in hooks:
            hook.remove()


def _moments(values: Tensor) -> Tensor:
    """(3,): how many, their sum, the sum of their squares."""
    values = values.double()
    return torch.stack((values.new_tensor(values.numel()), values.sum(), values.square().sum()))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
