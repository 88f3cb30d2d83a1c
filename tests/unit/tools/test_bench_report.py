"""tools/bench: what runs by turns, ratios pair by pair, verdicts, saved figures, the table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools.bench import saved_figures
from tools.bench.measure import (
    NEEDS,
    Measured,
    MeasurementFailed,
    contests,
    missing_packages,
    run_by_turns,
)
from tools.bench.report import as_json, outcome, table
from tools.bench.rows import ROWS, Row, choose
from tools.bench.saved_figures import Figure
from tools.bench.task import Measurement
from transformer_mt.errors import ConfigError

OURS = Measurement("ours", "train", "S", "fp32")
PLAIN = Measurement("plain", "train", "S", "fp32")
MARIAN = Measurement("transformers", "train", "S", "fp32")
ROW = Row("train-S-fp32", "training", "target tokens/s", OURS, (PLAIN, MARIAN), 1.4, 1.8)
MACHINE = {"processor": "Abacus 7", "cores": 2, "flags": ["beads"], "threads": 2, "device": "cpu"}


def no_figure(measurement: Measurement) -> Figure | None:
    return None


def measured(*values: float, failure: str = "") -> Measured:
    return Measured(list(values), failure=failure)


def test_turns_alternate_and_a_value_is_the_median_of_its_windows() -> None:
    """Pins A B A B, not A A B B: a machine that slows down must slow both sides down."""
    order: list[str] = []
    answers = iter([[7.0, 1.0, 3.0], [10.0], [5.0, 6.0], [20.0]])

    def run(measurement: Measurement) -> dict[str, Any]:
        order.append(measurement.system)
        return {"values": next(answers), "versions": {"torch": "9"}, "detail": {"peak_gib": 1}}

    said: list[str] = []
    results = run_by_turns([OURS, PLAIN], 2, run, said.append)
    assert order == ["ours", "plain", "ours", "plain"]
    assert results[OURS].values == [3.0, 5.5]
    assert results[PLAIN].values == [10.0, 20.0]
    assert results[OURS].detail[0] == {"windows": [7.0, 1.0, 3.0], "peak_gib": 1}
    assert said[2] == "ours/train/S/fp32 2/2: 5.50"


def test_what_fails_keeps_its_values_and_is_not_tried_again() -> None:
    """Pins that a broken peer costs one attempt, and costs the others nothing."""
    attempts: list[str] = []

    def run(measurement: Measurement) -> dict[str, Any]:
        attempts.append(measurement.system)
        if measurement is PLAIN and attempts.count("plain") == 2:
            raise MeasurementFailed("exit code 1: no room")
        return {"values": [2.0], "versions": {}, "detail": {}}

    results = run_by_turns([OURS, PLAIN], 3, run, lambda line: None)
    assert attempts == ["ours", "plain", "ours", "plain", "ours"]
    assert results[PLAIN] == Measured([2.0], {}, [{"windows": [2.0]}], "exit code 1: no room")
    found = outcome(replace(ROW, peers=(PLAIN,)), results, no_figure)
    assert found.ratios == [1.0]
    assert found.note == "plain failed: exit code 1: no room"


def test_one_measurement_of_ours_serves_all_rows_that_share_it() -> None:
    """Pins that CTranslate2 in fp32 and in int8 are set against the same runs of ours."""
    both = [row for row in ROWS if row.name.startswith("decode-S-beam5-bf16")]
    assert len(both) == 2
    found = contests(both)
    assert [[one.key for one in contest] for contest in found] == [
        ["ours/decode/S/bf16/beam5", "ctranslate2/decode/S/fp32/beam5", "ctranslate2/decode/S/int8/beam5"]
    ]


def test_a_peer_runs_only_where_its_packages_are() -> None:
    """Pins which package makes which row a row of saved figures; ours and sentencepiece always run."""
    assert missing_packages(MARIAN, {"torch": "2", "numpy": "2", "transformers": "5"}) == ["accelerate"]
    assert missing_packages(PLAIN, {"torch": "2", "numpy": "2"}) == []
    assert missing_packages(OURS, {}) == []
    assert missing_packages(Measurement("sentencepiece", "prepare"), {}) == []


def test_ratios_are_of_pairs_against_the_best_peer_of_each() -> None:
    """Pins 30/20, 45/25, 44/40: the fastest of both peers in the same turn. The ratio of the medians would be
    44/25, the median of all against one peer 3.0."""
    results = {OURS: measured(30, 45, 44), PLAIN: measured(10, 25, 40), MARIAN: measured(20, 15, 30)}
    found = outcome(ROW, results, no_figure)
    assert found.ratios == pytest.approx([1.5, 1.8, 1.1])
    assert found.peer_values == [20, 25, 40]
    assert found.peer == PLAIN  # the better median
    assert (found.verdict, found.note) == ("yes", "")


@pytest.mark.parametrize(
    ("ratio", "bounds", "smaller", "verdict"),
    [
        (1.39, (1.4, 1.8), False, "no"),
        (1.4, (1.4, 1.8), False, "yes"),
        (1.8, (1.4, 1.8), False, "aim"),
        (0.6, (0.6, 0.4), True, "yes"),
        (0.61, (0.6, 0.4), True, "no"),
        (0.4, (0.6, 0.4), True, "aim"),
        (0.9, (None, 1.0), False, "short of the aim"),
        (0.7, (0.7, None), False, "yes"),
    ],
)
def test_verdicts(
    ratio: float, bounds: tuple[float | None, float | None], smaller: bool, verdict: str
) -> None:
    """Pins which side of a bound is which, and that a bound itself is met."""
    row = replace(ROW, peers=(PLAIN,), at_least=bounds[0], aim=bounds[1], smaller_is_better=smaller)
    assert outcome(row, {OURS: measured(ratio), PLAIN: measured(1.0)}, no_figure).verdict == verdict


def test_a_row_without_peers_is_judged_by_its_own_values() -> None:
    """Pins that seconds and growth are no ratios to anything."""
    row = Row("start", "first line", "s", OURS, at_least=3.0, aim=1.5, smaller_is_better=True)
    found = outcome(row, {OURS: measured(2.0, 1.0, 4.0)}, no_figure)
    assert (found.ratios, found.verdict) == ([2.0, 1.0, 4.0], "yes")


def test_saved_figures_of_another_machine_are_shown_but_prove_nothing() -> None:
    """Pins the fallback: the best saved peer, a claim only for figures of this very machine."""
    figures = {
        PLAIN: Figure(20.0, "Abacus 7, 2 cores, 1623-01-01", True),
        MARIAN: Figure(30.0, "Slide rule, 1 cores, 1630-01-01", False),
    }
    found = outcome(ROW, {OURS: measured(60.0, 75.0)}, figures.get)
    assert (found.peer, found.ratios, found.verdict) == (MARIAN, [2.0, 2.5], "no claim")
    assert found.note.endswith("transformers not installed; peer saved: Slide rule, 1 cores, 1630-01-01")
    del figures[MARIAN]
    found = outcome(ROW, {OURS: measured(60.0, 75.0)}, figures.get)
    assert (found.peer, found.ratios, found.verdict) == (PLAIN, [3.0, 3.75], "aim")


def test_without_any_peer_ours_is_still_shown() -> None:
    """Pins that a missing peer and a failure of ours are told apart."""
    found = outcome(ROW, {OURS: measured(5.0)}, no_figure)
    assert (found.ours, found.ratios, found.verdict) == ([5.0], [], "no peer")
    assert found.note == "plain not installed; transformers not installed; no saved figure"
    found = outcome(ROW, {OURS: measured(failure="exit code 1: oh"), PLAIN: measured(1.0)}, no_figure)
    assert (found.ours, found.verdict) == ([], "not measured")
    assert found.note.startswith("ours failed: exit code 1: oh")


def test_the_table_names_the_precision_beside_every_rate() -> None:
    """Pins a line of the table by hand: medians, lowest and highest pair, precision of both sides."""
    peer = Measurement("ctranslate2", "decode", "S", "int8", 5)
    row = Row("decode", "", "sentences/s", Measurement("ours", "decode", "S", "bf16", 5), (peer,), 1.0, 1.3)
    results = {row.ours: measured(1300, 1100, 1500), peer: measured(1000, 1000, 1000)}
    found = outcome(row, results, no_figure)
    lines = table([found]).split("\n")
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells == [
        "decode",
        "1,300 sentences/s bf16",
        "1,000 ctranslate2 int8",
        "1.30 [1.10-1.50]",
        ">= 1.0",
        ">= 1.3",
        "aim",
        "",
    ]
    assert len({len(line) for line in lines}) == 1
    record = as_json(found)
    assert record["peer"]["precision"] == "int8"
    assert (record["ratio"], record["met"]) == (pytest.approx(1.3), "aim")


def test_figures_are_saved_and_found_by_machine(tmp_path: Path) -> None:
    """Pins that only peers are saved, that this machine's figures win, and that a card never gets a CPU's."""
    path = tmp_path / "figures.json"
    results = {OURS: measured(9.0), PLAIN: measured(4.0, 2.0, 3.0), MARIAN: measured(failure="no")}
    saved_figures.save(results, MACHINE, path)
    other = {**MACHINE, "processor": "Slide rule"}
    saved_figures.save({PLAIN: measured(8.0)}, other, path)
    saved_figures.save({MARIAN: measured(5.0)}, MACHINE, path)
    entries = json.loads(path.read_text(encoding="utf-8"))
    assert [sorted(entry["figures"]) for entry in entries] == [[PLAIN.key], [PLAIN.key, MARIAN.key]]
    assert entries[1]["figures"][PLAIN.key] == {"value": 3.0, "low": 2.0, "high": 4.0}
    found = saved_figures.look_up(PLAIN, MACHINE, path)
    assert found is not None
    assert (found.value, found.here) == (3.0, True)
    found = saved_figures.look_up(PLAIN, {**MACHINE, "cores": 64}, path)
    assert found is not None
    assert (found.value, found.here) == (8.0, False)
    assert saved_figures.look_up(PLAIN, {**MACHINE, "device": "A card"}, path) is None
    assert saved_figures.look_up(OURS, MACHINE, path) is None


def test_figures_of_other_threads_prove_nothing(tmp_path: Path) -> None:
    """Pins that two threads are never set against one as a claim, nor overwritten by what one did."""
    path = tmp_path / "figures.json"
    one_thread = {**MACHINE, "threads": 1}
    saved_figures.save({PLAIN: measured(20.0)}, MACHINE, path)
    found = outcome(ROW, {OURS: measured(60.0)}, lambda peer: saved_figures.look_up(peer, one_thread, path))
    assert (found.ratios, found.verdict) == ([3.0], "no claim")
    assert "peer saved: Abacus 7, 2 cores, 2 threads, " in found.note
    saved_figures.save({PLAIN: measured(12.0)}, one_thread, path)
    for machine, value in ((MACHINE, 20.0), (one_thread, 12.0)):
        figure = saved_figures.look_up(PLAIN, machine, path)
        assert figure is not None
        assert (figure.value, figure.here) == (value, True)


def test_every_peer_that_may_be_missing_has_a_saved_figure() -> None:
    """Pins that no row is empty on a machine without peers."""
    peers = [peer for row in ROWS for peer in row.peers if peer.system in NEEDS]
    assert len(peers) > 8
    assert all(saved_figures.look_up(peer, MACHINE) for peer in peers)


def test_rows_are_chosen_by_name() -> None:
    """Pins --only, and that names are not used twice."""
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert [row.name for row in choose(["prepare", "memory-B"])] == ["prepare", "memory-B"]
    assert choose([]) == list(ROWS)
    with pytest.raises(ConfigError, match="--only memory-C: no such row; --list shows them"):
        choose(["memory-C"])
