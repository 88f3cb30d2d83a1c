"""Drawings: the numbers stand where they belong, in the colours of the page, and labels are text."""

from __future__ import annotations

import re
import warnings
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from transformer_mt.evaluation.charts import (
    Point,
    attention_svg,
    bars_svg,
    buckets_svg,
    curves_svg,
    series_svg,
    system_style,
)
from transformer_mt.evaluation.comparison import AttentionMap, Bucket

CURVES = [[[(0.0, 1.0), (2.0, 3.0)]], [[(1.0, 1.0)], [(2.0, 2.0)]]]


def texts(svg: str) -> list[str]:
    return [
        element.text or "" for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")
    ]


def test_a_curve_for_each_seed_in_the_colour_of_its_system() -> None:
    """Pins two systems, the second with two seeds, and the names of both axes."""
    svg = curves_svg(CURVES, "updates", "BLEU", "one")
    lines = re.findall(r'clip-path="[^"]*" style="fill: none; stroke: var\((--s\d)\)', svg)
    assert lines == ["--s0", "--s1", "--s1"]
    assert {"updates", "BLEU"} <= set(texts(svg))


def test_ids_bear_the_key() -> None:
    """Pins that two drawings of equal content share no id."""
    ids = [set(re.findall(r' id="([^"]*)"', curves_svg(CURVES, "x", "y", key))) for key in ("one", "two")]
    assert ids[0]
    assert ids[1]
    assert not ids[0] & ids[1]


def test_the_users_settings_of_matplotlib_change_nothing() -> None:
    """Pins that the page looks the same for everyone, and that drawing leaves no settings behind."""
    plain = curves_svg(CURVES, "x", "y", "one")
    with mpl.rc_context({"font.size": 30, "axes.grid": False, "svg.fonttype": "path"}):
        assert curves_svg(CURVES, "x", "y", "one") == plain
        assert mpl.rcParams["font.size"] == 30


def test_buckets_tell_how_many_lines_they_hold() -> None:
    """Pins label and count under each point."""
    svg = buckets_svg([Bucket("1-10", 1200, (30.0, 35.0)), Bucket("$11$", 1, (20.0, 25.0))], "one")
    assert {"1-10", "1,200 lines", "$11$", "1 line"} <= set(texts(svg))


def test_an_axis_says_where_it_begins() -> None:
    """Pins 0 where numbers spread, a note where they all lie far above it."""
    near, far = ([[Point(x, y, y, y) for x, y in ((1, low), (2, 10.0))]] for low in (5.0, 9.5))
    assert {"y", "0"} <= set(texts(series_svg(near, "x", "y", "one")))
    assert {"y (does not begin at 0)"} <= set(texts(series_svg(far, "x", "y", "one")))


def test_a_logarithmic_axis_of_less_than_a_decade_has_numbers() -> None:
    """Pins lengths below, and several numbers at the side, where no power of ten but one may lie."""
    points = [Point(x, y, y, y) for x, y in ((16, 0.06), (48, 0.13))]
    svg = series_svg([points], "length", "seconds", "one", log=True)
    written = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    labels = {"".join(element.itertext()) for element in written}
    assert {"16", "48", "6×10−2", "9×10−2"} <= {label.replace("\u2212", "−") for label in labels}


def test_long_names_stand_aslant_and_empty_places_stay() -> None:
    """Pins names of layers, which would cover each other, below lines and bars; a last bar without number."""
    names = [f"encoder.layers.{number}.self_attention" for number in range(4)]
    points = [Point(name, 1.0, 1.0, 1.0) for name in names]
    bars = [Point("", 1.0, 1.0, 1.0)] * 3 + [None]
    for svg in (series_svg([points], "layer", "y", "one"), bars_svg(bars, names, "y", "one")):
        assert set(names) <= set(texts(svg))
        assert svg.count("rotate(-30)") == 4 or svg.count("rotate(330)") == 4
    edge, last = (
        float(re.findall(pattern, bars_svg(bars, ["a", "b", "c", "d"], "y", "one"))[-1])
        for pattern in (r'viewBox="0 0 ([\d.]+)', r'<text[^>]*x="([\d.]+)"[^>]*>d<')
    )
    assert last < edge - 20


def test_a_crowded_logarithmic_axis_names_powers_alone() -> None:
    points = [Point(float(step), 1.0, 1.0, 1.0) for step in range(2, 31, 2)]
    assert "28" not in texts(series_svg([points], "step", "y", "one", log=True))
    assert {"8", "16"} <= set(texts(series_svg([points[3:8:4]], "step", "y", "one", log=True)))


def test_attention_labels_are_any_text() -> None:
    """Pins that pieces stay text whatever is in them: markup, formulas, control characters, any script."""
    source = ("<b>", "$a$", "我", "\x00", "fill: #000000")
    weights = (tuple(0.2 for _ in source), tuple(0.2 for _ in source))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = attention_svg(AttentionMap("x", source, ("مرحبا", "</s>"), weights), "one")
    assert {"<b>", "$a$", "我", "\ufffd", "fill: #000000", "مرحبا", "</s>"} <= set(texts(svg))
    assert "data:image/png;base64," in svg


@pytest.mark.parametrize(("index", "expected"), [(0, 0), (5, 5), (6, 0)])
def test_styles_come_again(index: int, expected: int) -> None:
    """Pins that a seventh system is drawn."""
    assert system_style(index) == expected
