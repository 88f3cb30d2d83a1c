"""Attention as a picture: which source pieces the decoder looked at while producing each target piece.

For TensorBoard and for the page of a comparison. Knows no model and no file format.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names
from numpy.typing import ArrayLike

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

# The weight is the opacity of one blue, so that the picture is right on a white and on a dark ground.
_BLUE = LinearSegmentedColormap.from_list("attention", [(0.16, 0.45, 0.85, 0.0), (0.16, 0.45, 0.85, 1.0)])

# Width of a cell in inches.
_CELL = 0.22


def attention_figure(weights: ArrayLike, src_pieces: Sequence[str], tgt_pieces: Sequence[str]) -> Figure:
    """A heat map of one sentence.

    Args:
        weights: (T, S) attention weights, rows summing to 1.
        src_pieces: S labels.
        tgt_pieces: T labels.
    """
    installed = set(get_font_names())
    fonts = [font for font in _FONTS if font in installed]
    width = 0.8 + _CELL * len(src_pieces) + max(map(_length, tgt_pieces))
    height = 0.8 + _CELL * len(tgt_pieces) + max(map(_length, src_pieces))
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(weights, cmap=_BLUE, vmin=0.0, vmax=1.0, aspect="auto", interpolation="none")
    # With parse_math a piece such as "$a$" is read as a formula, and a broken formula is an error.
    axes.set_xticks(range(len(src_pieces)), src_pieces, rotation=90, fontfamily=fonts, parse_math=False)
    axes.set_yticks(range(len(tgt_pieces)), tgt_pieces, fontfamily=fonts, parse_math=False)
    axes.set_xlabel("source")
    axes.set_ylabel("target")
    return figure


def _length(label: str) -> float:
    """About how long a label is in inches: characters from Chinese on are as wide as high."""
    return sum(0.14 if character >= "\u1100" else 0.09 for character in label)
