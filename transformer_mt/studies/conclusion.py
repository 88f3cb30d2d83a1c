"""What a study came to: numbers, verdicts, where they were made; to study.json and back, and as a table.

Plain data, from which the pages are drawn. Knows no models.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from transformer_mt import __version__
from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import read_json, write_json
from transformer_mt.studies.measured import MadeOn, made_on, read_values
from transformer_mt.studies.study import Study
from transformer_mt.studies.study_file import PictureSection
from transformer_mt.studies.trials import Result, align
from transformer_mt.studies.values import Columns, from_columns, to_columns
from transformer_mt.studies.verdicts import Summary, Value, Verdict, judge


@dataclass(frozen=True)
class Conclusion:
    """All that the page of a study shows."""

    name: str
    """Of the study file, without its ending."""
    quick: bool
    """Whether this is the small size, whose numbers say nothing about the claims."""
    command: str
    """What makes it again."""
    text: str
    """The study file."""
    variants: tuple[str, ...]
    seeds: tuple[int, ...]
    """Empty where every variant ran once, with its recipe's seed."""
    states: dict[str, str]
    """Trial -> how its training ended; empty where nothing is trained."""
    values: tuple[Value, ...]
    verdicts: tuple[Verdict, ...]
    pictures: tuple[PictureSection, ...]
    report: bool
    """Whether a comparison of the variants on their test sets lies beside it (report.html)."""
    version: str
    made_on: tuple[MadeOn, ...]
    """The machines, threads and versions of torch that measured."""


def conclude(study: Study, results: Sequence[Result]) -> Conclusion:
    """Judge the claims of a study by what was measured."""
    values = tuple(read_values(study))
    section = study.section
    return Conclusion(
        name=study.path.stem,
        quick=study.quick,
        # File names need not be UTF-8, which pages and pydantic ask for: such bytes become question marks.
        command=shlex.join(_command(study)).encode("utf-8", "replace").decode(),
        text=study.path.read_text(encoding="utf-8-sig"),
        variants=tuple(section.variants),
        seeds=tuple(section.seeds or ()),
        states={Path(one.run_dir).name: one.state for one in results} if section.train else {},
        values=values,
        verdicts=tuple(judge(claim, values) for claim in section.claims),
        pictures=tuple(section.pictures),
        report=(study.run_dir / "report.html").exists(),
        version=__version__,
        made_on=tuple(made_on(study)),
    )


def _command(study: Study) -> Iterator[str]:
    yield from ("transformer-mt", "study", str(study.path), *study.given)
    if study.quick:
        yield "--quick"


def measured_nowhere(study: Study, conclusion: Conclusion) -> Iterator[str]:
    """What claims and pictures ask for but no variant was measured by, a line each: mistyped, most likely."""
    places: dict[str, dict[str, None]] = {}
    for value in conclusion.values:
        places.setdefault(value.measured.metric, {}).update(dict.fromkeys(value.measured.at))
    asked = [("claims", one.metric, list(one.at)) for one in study.section.claims]
    for picture in study.section.pictures:
        over = [picture.over] if picture.over is not None else []
        asked.append(("pictures", picture.metric, [*picture.at, *over]))
    for where, metric, keys in asked:
        if metric not in places:
            yield f"{where}: nothing was measured as {metric}; there are {', '.join(places) or 'no numbers'}"
            continue
        for key in keys:
            if key not in places[metric]:
                known = ", ".join(places[metric]) or "nothing"
                yield f"{where}: {metric} was not measured by {key}; it was by {known}"


def write_conclusion(path: Path, conclusion: Conclusion) -> None:
    """Add it to a study.json."""
    pictures = [one.model_dump() for one in conclusion.pictures]
    values = list(_value_columns(conclusion.values))
    facts: dict[str, Any] = {**asdict(replace(conclusion, values=())), "pictures": pictures, "values": values}
    write_json(path, {**(read_json(path) or {}), "conclusion": facts})


def read_conclusion(path: Path) -> Conclusion | None:
    """What a study.json concludes, or None where it does not (yet), or there is none.

    Raises:
        CheckpointError: the file is damaged, or is not what a study wrote.
    """
    facts = (read_json(path) or {}).get("conclusion")
    if facts is None:
        return None
    try:
        stored = TypeAdapter(list[_ValueColumns]).validate_python(facts.get("values"))
        return TypeAdapter(Conclusion).validate_python({**facts, "values": tuple(_values(stored))})
    except (AttributeError, ValueError):
        raise CheckpointError(f"{path}: is not what a study wrote; delete it") from None


@dataclass(frozen=True)
class _ValueColumns:
    """The numbers of one metric of one trial."""

    variant: str
    seed: int | None
    columns: Columns


def _value_columns(values: Iterable[Value]) -> Iterator[dict[str, Any]]:
    for (variant, seed), own in groupby(values, key=lambda value: (value.variant, value.seed)):
        for columns in to_columns(value.measured for value in own):
            yield asdict(_ValueColumns(variant, seed, columns))


def _values(stored: Iterable[_ValueColumns]) -> Iterator[Value]:
    for one in stored:
        for measured in from_columns(one.columns):
            yield Value(one.variant, one.seed, measured)


def verdict_table(conclusion: Conclusion) -> str:
    """The verdicts for a terminal."""
    rows = [[one.outcome, found_text(one.found), one.claim, one.rule] for one in conclusion.verdicts]
    table = align([["verdict", "found", "claim", "judged by"], *rows], left={0, 1, 2, 3})
    if conclusion.quick:
        table += "\nThis is the quick size: it shows that the study works, and says nothing about the claims."
    return table


def found_text(found: Summary | None) -> str:
    """A number with its spread and the number of runs."""
    if found is None:
        return "not measured"
    runs = f"{found.runs} run{'s' * (found.runs != 1)}"
    return f"{mean_text(found)} ({runs})"


def mean_text(found: Summary) -> str:
    """A mean with its standard deviation, where there are several runs."""
    if found.sd is None:
        return number_text(found.mean)
    return (
        f"{number_text(found.mean)} ± {found.sd:,.0f}"
        if found.sd >= 100
        else f"{number_text(found.mean)} ± {found.sd:.2g}"
    )


def number_text(number: float) -> str:
    """A number with four digits that count, thousands parted."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
