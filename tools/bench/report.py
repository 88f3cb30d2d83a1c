"""Values of ours and of peers -> ratios, verdicts, a table and JSON. Runs nothing."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.bench.measure import Measured
from tools.bench.rows import Row
from tools.bench.saved_figures import Figure
from tools.bench.task import Measurement

LookUp = Callable[[Measurement], Figure | None]


@dataclass(frozen=True)
class Outcome:
    """One row with its numbers.

    peer: the peer that counts, the best of the row's; its values are in the order of `ours`. ratios: one for
    each pair. note: whatever keeps the ratio from being a claim.
    """

    row: Row
    ours: list[float]
    peer: Measurement | None = None
    peer_values: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    verdict: str = "not measured"
    note: str = ""


def outcome(row: Row, results: Mapping[Measurement, Measured], look_up: LookUp) -> Outcome:
    """The ratios of a row: pair by pair, or against saved figures where no peer ran.

    Args:
        results: of this call; peers that are not installed are not in it.
        look_up: finds the saved figure of a peer.
    """
    ours = results[row.ours].values
    notes = [
        f"{one.system} failed: {results[one].failure}"
        for one in (row.ours, *row.peers)
        if one in results and results[one].failure
    ]
    notes += [f"{one.system} not installed" for one in row.peers if one not in results]
    if not ours:
        return Outcome(row, [], note="; ".join(notes))
    if not row.peers:
        return Outcome(row, ours, ratios=ours, verdict=_verdict(row, ours), note="; ".join(notes))
    best = min if row.smaller_is_better else max
    ran = {one: results[one].values for one in row.peers if one in results and results[one].values}
    if ran:
        counts = best(ran, key=lambda one: statistics.median(ran[one]))
        values = [best(turn) for turn in zip(*ran.values(), strict=False)]  # a failure ends a side early
        ratios = [mine / theirs for mine, theirs in zip(ours, values, strict=False)]
        return Outcome(row, ours, counts, values, ratios, _verdict(row, ratios), "; ".join(notes))
    figures = {one: figure for one in row.peers if (figure := look_up(one)) is not None}
    if not figures:
        return Outcome(row, ours, verdict="no peer", note="; ".join([*notes, "no saved figure"]))
    counts = best(figures, key=lambda one: figures[one].value)
    figure = figures[counts]
    ratios = [mine / figure.value for mine in ours]
    verdict = _verdict(row, ratios) if figure.here else "no claim"
    notes.append(f"peer saved: {figure.source}")
    return Outcome(row, ours, counts, [figure.value], ratios, verdict, "; ".join(notes))


def _verdict(row: Row, ratios: list[float]) -> str:
    """Judged by the median: aim, yes or no."""
    ratio = statistics.median(ratios)

    def reaches(bound: float | None) -> bool:
        return bound is not None and (ratio <= bound if row.smaller_is_better else ratio >= bound)

    if reaches(row.aim):
        return "aim"
    if row.at_least is None:
        return "short of the aim"
    return "yes" if reaches(row.at_least) else "no"


def table(outcomes: list[Outcome]) -> str:
    """Lines of a Markdown table, its columns aligned."""
    head = ["row", "ours", "peer", "ratio [lowest-highest pair]", "target", "aim", "met", "note"]
    lines = [head, *(_cells(one) for one in outcomes)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def _cells(one: Outcome) -> list[str]:
    row = one.row
    sign = "<=" if row.smaller_is_better else ">="
    ours = f"{_rate(one.ours)} {row.unit}{_in(row.ours)}" if one.ours else "-"
    peer = f"{_rate(one.peer_values)} {one.peer.system}{_in(one.peer)}" if one.peer else "-"
    ratio = "-"
    if one.ratios:
        low, high = min(one.ratios), max(one.ratios)
        ratio = f"{statistics.median(one.ratios):.2f} [{low:.2f}-{high:.2f}]"
    bounds = ["-" if bound is None else f"{sign} {bound}" for bound in (row.at_least, row.aim)]
    return [row.name, ours, peer, ratio, *bounds, one.verdict, one.note]


def _rate(values: list[float]) -> str:
    value = statistics.median(values)
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _in(measurement: Measurement) -> str:
    return f" {measurement.precision}" if measurement.precision else ""


def as_json(one: Outcome) -> dict[str, Any]:
    """Everything of a row, rounded nowhere."""
    row = one.row
    return {
        "row": row.name,
        "what": row.what,
        "unit": row.unit,
        "ours": {"key": row.ours.key, "precision": row.ours.precision, "values": one.ours},
        "peer": one.peer
        and {"key": one.peer.key, "precision": one.peer.precision, "values": one.peer_values},
        "ratios": one.ratios,
        "ratio": statistics.median(one.ratios) if one.ratios else None,
        "at_least": row.at_least,
        "aim": row.aim,
        "smaller_is_better": row.smaller_is_better,
        "met": one.verdict,
        "note": one.note,
    }
