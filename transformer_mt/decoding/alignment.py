"""Which words of a source and of its translation belong together, by the attention that a model pays.

The translation is given to the model once more; the position that predicts a token looks at what that token
translates, the one that reads it does not. What a source word gets is divided by what it gets from the whole
translation: otherwise words that all positions look at would draw the links. Words are the units of
`text/words.py`.

Knows nothing of files, formats or searches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from transformer_mt.decoding.teacher_forcing import ForcedBatch, Pair, teacher_forced
from transformer_mt.errors import ConfigError
from transformer_mt.model.protocol import TrainableModel
from transformer_mt.text.tokenizer import Tokenizers
from transformer_mt.text.words import unit_spans

Layer = int | Literal["mean"]
"""A decoder layer, from 1, or the mean of all."""
Links = list[tuple[int, int]]
"""Source word and target word, from 0, in order."""
Spans = Sequence[tuple[int, int]]

# A source word that is no target word's best is linked too where one of them has this share of its attention.
_LARGE_SHARE = 0.5
_TINY = torch.finfo(torch.double).tiny


def check_layer(models: Sequence[TrainableModel], layer: Layer) -> None:
    """Refuse a layer that one of the models has not.

    Raises:
        ConfigError: what there is.
    """
    most = min(model.num_decoder_layers for model in models)
    if layer != "mean" and not 1 <= layer <= most:
        raise ConfigError(f"--alignment {layer}: must be `mean` or a decoder layer from 1 to {most}")


def align(
    models: Sequence[TrainableModel],
    tokenizers: Tokenizers,
    pairs: Sequence[Pair],
    texts: Sequence[tuple[str, str]],
    *,
    layer: Layer = "mean",
    device: torch.device,
    batch_size: int,
) -> list[Links | None]:
    """The links of every pair; in fp32 they depend on nothing but the pair.

    None stands for those of a pair that does not fit into the memory.

    Args:
        models: on `device`. Several are one ensemble, whose attention is averaged.
        tokenizers: of all models.
        pairs: ids of source and translation.
        texts: the texts of the same, whose words are linked: character by character as `decode` gives them,
            but for U+2581 and line ends.
        layer: whose attention is read.
        device: where to compute.
        batch_size: most pairs in a batch.

    Raises:
        ConfigError: no such layer.
        DataError: a pair that is too long for learned positions.
    """
    check_layer(models, layer)
    weights = attention_weights(models, pairs, layer=layer, device=device, batch_size=batch_size)
    return [
        None
        if one is None
        else links(
            word_shares(
                one,
                tokenizers.src.spans(pair.src_ids),
                tokenizers.tgt.spans(pair.tgt_ids),
                unit_spans(source),
                unit_spans(target),
            )
        )
        for one, pair, (source, target) in zip(weights, pairs, texts, strict=True)
    ]


def attention_weights(
    models: Sequence[TrainableModel],
    pairs: Sequence[Pair],
    *,
    layer: Layer,
    device: torch.device,
    batch_size: int,
) -> list[Tensor | None]:
    """Of every pair the (T, S) attention, on the CPU, that the prediction of each target token pays.

    Both sides have eos at their ends; arguments as in `align`.
    """
    chosen: Layer = "mean" if layer == "mean" else layer - 1

    def weights(batch: ForcedBatch) -> list[Tensor]:
        inputs = batch.src_ids, batch.src_mask, batch.decoder_input_ids
        mean = torch.stack([model.cross_attention(*inputs, chosen).float() for model in models]).mean(0).cpu()
        return [
            mean[row, : len(pair.tgt_ids) + 1, : len(pair.src_ids)].clone()
            for row, pair in enumerate(batch.pairs)
        ]

    return teacher_forced(models, pairs, weights, device=device, batch_size=batch_size)


def word_shares(
    weights: Tensor, src_spans: Spans, tgt_spans: Spans, src_words: Spans, tgt_words: Spans
) -> Tensor:
    """How much of the attention that each source word gets comes from each target word.

    A word of several tokens gets the sum of theirs and pays their mean; a token of several words is divided
    among them. What goes to eos or to a lone space, or comes from them, counts for nothing.

    Args:
        weights: (T, S) at least, eos last.
        src_spans: where the source tokens stand in their text.
        tgt_spans: the same of the target tokens.
        src_words: where the U source words stand.
        tgt_words: the same of the V target words.

    Returns:
        (V, U) in double precision; each column sums to 1, or to 0 for a word that is not looked at at all.
    """
    src_parts, tgt_parts = _parts(src_spans, src_words), _parts(tgt_spans, tgt_words)  # (S, U), (T, V)
    weights = weights[: len(tgt_spans), : len(src_spans)].double()
    paid = tgt_parts.t() @ weights @ src_parts  # (V, U)
    paid /= tgt_parts.sum(0).clamp(min=_TINY)[:, None]
    return paid / paid.sum(0).clamp(min=_TINY)


def links(shares: Tensor) -> Links:
    """Every target word with its best source word, and every source word with a target word of a large share.

    Args:
        shares: (V, U) of `word_shares`.
    """
    if not shares.numel():
        return []
    best_sources, best_targets = shares.max(1), shares.max(0)
    found = {
        (source, target)
        for target, (share, source) in enumerate(zip(*map(Tensor.tolist, best_sources), strict=True))
        if share > 0
    }
    found |= {
        (source, target)
        for source, (share, target) in enumerate(zip(*map(Tensor.tolist, best_targets), strict=True))
        if share >= _LARGE_SHARE
    }
    return sorted(found)


def _parts(spans: Spans, words: Spans) -> Tensor:
    """(N, U): the part of each of N tokens that belongs to each of U words; none of one outside of them."""
    parts = torch.zeros(len(spans), len(words), dtype=torch.double)
    starts, ends = [start for start, _ in words], [end for _, end in words]
    for token, (start, end) in enumerate(spans):
        first, last = bisect_right(ends, start), bisect_left(starts, end)
        if first < last and start < end:
            parts[token, first:last] = 1 / (last - first)
    return parts
