"""The small size of every study of the repository: it trains, measures, judges, and draws its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, Cli
from transformer_mt.studies.study import load_study

STUDIES = sorted(
    path.stem
    for path in (REPOSITORY / "recipes" / "studies").glob("*.yaml")
    if "\nquick:" in path.read_text(encoding="utf-8")
)


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_the_quick_size_of_a_study_runs(cli: Cli, tmp_path: Path, name: str) -> None:
    """Pins that every metric of a claim or picture was measured, of every variant that remains."""
    path = REPOSITORY / "recipes" / "studies" / f"{name}.yaml"
    done = cli("study", str(path), "--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs" / "studies" / f"{name}_quick"
    conclusion = json.loads((folder / "study.json").read_text(encoding="utf-8"))["conclusion"]
    assert conclusion["quick"] is True
    study = load_study(path, quick=True)
    measured = {(row["variant"], row["columns"]["metric"]) for row in conclusion["values"]}
    for one in study.section.pictures:
        missing = [name for name in study.section.variants if (name, one.metric) not in measured]
        assert not missing, f"{one.metric} was not measured of {missing}"
    for claim in study.section.claims:
        whose = {claim.variant, claim.against or claim.variant} & set(study.section.variants)
        assert all((variant, claim.metric) in measured for variant in whose), claim.claim
    assert len(conclusion["verdicts"]) == len(study.section.claims)
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 1 and "says nothing about the claims" in page
    assert (folder.parent / "index.html").exists()
