"""Attention as a picture: which source pieces the decoder looked at while producing each target piece."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names
from torch import Tensor

# In order of preference, glyph by glyph. matplotlib brings the first and the last, which knows all characters
# as the box of its block, so that no text draws warnings.
_FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Arial Unicode MS",
    "Last Resort High-Efficiency",
)


def attention_figure(weights: Tensor, src_pieces: Sequence[str], tgt_pieces: Sequence[str]) -> Figure:
    """A heat map of one sentence.

    Args:
        weights: (T, S) attention weights, rows summing to 1.
        src_pieces: S labels.
        tgt_pieces: T labels.
    """
    installed = set(get_font_names())
    fonts = [font for font in _FONTS if font in installed]
    figure = Figure(figsize=(2.0 + 0.3 * len(src_pieces), 1.5 + 0.3 * len(tgt_pieces)), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(weights.float().cpu().numpy(), cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(src_pieces)), src_pieces, rotation=90, fontfamily=fonts)
    axes.set_yticks(range(len(tgt_pieces)), tgt_pieces, fontfamily=fonts)
    axes.set_xlabel("source")
    axes.set_ylabel("target")
    return figure
