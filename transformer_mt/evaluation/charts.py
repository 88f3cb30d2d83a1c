"""Numbers of a comparison -> drawings as SVG, for a page that is light or dark.

Colours are CSS variables of the page (`--s0` to `--s5` for systems, `--line` for grids); text takes colour
and font of its surroundings. System names stand beside a drawing, not in it. Equal numbers give equal text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from xml.etree import ElementTree

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from transformer_mt.evaluation.comparison import AttentionMap, Bucket
from transformer_mt.pictures import attention_figure

MARKS = "●■▲◆▼✚"
"""The signs of systems in legends, shaped like their points in drawings; after the last, the first again."""

Curve = Sequence[tuple[float, float]]

_POINTS = "os^DvP"
_SIZE = (5.4, 3.3)
_MOST_MARKS = 20
# Numbers below a logarithmic drawing that stand side by side.
_MOST_NAMED = 8
# Characters below a drawing from which on names are written aslant.
_CROWDED = 60
# Numbers whose least is above this share of the largest would all lie at the upper end of an axis from 0.
_NEAR_ZERO = 0.8
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"

# matplotlib knows no CSS variables: these colours stand for them until the SVG is written.
_GRID = "#0000b0"
_CSS = {_GRID: "var(--line)", "#000000": "currentColor"} | {f"#0000a{i}": f"var(--s{i})" for i in range(6)}


def system_style(index: int) -> int:
    """Which of the colours and shapes a system has: its index, again from 0 after the last."""
    return index % len(MARKS)


def curves_svg(curves: Sequence[Sequence[Curve]], x_label: str, y_label: str, key: str) -> str:
    """Lines over time or updates.

    Args:
        curves: for each system, the curve of each seed, as points (x, y).
        x_label: what x is.
        y_label: what y is.
        key: a word for this drawing that no other drawing of the page has.
    """
    with _drawing(key):
        figure, axes = _axes(x_label, y_label)
        for index, seeds in enumerate(curves):
            for points in seeds:
                _line(axes, index, [x for x, _ in points], [y for _, y in points])
        axes.set_xlim(left=0)
        return _svg(figure, key)


def buckets_svg(buckets: Sequence[Bucket], key: str) -> str:
    """BLEU of every system on the parts of a set.

    Args:
        buckets: in order, with BLEU for each system.
        key: a word for this drawing that no other drawing of the page has.
    """
    with _drawing(key):
        figure, axes = _axes("", "BLEU")
        for index in range(len(buckets[0].bleu)):
            _line(axes, index, range(len(buckets)), [bucket.bleu[index] for bucket in buckets])
        counts = [f"{bucket.sentences:,} line{'s' * (bucket.sentences != 1)}" for bucket in buckets]
        labels = [
            f"{_printable(bucket.label)}\n{count}" for bucket, count in zip(buckets, counts, strict=True)
        ]
        axes.set_xticks(range(len(buckets)), labels, parse_math=False)
        axes.set_xlim(-0.4, len(buckets) - 0.6)
        axes.set_ylim(bottom=0)
        return _svg(figure, key)


@dataclass(frozen=True)
class Point:
    """One place of a series: where, and the mean and extremes of the runs there."""

    x: float | str
    mean: float
    low: float
    high: float


def series_svg(
    series: Sequence[Sequence[Point]], x_label: str, y_label: str, key: str, *, log: bool = False
) -> str:
    """A line with the range of its runs for each system, over numbers or over names.

    Args:
        series: for each system, its points; those of a system that has none are empty.
        x_label: what x is.
        y_label: what y is; an axis that does not begin at 0 says so itself.
        key: a word for this drawing that no other drawing of the page has.
        log: both axes are logarithmic, that of names apart; only for numbers above 0.
    """
    names = list(dict.fromkeys(one.x for points in series for one in points if isinstance(one.x, str)))
    with _drawing(key):
        figure, axes = _axes(x_label, y_label)
        if log:
            axes.set_yscale("log")
        if log and not names:
            axes.set_xscale("log", base=2)
        for index, points in enumerate(series):
            x = [names.index(one.x) if isinstance(one.x, str) else one.x for one in points]
            _line(axes, index, x, [one.mean for one in points], dashed=index >= len(MARKS))
            for place, one in zip(x, points, strict=True):
                if one.high > one.low:
                    axes.vlines(place, one.low, one.high, color=_colour(index), linewidth=1.0)
        if names:
            _name_places(axes, names)
        elif log:
            _name_powers(axes, [float(one.x) for points in series for one in points])
        if not log:
            _begin_at_zero(axes, [one.low for points in series for one in points], y_label)
        return _svg(figure, key)


def bars_svg(points: Sequence[Point | None], labels: Sequence[str], y_label: str, key: str) -> str:
    """A bar with the range of its runs for each system; None leaves the place empty.

    Args:
        points: for each system, what it came to.
        labels: the names below.
        y_label: what y is.
        key: a word for this drawing that no other drawing of the page has.
    """
    with _drawing(key):
        figure, axes = _axes("", y_label)
        for index, one in enumerate(points):
            if one is not None:
                axes.bar(index, one.mean, width=0.6, color=_colour(index))
                if one.high > one.low:
                    axes.vlines(index, one.low, one.high, color="#000000", linewidth=1.5)
        _name_places(axes, labels)
        axes.axhline(0, color="#000000", linewidth=0.8)
        return _svg(figure, key)


def attention_svg(attention: AttentionMap, key: str) -> str:
    """Where a system looked: rows are the pieces that it wrote, columns those of the source.

    Args:
        attention: pieces and weights.
        key: a word for this drawing that no other drawing of the page has.
    """
    with _drawing(key):
        source, target = map(_printable, attention.source), map(_printable, attention.target)
        return _svg(attention_figure(attention.weights, list(source), list(target)), key)


def _drawing(key: str) -> AbstractContextManager[None]:
    """matplotlib as it comes, whatever its user has configured."""
    settings = {"svg.fonttype": "none", "svg.hashsalt": key, "font.size": 10}
    drawing: AbstractContextManager[None] = style.context(settings, after_reset=True)
    return drawing


def _axes(x_label: str, y_label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(x_label, parse_math=False)
    axes.set_ylabel(y_label, parse_math=False)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(which="both", length=0)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    return figure, axes


def _colour(index: int) -> str:
    return f"#0000a{system_style(index)}"


def _line(axes: Axes, index: int, x: Sequence[float], y: Sequence[float], *, dashed: bool = False) -> None:
    # A curve of hundreds of points needs no mark at each.
    every = max(1, len(x) // _MOST_MARKS)
    axes.plot(
        x,
        y,
        color=_colour(index),
        marker=_POINTS[system_style(index)],
        markevery=every,
        markersize=4.5,
        linewidth=1.8,
        linestyle="--" if dashed else "-",
    )


def _begin_at_zero(axes: Axes, values: Sequence[float], y_label: str) -> None:
    """Where all numbers are positive the axis begins at 0, or says that it does not."""
    if values and min(values) >= 0:
        if min(values) < _NEAR_ZERO * max(values):
            axes.set_ylim(bottom=0)
        else:
            axes.set_ylabel(f"{y_label} (does not begin at 0)", parse_math=False)


def _name_places(axes: Axes, names: Sequence[str]) -> None:
    """Names below the places 0, 1, …, aslant where they are long; one without a number keeps its place."""
    axes.set_xticks(range(len(names)), [_printable(name) for name in names], parse_math=False)
    axes.set_xlim(-0.6, len(names) - 0.4)
    if max(map(len, names)) * len(names) > _CROWDED:
        for label in axes.get_xticklabels():
            label.set(rotation=30, horizontalalignment="right")


def _name_powers(axes: Axes, values: Sequence[float]) -> None:
    """The values themselves below a logarithmic axis, where there are few."""
    if 0 < len(set(values)) <= _MOST_NAMED:
        places = sorted(set(values))
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.xaxis.set_minor_locator(NullLocator())


def _printable(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _svg(figure: Figure, key: str) -> str:
    """A figure as an element for the middle of a page.

    Text stays text, in the fonts of the page: matplotlib's own know neither Chinese nor how to join Arabic.
    Ids are made different from those of all other drawings of the page; those that nothing refers to go.
    """
    written = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(written, format="svg", transparent=True, metadata=nothing)
    root = ElementTree.fromstring(written.getvalue())
    for parent in root.iter():
        for child in parent.findall(f"{{{_SVG}}}style"):
            parent.remove(child)
        if parent.text and not parent.text.strip():
            parent.text = None
    used = set(re.findall(r'(?:href="|url\()#([\w.-]+)', written.getvalue()))
    for element in root.iter():
        _adapt(element, key, used)
    del root.attrib["height"]
    points = float(root.attrib.pop("width").removesuffix("pt"))
    root.set("style", f"--width:{points * 4 / 3:.0f}px")
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(element: ElementTree.Element, key: str, used: set[str]) -> None:
    element.tail = None
    identity = element.attrib.pop("id", None)
    if identity in used:
        element.set("id", f"{key}-{identity}")
    if reference := element.get("clip-path"):
        element.set("clip-path", reference.replace("#", f"#{key}-"))
    link = element.attrib.pop(f"{{{_XLINK}}}href", None)
    if link is not None:
        element.set("href", f"#{key}-{link[1:]}" if link.startswith("#") else "".join(link.split()))
    if declarations := element.get("style"):
        declarations = re.sub(r"font-family: [^;]*;? ?", "", declarations)
        declarations = re.sub("#[0-9a-f]{6}", lambda colour: _CSS.get(colour[0], colour[0]), declarations)
        element.set("style", declarations.strip())
    if path := element.get("d"):
        element.set("d", " ".join(path.split()))
