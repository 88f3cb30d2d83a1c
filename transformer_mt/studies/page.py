"""A conclusion -> index.html of a study, and the page of all studies that lie in one folder.

Like the report of a comparison, whose style it shares: one file, no network, no script, every text escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from transformer_mt.errors import CheckpointError
from transformer_mt.evaluation import charts
from transformer_mt.json_file import write_text
from transformer_mt.studies.conclusion import Conclusion, found_text, mean_text, number_text, read_conclusion
from transformer_mt.studies.study_file import PictureSection
from transformer_mt.studies.values import At
from transformer_mt.studies.verdicts import Summary, Value, at_text, by_seed, summary

OVERVIEW = "index.html"
# A metric that was taken at more places than these is drawn, not written down.
_MOST_ROWS = 40
_SPELLED = {"bleu": "BLEU", "gib": "GiB", "mib": "MiB", "nll": "NLL"}


@dataclass(frozen=True)
class Picture:
    """One drawing with its words."""

    title: str
    note: str
    """What is drawn, how many runs, what the mean was taken over."""
    facts: str
    """The same numbers for those who hear the page."""
    drawing: Markup


@dataclass(frozen=True)
class Row:
    """One place of a table: where, and what each variant came to there."""

    where: str
    cells: tuple[str, ...]


def write_page(conclusion: Conclusion, path: Path) -> None:
    """Write the page of a study."""
    pictures = [_picture(conclusion, one, number) for number, one in enumerate(conclusion.pictures)]
    tables = list(_tables(conclusion))
    text = (
        _templates()
        .get_template("study.html.j2")
        .render(conclusion=conclusion, pictures=[one for one in pictures if one], tables=tables)
    )
    write_text(path, text)


def write_overview(folder: Path) -> tuple[Path, list[str]]:
    """Write the page of all studies in a folder: claims and verdicts.

    Returns:
        Its path, and what is wrong with each study that is left out because it cannot be read.
    """
    studies, unread = [], []
    for found in sorted(folder.glob("*/study.json")):
        try:
            conclusion = read_conclusion(found)
        except CheckpointError as error:
            unread.append(str(error))
            continue
        if conclusion is not None:
            studies.append((found.parent.name, conclusion))
    path = folder / OVERVIEW
    write_text(path, _templates().get_template("claims.html.j2").render(studies=studies))
    return path, unread


def _templates() -> Environment:
    page = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("transformer_mt.studies", "templates"),
                PackageLoader("transformer_mt.evaluation", "templates"),
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.globals |= {"found_text": found_text, "marks": charts.MARKS, "style_of": charts.system_style}
    return page


def _picture(conclusion: Conclusion, picture: PictureSection, number: int) -> Picture | None:
    """A drawing, or None where nothing of it was measured."""
    label = _label(picture.metric)
    key = f"picture-{number}"
    series = [_points(conclusion.values, variant, picture) for variant in conclusion.variants]
    runs = [found.runs for points in series for _, found in points]
    if not runs:
        return None
    count = f"{min(runs)} to {max(runs)}" if min(runs) < max(runs) else str(runs[0])
    note = f"{count} run{'s' * (max(runs) != 1)} of each variant"
    if max(runs) > 1:
        note += "; lines span the extremes"
    if others := _others(conclusion.values, picture):
        note += f"; mean over {', '.join(others)}"
    if picture.over is None:
        bars = [_point("", points[0][1]) if points else None for points in series]
        drawing = charts.bars_svg(bars, conclusion.variants, label, key)
        title = label
    else:
        lines = [[_point(x, found) for x, found in points] for points in series]
        if picture.log:
            above = [
                [one for one in points if one.low > 0 and (isinstance(one.x, str) or one.x > 0)]
                for points in lines
            ]
            note += "; logarithmic" + (", without what is 0 or less" if above != lines else "")
            lines = above
        drawing = charts.series_svg(lines, picture.over, label, key, log=picture.log)
        title = f"{label} by {picture.over}"
    facts = "; ".join(
        f"{variant}: {number_text(points[-1][1].mean)}"
        for variant, points in zip(conclusion.variants, series, strict=True)
        if points
    )
    return Picture(f"{title}{at_text(picture.at)}", note, f"{title}; last points: {facts}", Markup(drawing))


def _label(metric: str) -> str:
    """A metric as a person writes it."""
    return " ".join(_SPELLED.get(word, word) for word in metric.split("_"))


def _points(
    values: Sequence[Value], variant: str, picture: PictureSection
) -> list[tuple[float | str, Summary]]:
    """Where a variant was measured along the axis, and what its runs came to there; numbers in order."""
    places: dict[float | str, None] = {"": None}
    own = [one for one in values if one.variant == variant and one.measured.metric == picture.metric]
    if picture.over is not None:
        places = {one.measured.at[picture.over]: None for one in own if picture.over in one.measured.at}
    points = []
    for place in places:
        at = picture.at if picture.over is None else {**picture.at, picture.over: place}
        if (found := summary(by_seed(own, variant, picture.metric, at).values())) is not None:
            points.append((place, found))
    if all(not isinstance(place, str) for place, _ in points):
        points.sort(key=lambda point: float(point[0]))
    return points


def _others(values: Sequence[Value], picture: PictureSection) -> list[str]:
    """The kinds of places that a drawing takes the mean over."""
    pinned = {picture.over, *picture.at}
    return list(
        dict.fromkeys(
            key
            for one in values
            if one.measured.metric == picture.metric
            for key in one.measured.at
            if key not in pinned
        )
    )


def _point(x: float | str, found: Summary) -> charts.Point:
    return charts.Point(x, found.mean, found.low, found.high)


def _tables(conclusion: Conclusion) -> Iterator[tuple[str, list[Row]]]:
    """Every metric that was taken at few places: its name, and a row for each place."""
    places: dict[str, dict[tuple[tuple[str, float | str], ...], At]] = {}
    for one in conclusion.values:
        at = one.measured.at
        places.setdefault(one.measured.metric, {})[tuple(at.items())] = at
    for metric, ats in places.items():
        if len(ats) > _MOST_ROWS:
            continue
        own = [one for one in conclusion.values if one.measured.metric == metric]
        rows = []
        for at in ats.values():
            there = [one for one in own if one.measured.at == at]
            runs = max(len(conclusion.seeds), 1)
            cells = [_cell(there, variant, runs) for variant in conclusion.variants]
            rows.append(Row(at_text(at).removeprefix(" at "), tuple(cells)))
        yield _label(metric), rows


def _cell(values: Sequence[Value], variant: str, runs: int) -> str:
    """Mean and spread of a variant, with the number of its runs where it is less than it should be."""
    own = [one for one in values if one.variant == variant]
    found = summary(one.measured.value for one in own if one.measured.value is not None)
    if found is None:
        return "none" if own else ""
    return found_text(found) if found.runs < runs else mean_text(found)
