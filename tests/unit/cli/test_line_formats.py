"""What is written about a translation in each format, and that no text breaks it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from transformer_mt.cli.line_formats import FORMATS, LineFormat
from transformer_mt.cli.source_lines import SourceLine
from transformer_mt.decoding.translator import Candidate, Translation

NASTY = "a\tb\\t c ||| d \u2028\x0b\"{}'"


def _source(text: str, raw: str | None = None) -> SourceLine:
    return SourceLine(text, text if raw is None else raw, raw is not None, "")


def _translation(*texts: str, flags: tuple[str, ...] = (), parts: int = 1) -> Translation:
    candidates = [
        Candidate(text, -0.5 * rank, [5, 6, 7][:rank], False, [-0.25] * (rank + 1), [(0, 1), (2, 0)])
        for rank, text in enumerate(texts, start=1)
    ]
    return Translation(candidates, 3, parts, flags)


BLANK = Translation([Candidate("", 0.0, [], False)], 0)


def _pieces(ids: Sequence[int]) -> list[str]:
    return [*map(str, ids), "</s>"]


@pytest.mark.parametrize("name", FORMATS)
def test_one_translation_is_one_line(name: str) -> None:
    """B001, B156: whatever is in source and translation, the columns and lines stay."""
    sources = [_source(NASTY), _source(""), _source("x")]
    lines = LineFormat(name).lines(1, sources, [_translation(NASTY), BLANK, _translation("y")])
    assert len(lines) == 3
    assert not any("\n" in line or "\r" in line for line in lines)
    if name == "tsv":
        assert [line.count("\t") for line in lines] == [5, 5, 5]
    if name == "moses":
        assert [line.count("|||") for line in lines] == [3, 3, 3]


def test_columns() -> None:
    """line, rank, score, flags, source, translation, then what was asked for; escapes lead back."""
    style = LineFormat("tsv", nbest=True, alignment=True, token_scores=True, pieces=_pieces)
    rows = style.lines(
        7, [_source("s\rx"), _source(" ")], [_translation(NASTY, "v", flags=("copy", "loop")), BLANK]
    )
    columns = [row.split("\t") for row in rows]
    assert columns[0][:5] == ["7", "1", "-0.500000", "copy,loop", "s\\rx"]
    assert columns[0][5].replace("\\t", "\t", 1).replace("\\\\", "\\") == NASTY
    assert columns[0][6:] == ["0-1 2-0", "5 </s>", "-0.250000 -0.250000"]
    assert columns[1][1:3] == ["2", "-1.000000"]
    assert columns[1][7:] == ["5 6 </s>", "-0.250000 -0.250000 -0.250000"]
    assert columns[2] == ["8", "1", "0.000000", "", " ", "", "", "", ""]


def test_a_json_object_is_kept_to_the_letter() -> None:
    """Numbers, escapes, order and even doubled names; what is added follows."""
    raw = ' {"b":1e3,"src" : "\\u00e4", "n":12345678901234567890.10,"b":[ 1 ]\t} '
    line = LineFormat("jsonl").lines(1, [_source("ä", raw)], [_translation("x", flags=("copy",), parts=2)])[0]
    assert line.startswith('{"b":1e3,"src" : "\\u00e4", "n":12345678901234567890.10,"b":[ 1 ], "translation"')
    added = {"translation": "x", "score": -0.5, "flags": ["copy"], "parts": 2}
    assert json.loads(line) == json.loads(raw) | added
    assert list(json.loads(line))[-4:] == ["translation", "score", "flags", "parts"]


def test_json_of_text_and_of_an_object_with_no_field() -> None:
    """The source is named; an object may have become empty but for blanks."""
    style = LineFormat("jsonl")
    assert json.loads(style.lines(1, [_source(NASTY)], [BLANK])[0]) == {
        "source": NASTY,
        "translation": "",
        "score": 0.0,
        "flags": [],
        "parts": 1,
    }
    assert json.loads(style.lines(1, [_source("", "{ }")], [BLANK])[0])["translation"] == ""


def test_json_with_all_that_can_be_asked_for() -> None:
    """Every added field has the prefix, and is named beforehand, so that none of a user's is overwritten."""
    style = LineFormat(
        "jsonl", nbest=True, alignment=True, token_scores=True, added_prefix="mt_", pieces=_pieces
    )
    record = json.loads(style.lines(1, [_source("s")], [_translation("x", "y")])[0])
    assert sorted(record) == sorted(["source", *style.added_fields])
    assert all(name.startswith("mt_") for name in style.added_fields)
    best = {"translation": "x", "score": -0.5, "alignment": "0-1 2-0"}
    best |= {"tokens": ["5", "</s>"], "token_scores": [-0.25, -0.25]}
    assert record["mt_nbest"][0] == best
    assert record["mt_nbest"][1]["translation"] == "y"
    assert {name.removeprefix("mt_"): record[name] for name in record if name[3:] in best} == best
    blank = json.loads(style.lines(1, [_source("")], [BLANK])[0])
    assert (blank["mt_tokens"], blank["mt_token_scores"], blank["mt_alignment"]) == ([], [], "")


def test_moses_lists() -> None:
    """Numbers from 0, features with their values, the score, and the alignment where it is asked for."""
    assert LineFormat("moses", nbest=True).lines(1, [_source("s")], [_translation("x ||| y", "z")]) == [
        "0 ||| x &#124;&#124;&#124; y ||| Length= 1 ||| -0.500000",
        "0 ||| z ||| Length= 2 ||| -1.000000",
    ]
    style = LineFormat("moses", alignment=True, token_scores=True, pieces=_pieces)
    assert style.lines(3, [_source("s")], [_translation("x")]) == [
        "2 ||| x ||| LogProb= -0.500000 Length= 1 ||| -0.500000 ||| 0-1 2-0"
    ]


def test_text_is_the_best_translation() -> None:
    """And nothing else."""
    assert LineFormat("text").lines(1, [_source("s")], [_translation("x")]) == ["x"]
