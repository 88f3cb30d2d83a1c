"""What studies came to, as committed: pages from the numbers, verdicts from the rules of the study files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.studies.test_page import conclusion
from tools.published import PUBLISHED, draw, published, take
from transformer_mt.errors import ConfigError
from transformer_mt.json_file import write_json
from transformer_mt.studies.conclusion import write_conclusion
from transformer_mt.studies.study import load_study
from transformer_mt.studies.verdicts import judge

_STUDIES = Path(__file__).parents[3] / "recipes" / "studies"


def test_a_study_is_taken_with_its_page_and_its_row(tmp_path: Path) -> None:
    """Pins that its report, which quotes test sets, is neither taken nor linked."""
    run = tmp_path / "run"
    run.mkdir()
    write_conclusion(run / "study.json", conclusion(report=True))
    (run / "report.html").write_text("a sentence of a test set", encoding="utf-8")
    take(run, tmp_path / "docs")
    draw(tmp_path / "docs")
    assert sorted(path.name for path in (tmp_path / "docs" / "s").iterdir()) == ["index.html", "study.json"]
    assert "report.html" not in (tmp_path / "docs" / "s" / "index.html").read_text(encoding="utf-8")
    table = (tmp_path / "docs" / "README.md").read_text(encoding="utf-8").splitlines()
    rule, found = "b / a, mib at length 8: at most 0.5", "0.2015 ± 0.0007 (2 runs)"
    assert f"| [s](s/index.html) | half of it | {rule} | {found} | confirmed |" in table


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "study.json", {"trials": []})
    with pytest.raises(ConfigError, match="holds no study of full size that is done"):
        take(tmp_path, tmp_path / "docs")
    write_conclusion(tmp_path / "study.json", conclusion(quick=True))
    with pytest.raises(ConfigError, match="holds no study of full size that is done"):
        take(tmp_path, tmp_path / "docs")


def test_committed_verdicts_are_those_of_the_rules() -> None:
    """Pins numbers whose study file has changed since, and verdicts edited by hand."""
    for name, made in published(PUBLISHED):
        study = load_study(_STUDIES / f"{name}.yaml")
        assert made.variants == tuple(study.section.variants), name
        assert made.seeds == tuple(study.section.seeds or ()), name
        assert made.verdicts == tuple(judge(claim, made.values) for claim in study.section.claims), name
        assert made.command == f"transformer-mt study recipes/studies/{name}.yaml", name


def test_committed_pages_are_those_of_the_numbers(tmp_path: Path) -> None:
    again = tmp_path / "studies"
    shutil.copytree(PUBLISHED, again)
    draw(again)
    for path in sorted(PUBLISHED.rglob("*.*")):
        assert (again / path.relative_to(PUBLISHED)).read_bytes() == path.read_bytes(), path
