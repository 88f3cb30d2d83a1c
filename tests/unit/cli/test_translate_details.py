"""What `translate` tells about a translation when asked, and translations that begin as they are told."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from random_run import made_up_lines, random_run

from transformer_mt.cli.main import main
from transformer_mt.text.words import unit_spans

LINES = [*made_up_lines(4, seed=21), "", "猫 ab"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one run")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def _rows(out: bytes) -> list[list[str]]:
    return [line.split("\t") for line in out.decode().split("\n")[:-1]]


def test_token_scores_add_up_to_the_score(
    run: Path, source: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """One for each token and for the end, of every candidate; text has no room for them, so it is tsv."""
    words = ["--token-scores", "--nbest", "2", "--length-penalty", "0", "--device", "cpu", "--quiet"]
    assert main(["translate", str(run), str(source), *words]) == 0
    rows = _rows(capfdbinary.readouterr().out)
    assert {row[0] for row in rows} == {"1", "2", "3", "4", "5", "6"}
    assert {row[1] for row in rows} == {"1", "2"}
    for row in rows:
        tokens, scores = row[6].split(" "), [float(score) for score in row[7].split()]
        if not row[4]:
            assert row[5:] == ["", "", ""]
            continue
        assert len(tokens) == len(scores)
        assert tokens[-1] == "</s>"
        assert sum(scores) == pytest.approx(float(row[2]), abs=1e-4)


def test_token_scores_tell_what_the_model_wrote(
    run: Path, source: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """With and without a tag and a string that the model never writes, which come in afterwards."""
    words = ["--token-scores", "--format", "jsonl", "--device", "cpu", "--quiet"]
    rows = []
    for text, flags in (
        ("abe diek", []),
        ("<b>abe diek</b>", ["--tags"]),
        ("abe diek", ["--protect", "abe"]),
    ):
        source.write_text(text + "\n")
        assert main(["translate", str(run), str(source), *words, *flags]) == 0
        rows.append(json.loads(capfdbinary.readouterr().out))
    keys = ("score", "tokens", "token_scores")
    assert [[row[key] for key in keys] for row in rows[1:]] == [[rows[0][key] for key in keys]] * 2
    written = rows[0]["translation"]
    assert rows[1]["translation"] == f"<b>{written}</b>" and "abe" in rows[2]["translation"] != written


def test_equal_draws_are_given_once(
    run: Path, source: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Fewer than --nbest may come: the number of the line tells whose they are."""
    words = ["translate", str(run), str(source), "--temperature", "0.3", "--nbest", "6", "--format"]
    found: dict[str, list[list[str]]] = {}
    for style, sign in (("tsv", "\t"), ("moses", " ||| ")):
        assert main([*words, style, "--device", "cpu", "--quiet"]) == 0
        found[style] = [line.split(sign) for line in capfdbinary.readouterr().out.decode().split("\n")[:-1]]
    lists = [[row for row in found["tsv"] if row[0] == str(number)] for number in range(1, 7)]
    assert [int(row[0]) for row in found["tsv"]] == [int(row[0]) + 1 for row in found["moses"]]
    for rows in lists:
        assert [row[1] for row in rows] == [str(rank) for rank in range(1, len(rows) + 1)]
        assert len({row[5] for row in rows}) == len(rows) <= 6
    assert {len(rows) for rows in lists} - {1, 6}


@pytest.mark.parametrize("layer", ["1", "mean"])
def test_alignments_number_the_words_of_both_sides(
    run: Path, source: Path, capfdbinary: pytest.CaptureFixture[bytes], layer: str
) -> None:
    """Pharaoh pairs within the texts of their line, in every format that has room for them."""
    words = ["translate", str(run), str(source), "--alignment", layer, "--device", "cpu", "--quiet"]
    assert main(words) == 0
    rows = _rows(capfdbinary.readouterr().out)
    found = [[tuple(map(int, pair.split("-"))) for pair in row[6].split()] for row in rows]
    assert found[4] == []
    assert any(found)
    for row, pairs in zip(rows, found, strict=True):
        assert all(src < len(unit_spans(row[4])) and tgt < len(unit_spans(row[5])) for src, tgt in pairs)
    assert main([*words, "--format", "jsonl"]) == 0
    records = list(map(json.loads, capfdbinary.readouterr().out.decode().split("\n")[:-1]))
    assert [record["alignment"] for record in records] == [row[6] for row in rows]
    assert main([*words, "--format", "moses"]) == 0
    lists = capfdbinary.readouterr().out.decode().split("\n")[:-1]
    assert [line.split(" ||| ")[4] for line in lists] == [row[6] for row in rows]


def test_translations_begin_as_they_are_told(
    run: Path,
    source: Path,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From a file beside the source, stdin, or a field of each object; a blank line stays blank."""
    prefixes = ["stu", "", "ab", "", "lm", "nor"]
    (tmp_path / "prefixes").write_text("\n".join(prefixes) + "\n", encoding="utf-8")
    words = ["--device", "cpu", "--quiet", "--format", "text"]
    plain = ["translate", str(run), str(source), *words]
    assert main(plain) == 0
    free = capfdbinary.readouterr().out.decode().split("\n")
    assert main([*plain, "--prefix", str(tmp_path / "prefixes")]) == 0
    told = capfdbinary.readouterr().out.decode().split("\n")
    assert [text.startswith(prefix) for text, prefix in zip(told, prefixes, strict=False)].count(False) == 1
    assert told[4] == ""
    assert [told[1], told[3]] == [free[1], free[3]]
    stdin = io.BytesIO((tmp_path / "prefixes").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stdin))
    assert main([*plain, "--prefix", "-"]) == 0
    assert capfdbinary.readouterr().out.decode().split("\n") == told
    objects = [{"src": line, "p": prefix} for line, prefix in zip(LINES, prefixes, strict=True)]
    del objects[3]["p"]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")
    assert main(["translate", str(run), str(path), *words, "--prefix-field", "p"]) == 0
    assert capfdbinary.readouterr().out.decode().split("\n") == told


def test_as_many_prefixes_as_lines_before_anything_is_done(
    run: Path, source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Code 3, no output; and the file of prefixes cannot be the output."""
    path = tmp_path / "prefixes"
    path.write_bytes(b"a\n")
    assert main(["translate", str(run), str(source), "--prefix", str(path)]) == 3
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "prefixes: has no line for " in captured.err
    assert main(["translate", str(run), str(source), "--prefix", str(path), "--output", str(path)]) == 2
    assert "prefixes: is also the input" in capfd.readouterr().err
    assert main(["translate", str(run), "--prefix", "-"]) == 2
    assert "--prefix -: stdin is the source already; name a file" in capfd.readouterr().err
