"""`compare` of plain files through the command: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from random_run import made_up_lines

from transformer_mt.cli.main import main
from transformer_mt.evaluation.scores import score

Capture = pytest.CaptureFixture[str]


def write(path: Path, lines: list[str], end: str = "\n", start: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((start + "".join(line + end for line in lines)).encode())
    return path


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """ref, src, one (the reference), two (its words reversed in some lines), train; all of twelve lines."""
    monkeypatch.chdir(tmp_path)
    lines = made_up_lines(12, seed=5)
    write(tmp_path / "ref", lines)
    write(tmp_path / "src", made_up_lines(12, seed=6))
    write(tmp_path / "one", lines)
    write(tmp_path / "two", [" ".join(line.split()[::-1]) if n % 2 else line for n, line in enumerate(lines)])
    return tmp_path


def compare(*words: str) -> int:
    return main(["compare", *words])


PLAIN = ("--ref", "ref", "--lang", "en")


def report(folder: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "report.json").read_text(encoding="utf-8"))
    return found


def test_three_systems_from_files(files: Path, capsys: Capture) -> None:
    """Pins the whole way: names, seeds, sources, training text, table, JSON and page."""
    write(files / "three", ["<script>alert(1)</script>", "", *made_up_lines(10, seed=7)])
    words = ["--src", "src", "--src-lang", "de", "--train", "one", "two", "--output", "out/deep"]
    hyps = ["--hyp", "one", "--hyp", "Two=two,three", "--hyp", "three"]
    assert compare(*PLAIN, *words, *hyps) == 0
    printed, told = capsys.readouterr()
    assert "systems; all are measured against the first, one\n" in printed
    assert told == "transformer-mt: written: out/deep/report.html and out/deep/report.json\n"
    found = report("out/deep")
    assert [one["name"] for one in found["systems"]] == ["one", "Two", "three"]
    assert [one["sources"] for one in found["systems"]] == [["one"], ["two", "three"], ["three"]]
    assert (found["src_lang"], found["tgt_lang"]) == ("de", "en")
    (test_set,) = found["sets"]
    assert (test_set["name"], test_set["sentences"], test_set["length_of"]) == ("ref", 12, "source words")
    references = (files / "ref").read_text("utf-8").split("\n")[:-1]
    hypotheses = (files / "two").read_text("utf-8").split("\n")[:-1]
    (bleu,) = score(hypotheses, [references], ("bleu",), "en")
    assert test_set["results"][1]["scores"][0]["values"][0] == bleu.value
    assert test_set["results"][2]["empty"] == 1
    assert test_set["by_rarity"] and test_set["rarity_of"].endswith(" is in one, two")
    assert f"{bleu.signature}\n" in printed
    assert "Of systems with several runs the first alone was tested: Two by two." in " ".join(printed.split())
    page = (files / "out/deep/report.html").read_text("utf-8")
    assert "Of a system with several runs the first alone was tested." in page
    assert "<script>alert" not in page and "&lt;script&gt;" in page


def test_nothing_is_written_unless_asked_for(files: Path, capsys: Capture) -> None:
    """And without sources or training text those parts say so."""
    before = sorted(files.iterdir())
    assert compare(*PLAIN, "--hyp", "one", "--hyp", "two") == 0
    printed, told = capsys.readouterr()
    assert (sorted(files.iterdir()), told) == (before, "")
    assert "BLEU by length in reference words" in printed
    assert "BLEU by rare words: left out, because no training text is named (--train)" in printed


def test_a_system_against_itself_is_not_different(files: Path, capsys: Capture) -> None:
    """B178: p near 1, all ties; with CRLF and a BOM on one side only."""
    lines = (files / "two").read_text("utf-8").split("\n")[:-1]
    write(files / "dos", lines, end="\r\n", start="\ufeff")
    assert compare(*PLAIN, "--hyp", "two", "--hyp", "dos", "--output", "out") == 0
    first, second = report()["sets"][0]["results"]
    assert [one["value"] for one in first["scores"]] == [one["value"] for one in second["scores"]]
    assert {one["p_bootstrap"] for one in second["scores"]} == {1.0}
    assert {one["p_randomisation"] for one in second["scores"]} == {1.0}
    assert (second["wins"], second["ties"], second["losses"]) == (0, 12, 0)


def test_one_line_has_no_significance(files: Path, capsys: Capture) -> None:
    for name, text in (("r", "a b c d"), ("x", "a b c d"), ("y", "a b c e")):
        write(files / name, [text])
    assert compare("--ref", "r", "--lang", "en", "--hyp", "x", "--hyp", "y") == 0
    printed = capsys.readouterr().out
    assert "r (1 line)\n  note: 1 line: there is nothing to resample" in printed


def test_japanese_and_chinese_get_their_tokenizers(files: Path, capsys: Capture) -> None:
    write(files / "r", ["我昨天买了三本书。", "天气非常好。"])
    write(files / "x", ["我昨天买了书。", "天气很好。"])
    write(files / "y", ["我买了三本书。", "天气非常好。"])
    for language, tokenizer in (("zh", "tok:zh"), ("ja", "tok:")):
        assert compare("--ref", "r", "--lang", language, "--hyp", "x", "--hyp", "y") == 0
        printed = capsys.readouterr().out
        assert tokenizer in printed and "tok:13a" not in printed
        assert "BLEU by length in reference characters" in printed


def test_a_metric_of_faults_is_better_the_lower_it_is(files: Path, capsys: Capture) -> None:
    """Pins the direction, by a known name or as it is given: wins were called losses."""
    write(files / "faults.tsv", ["one\ttwo", *[f"{number}\t{number + 2}" for number in range(12)]])
    words = [*PLAIN, "--hyp", "one", "--hyp", "two", "--output", "out"]
    scores = ["METRICX=faults.tsv", "mine:lower=faults.tsv", "other:higher=faults.tsv"]
    assert compare(*words, *(part for one in scores for part in ("--scores", one))) == 0
    *_, metricx, mine, other = report()["sets"][0]["results"][1]["scores"]
    assert [one["lower_is_better"] for one in (metricx, mine, other)] == [True, True, False]
    printed = capsys.readouterr().out
    assert "METRICX lower is better\n" in printed and "other higher is better\n" in printed
    page = (files / "out/report.html").read_text("utf-8")
    assert page.count("2.000 worse") == 2 and page.count("2.000 better") == 1


def test_outside_metrics_come_from_a_table(files: Path, capsys: Capture) -> None:
    write(files / "comet.tsv", ["two\tone", *[f"0.{number + 10}\t0.5" for number in range(12)]])
    words = [*PLAIN, "--hyp", "one", "--hyp", "two"]
    assert compare(*words, "--scores", "COMET=comet.tsv", "--output", "out") == 0
    comet = [result["scores"][-1] for result in report()["sets"][0]["results"]]
    assert [one["value"] for one in comet] == [pytest.approx(0.5), pytest.approx(0.155)]
    assert comet[1]["p_randomisation"] < 0.01
    for scores, message in [
        (["COMET"], "--scores COMET: must be METRIC=FILE, METRIC:lower=FILE or METRIC:higher=FILE"),
        (["mine=x"], "is a lower or a higher mine better? write mine:lower=x or mine:higher=x"),
        (["=comet.tsv"], "--scores =comet.tsv: must be METRIC=FILE"),
        (["bleu=comet.tsv"], "there is a metric bleu already; name it differently"),
        (["BLEU=comet.tsv"], "there is a metric BLEU already; name it differently"),
    ]:
        assert compare(*words, "--scores", *scores) == 2
        assert message in capsys.readouterr().err
    twice = ["--scores", "C:higher=comet.tsv", "--scores", "C:lower=comet.tsv"]
    assert compare(*words, *twice) == 2
    assert "there is a metric C already" in capsys.readouterr().err
    write(files / "comet.tsv", ["one\ttwo", "high\t1"])
    assert compare(*words, "--scores", "COMET=comet.tsv") == 3
    assert (
        "comet.tsv: has 1 rows of scores below its first line, but the set has 12" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "compare: name at least two systems: run directories, or --hyp FILE with --ref FILE"),
        ([*PLAIN, "--hyp", "one"], 2, "compare: name at least two systems"),
        (["--hyp", "one", "--hyp", "two", "--lang", "en"], 2, "but --ref is missing"),
        (["--hyp", "one", "--hyp", "two", "--ref", "ref"], 2, "but --lang is missing"),
        ([*PLAIN, "--hyp", "a=one", "--hyp", "a=two"], 2, "one and two are both named a; tell them apart"),
        ([*PLAIN, "--hyp", "one", "--hyp", "gone"], 3, "gone: cannot be read: No such file"),
        (["--ref", "gone", "--lang", "en", "--hyp", "one", "--hyp", "two"], 3, "gone: cannot be read"),
        ([*PLAIN, "--hyp", "one", "--hyp", "short"], 3, "short: has 3 lines, but ref has 12; line N of both"),
        ([*PLAIN, "--hyp", "one", "--hyp", "n=two,short"], 3, "short: has 3 lines, but ref has 12"),
        ([*PLAIN, "--hyp", "one", "--hyp", "two", "--src", "short"], 3, "short: has 3 lines, but ref has 12"),
        (["--ref", "ref", "short", "--lang", "en", "--hyp", "one", "--hyp", "two"], 3, "short: has 3 lines"),
        (["--ref", "empty", "--lang", "en", "--hyp", "empty", "--hyp", "b=empty"], 3, "empty: is empty"),
        (
            [*PLAIN, "--hyp", "one", "--hyp", "two", "--test", "x"],
            2,
            "--test is about runs, but none is named",
        ),
        ([*PLAIN, "--hyp", "one", "--hyp", "two", "--data-root", "x"], 2, "--data-root is about runs"),
        ([*PLAIN, "--hyp", "one", "--hyp", "two", "--checkpoint", "5"], 2, "--checkpoint is about runs"),
        ([*PLAIN, "--hyp", "one", "--hyp", "two", "--beam-size", "3"], 2, "--beam-size is about runs"),
        ([*PLAIN, "--hyp", "one", "--hyp", "two", "--output", "ref"], 2, "--output ref: is a file; name a"),
        ([*PLAIN, "--hyp", "one", "--hyp", "two", "--output", "ref/out"], 3, "ref/out: Not a directory"),
        ([*PLAIN, "--hyp", "one", "--hyp", "two", "--train", "gone"], 3, "gone: cannot be read"),
        (["nowhere", "one", "--test", "x"], 5, "nowhere: no such run directory"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    words: list[str], code: int, message: str, files: Path, capsys: Capture
) -> None:
    """B167 among others: the file and both counts, before anything is computed."""
    write(files / "short", ["a", "b", "c"])
    write(files / "empty", [])
    assert compare(*words) == code
    printed, error = capsys.readouterr()
    assert printed == "" and error.count("\n") == 1
    assert message in error


def test_text_that_looks_tokenised_is_noted(files: Path, capsys: Capture) -> None:
    """B166: with the name of the system, in the table and the report."""
    lines = (files / "one").read_text("utf-8").split("\n")[:-1]
    write(files / "split", [f"{line} ." for line in lines])
    assert compare(*PLAIN, "--hyp", "one", "--hyp", "split", "--output", "out") == 0
    said = "split looks tokenised: 12 of 12 lines end in a full stop by itself"
    assert said in " ".join(capsys.readouterr().out.split())
    assert said in report()["sets"][0]["note"]


def test_a_row_for_each_path_of_one_set(files: Path, capsys: Capture) -> None:
    """B178: equal file names of two runs are two rows, each with its own score; a third of another length, a
    second set of references, or one system alone is refused; the tests of significance repeat themselves."""
    for name, content in (("runA", "one"), ("runB", "two")):
        write(files / name / "out.txt", (files / content).read_text("utf-8").split("\n")[:-1])
    hyps = ["--hyp", "runA/out.txt", "--hyp", "runB/out.txt"]
    for _ in range(2):
        assert compare(*PLAIN, *hyps, "--output", "out") == 0
    printed = capsys.readouterr().out
    assert printed[: len(printed) // 2] == printed[len(printed) // 2 :]
    assert [one["name"] for one in report()["systems"]] == ["runA/out.txt", "runB/out.txt"]
    values = [result["scores"][0]["values"][0] for result in report()["sets"][0]["results"]]
    assert values[0] == pytest.approx(100.0) and values[1] < 90.0
    assert report()["sets"][0]["results"][1]["scores"][0]["p_bootstrap"] < 0.05
    write(files / "runC" / "out.txt", ["a", "b"])
    assert compare(*PLAIN, *hyps, "--hyp", "runC/out.txt") == 3
    error = capsys.readouterr().err
    assert "2" in error and "12" in error and "runC" in error
    assert compare(*PLAIN, "--hyp", "runA/out.txt") == 2
    assert "name at least two systems" in capsys.readouterr().err
