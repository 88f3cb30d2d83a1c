"""The pages of studies: every number and verdict, nothing from outside as markup; study.json reads back."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.made_up_study import made_up_study
from tests.unit.evaluation.test_report import EVIL, Page
from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import read_json, write_json
from transformer_mt.studies.conclusion import (
    Conclusion,
    conclude,
    measured_nowhere,
    read_conclusion,
    verdict_table,
    write_conclusion,
)
from transformer_mt.studies.measured import MadeOn
from transformer_mt.studies.page import write_overview, write_page
from transformer_mt.studies.study_file import ClaimSection, PictureSection
from transformer_mt.studies.values import Measured
from transformer_mt.studies.verdicts import Value, judge


def claim(**keys: Any) -> ClaimSection:
    """A claim that b needs at most half of a, with other keys laid over it."""
    rule = {"claim": "half of it", "metric": "mib", "variant": "b", "against": "a", "by": "ratio"}
    return ClaimSection.model_validate({**rule, "at": {"length": 8}, "at_most": 0.5, **keys})


def conclusion(**changes: Any) -> Conclusion:
    """Two variants with two seeds: memory at two lengths, and a loss at a hundred steps."""
    values = [
        Value(variant, seed, Measured("mib", factor * length + seed, {"length": length}))
        for variant, factor in (("a", 100.0), ("b", 20.0))
        for seed in (1, 2)
        for length in (8, 16)
    ]
    values += [Value("a", 1, Measured("loss", 9.0 - step / 20, {"step": step})) for step in range(100)]
    values += [Value("b", 1, Measured("score", None))]
    claims = [claim(), claim(claim=EVIL, at_most=0.1), claim(claim="no", metric="absent")]
    made = Conclusion(
        name="s",
        quick=False,
        command="transformer-mt study s.yaml",
        text=f"# {EVIL}\n",
        variants=("a", "b"),
        seeds=(1, 2),
        states={"a_seed1": "finished", "b_seed1": "diverged"},
        values=tuple(values),
        verdicts=tuple(judge(one, values) for one in claims),
        pictures=(
            PictureSection(metric="mib", over="length", log=True),
            PictureSection(metric="mib"),
            PictureSection(metric="loss", over="step"),
            PictureSection(metric="absent"),
        ),
        report=True,
        version="1.2",
        made_on=(MadeOn("m", 2, "2.13.0"),),
    )
    return replace(made, **changes)


def page_of(folder: Path, made: Conclusion) -> tuple[str, Page]:
    """The text of a page, and its parts."""
    write_page(made, folder / "index.html")
    text = (folder / "index.html").read_text(encoding="utf-8")
    return text, Page(text)


def test_the_page_shows_numbers_verdicts_and_where_they_were_made(tmp_path: Path) -> None:
    """Pins a mean and its spread, what was not measured, three verdicts, and no table of a long curve."""
    text, page = page_of(tmp_path, conclusion())
    words = " ".join(page.text.split())
    assert "length 8 801.5 ± 0.71 161.5 ± 0.71" in words
    assert "Score" in words and "none" in words and "MiB by length" in words
    assert re.findall("not confirmed|confirmed|undecided", words)[:3] == [
        "confirmed",
        "not confirmed",
        "undecided",
    ]
    assert "b / a, mib at length 8: at most 0.5" in words
    assert "x86" not in words and "m, 2 threads, torch 2.13.0" in words and "Seeds: 1, 2." in words
    assert "b_seed1 (diverged)" in words and "a_seed1 (finished)" not in words
    assert page.tags["svg"] == 3 and page.tags["h3"] == 2
    assert "2 runs of each variant; lines span the extremes; logarithmic" in words
    assert "mean over length" in words
    assert page.tags["script"] == 0 and EVIL not in text


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    """Pins a point at 0 of a logarithmic drawing, a mean of fewer runs than seeds, and names as an axis."""
    values = [
        Value("a", seed, Measured("share", number, {"set": name}))
        for name, numbers in (("first", (4.0, 6.0)), ("second", (0.0, 1.0)), ("third", (8.0, None)))
        for seed, number in enumerate(numbers, start=1)
    ]
    made = conclusion(values=tuple(values), pictures=(PictureSection(metric="share", over="set", log=True),))
    text, page = page_of(tmp_path, made)
    words = " ".join(page.text.split())
    assert "1 to 2 runs of each variant" in words and "logarithmic, without what is 0 or less" in words
    assert "set third 8 (1 run)" in words and "set first 5 ± 1.4 " in words
    marks = re.findall(r'<use x="([\d.]+)" y="[\d.]+" style="fill: var\(--s0\)', text)
    assert len(marks) == 2, "first and third; a logarithm has no place 0 for the first"


def test_a_quick_page_says_that_it_says_nothing(tmp_path: Path) -> None:
    told = "says nothing about the claims"
    assert told in page_of(tmp_path, conclusion(quick=True))[0]
    assert told not in page_of(tmp_path, conclusion())[0]
    assert told in verdict_table(conclusion(quick=True))


def test_the_table_of_verdicts_for_a_terminal() -> None:
    head, first, *_ = verdict_table(conclusion()).split("\n")
    assert head.split() == ["verdict", "found", "claim", "judged", "by"]
    assert re.split("  +", first) == [
        "confirmed",
        "0.2015 ± 0.0007 (2 runs)",
        "half of it",
        "b / a, mib at length 8: at most 0.5",
    ]


def test_one_page_for_all_studies_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins that study.json reads back, and that a study which concludes nothing is left out."""
    monkeypatch.chdir(tmp_path)
    study = made_up_study(tmp_path, "run_dir=runs/one")
    study.run_dir.mkdir(parents=True)
    write_json(study.run_dir / "study.json", {"study": "s.yaml", "trials": []})
    write_conclusion(study.run_dir / "study.json", conclusion())
    assert read_conclusion(study.run_dir / "study.json") == conclusion()
    assert (read_json(study.run_dir / "study.json") or {})["trials"] == []
    (tmp_path / "runs" / "two").mkdir()
    write_json(tmp_path / "runs" / "two" / "study.json", {"study": "t.yaml", "trials": []})
    (tmp_path / "runs" / "three").mkdir()
    (tmp_path / "runs" / "three" / "study.json").write_text("{", encoding="utf-8")
    overview, (unread,) = write_overview(tmp_path / "runs")
    assert "three/study.json: cannot be read" in unread
    text = overview.read_text(encoding="utf-8")
    assert text.count("<section") == 1 and 'href="one/index.html"' in text
    assert "half of it" in " ".join(Page(text).text.split()) and EVIL not in text


def test_a_conclusion_that_no_study_wrote_is_told(tmp_path: Path) -> None:
    for facts in ({"name": 1}, {"name": 1, "values": []}, ["values"]):
        write_json(tmp_path / "study.json", {"conclusion": facts})
        with pytest.raises(CheckpointError, match=r"study\.json: is not what a study wrote; delete it"):
            read_conclusion(tmp_path / "study.json")
    assert read_conclusion(tmp_path / "absent.json") is None


@pytest.mark.parametrize(
    "columns",
    [
        None,
        [{"variant": "a", "seed": 1}],
        [{"variant": "a", "seed": 1, "columns": {"metric": "m", "at": {"x": [1]}, "values": [1.0, 2.0]}}],
    ],
    ids=["none", "without numbers", "of unequal length"],
)
def test_numbers_that_no_study_wrote_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    study = made_up_study(tmp_path)
    study.run_dir.mkdir(parents=True)
    write_conclusion(study.run_dir / "study.json", conclusion())
    path = study.run_dir / "study.json"
    facts = (read_json(path) or {})["conclusion"]
    write_json(path, {"conclusion": {**facts, "values": columns}})
    with pytest.raises(CheckpointError, match=r"study\.json: is not what a study wrote"):
        read_conclusion(path)


def test_what_nothing_was_measured_by_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a metric and a key that are mistyped, in claims and in pictures; a place may be missing."""
    monkeypatch.chdir(tmp_path)
    study = made_up_study(tmp_path)
    section = study.section.model_copy(
        update={
            "claims": [claim(), claim(metric="mb"), claim(at={"lenght": 8}), claim(at={"length": 9})],
            "pictures": [
                PictureSection(metric="mib", over="step"),
                PictureSection(metric="score", over="set"),
                PictureSection(metric="mib", over="length"),
            ],
        }
    )
    assert list(measured_nowhere(replace(study, section=section), conclusion())) == [
        "claims: nothing was measured as mb; there are mib, loss, score",
        "claims: mib was not measured by lenght; it was by length",
        "pictures: mib was not measured by step; it was by length",
        "pictures: score was not measured by set; it was by nothing",
    ]
    assert list(measured_nowhere(study, conclusion())) == []


def test_a_study_concludes_from_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins the command, the file, and that values stand by variant; nothing was measured here."""
    monkeypatch.chdir(tmp_path)
    made = conclude(made_up_study(tmp_path, "training.max_steps=3", "data.root=my text"), [])
    assert (made.name, made.command, made.variants) == (
        "s",
        f"transformer-mt study {tmp_path / 's.yaml'} training.max_steps=3 'data.root=my text'",
        ("low", "mid", "wide"),
    )
    assert made.values == () and made.text.startswith("run_dir: runs/s")


def test_a_file_name_that_is_no_utf_8_does_not_keep_a_page_from_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins page, study.json and overview of a study below a folder with a byte of Latin-1."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "caf\udce9"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    study = made_up_study(folder)
    study.run_dir.mkdir(parents=True)
    made = conclude(study, [])
    write_conclusion(study.run_dir / "study.json", made)
    assert read_conclusion(study.run_dir / "study.json") == made
    write_page(made, study.run_dir / "index.html")
    assert "caf?" in write_overview(study.run_dir.parent)[0].read_text(encoding="utf-8")
