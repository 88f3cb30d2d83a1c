"""report.json: complete on the way there and back, and refused when it is something else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests import hand_made_comparison as made
from transformer_mt.errors import DataError
from transformer_mt.evaluation.comparison import from_json, to_json


def test_json_holds_all_of_it() -> None:
    comparison = made.comparison(made.test_set(), warnings=("<script>", "线程"))
    assert from_json(to_json(comparison), "report.json") == comparison
    assert "线程" in to_json(comparison)


def test_infinities_never_reach_the_file() -> None:
    one = made.test_set()
    broken = replace(one, results=(replace(one.results[0], length_ratio=float("inf")), one.results[1]))
    back = from_json(to_json(made.comparison(broken)), "report.json")
    assert back.sets[0].results[0].length_ratio is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"r\.json: is not a report.json of `compare`: : Invalid JSON"),
        ("{}", r"r\.json: is not a report.json of `compare`: src_lang: Field required; make it anew"),
    ],
)
def test_other_files_are_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_json(text, "r.json")


def test_another_format_is_refused() -> None:
    later = {**json.loads(to_json(made.comparison(made.test_set()))), "format": 3}
    with pytest.raises(DataError, match=r"r\.json: has format 3, this version reads format 2"):
        from_json(json.dumps(later), "r.json")
