"""Attention as a picture: which source pieces the decoder looked at while producing each target piece."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor


def attention_figure(weights: Tensor, src_pieces: Sequence[str], tgt_pieces: Sequence[str]) -> Figure:
    """A heat map of one sentence.

    Args:
        weights: (T, S) attention weights, rows summing to 1.
        src_pieces: S labels.
        tgt_pieces: T labels.
    """
    figure = Figure(figsize=(2.0 + 0.3 * len(src_pieces), 1.5 + 0.3 * len(tgt_pieces)), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(weights.float().cpu().numpy(), cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(src_pieces)), src_pieces, rotation=90)
    axes.set_yticks(range(len(tgt_pieces)), tgt_pieces)
    axes.set_xlabel("source")
    axes.set_ylabel("target")
    return figure
