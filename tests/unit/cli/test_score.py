"""`score` through the command: one line out per pair in, whatever it comes as."""

from __future__ import annotations

import gzip
import io
import json
import math
import sys
from pathlib import Path

import pytest
from random_run import made_up_lines, random_run

from transformer_mt.cli.main import main
from transformer_mt.decoding.scorer import Scored, Scorer

SOURCES = [*made_up_lines(5, 21), "", "\u3000", "猫 a\u2028b", "abe"]
TARGETS = [*made_up_lines(5, 22), "", "bel", "\u00a0", "del\x0b🐈"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("runs") / "one")


@pytest.fixture(scope="module")
def expected(run: Path) -> list[Scored]:
    return Scorer.load(run, device="cpu").score(list(zip(SOURCES, TARGETS, strict=True)))


def _score(run: Path, *words: str | Path) -> int:
    return main(["score", str(run), *map(str, words), "--device", "cpu"])


def _write(path: Path, lines: list[str]) -> Path:
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    return path


def _sides(folder: Path) -> tuple[str, Path, str, Path]:
    return "--src", _write(folder / "src", SOURCES), "--tgt", _write(folder / "tgt", TARGETS)


COLUMNS = ["\t".join(pair) for pair in zip(SOURCES, TARGETS, strict=True)]


def _stdin(patch: pytest.MonkeyPatch, content: str) -> None:
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))


def test_every_way_in_gives_one_score_a_line(
    run: Path,
    expected: list[Scored],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two files, packed columns, columns from stdin, JSON Lines by all names that the corpus reader knows."""
    wanted = [f"{one.score:.6f}" for one in expected]
    assert wanted[5] == "0.000000" and len(set(wanted)) == len(wanted)
    assert _score(run, *_sides(tmp_path)) == 0
    assert capfd.readouterr().out.split("\n")[:-1] == wanted
    packed = tmp_path / "pairs.tsv.gz"
    packed.write_bytes(gzip.compress("\n".join(COLUMNS).encode()))
    assert _score(run, packed, "--batch-size", "1") == 0
    assert capfd.readouterr().out.split("\n")[:-1] == wanted
    _stdin(monkeypatch, "\n".join(COLUMNS) + "\n")
    assert _score(run, "--quiet") == 0
    out, err = capfd.readouterr()
    assert out.split("\n")[:-1] == wanted and err == ""
    objects = [
        {"src": SOURCES[0], "tgt": TARGETS[0], "id": 7},
        {"de": SOURCES[1], "en": TARGETS[1]},
        {"translation": {"de": SOURCES[2], "en": TARGETS[2]}},
    ]
    lines = _write(tmp_path / "pairs.jsonl", [json.dumps(one) for one in objects])
    assert _score(run, lines, "--format", "text") == 0
    assert capfd.readouterr().out.split("\n")[:-1] == wanted[:3]


def test_several_translations_of_a_source_are_lines_like_others(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of three files in a row, the second with two translations of one source."""
    files = [
        _write(tmp_path / str(number), lines)
        for number, lines in enumerate([["a\tb"], ["a\tb", "a\tabe"], ["a\tb"]])
    ]
    assert _score(run, *files) == 0
    scores = capfd.readouterr().out.split()
    assert scores[0] == scores[1] == scores[3] != scores[2]


def test_columns_with_tokens(
    run: Path, expected: list[Scored], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Line, score, log-probability, tokens, texts, pieces, their log-probabilities; no text adds a column."""
    assert _score(run, *_sides(tmp_path), "--token-scores", "--length-penalty", "0.5") == 0
    rows = [line.split("\t") for line in capfd.readouterr().out.split("\n")[:-1]]
    for number, (row, one, source, target) in enumerate(
        zip(rows, expected, SOURCES, TARGETS, strict=True), 1
    ):
        assert row[0] == str(number) and row[4:6] == [source, target]
        assert float(row[1]) == pytest.approx(one.log_prob / max(len(one.ids), 1) ** 0.5, abs=2e-6)
        assert float(row[2]) == pytest.approx(one.log_prob, abs=2e-6)
        assert int(row[3]) == len(one.ids) == len(row[6].split()) == len(row[7].split())
        assert list(map(float, row[7].split())) == pytest.approx(one.token_scores, abs=2e-6)
    assert rows[0][6].endswith("</s>")


def test_objects_keep_what_they_held(
    run: Path, expected: list[Scored], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """To the letter, with new fields behind; a text line becomes an object that can be read again."""
    given = json.dumps({"n": 1.50, "source": SOURCES[0], "translation": TARGETS[0], "score": -1})
    file = _write(tmp_path / "in.jsonl", [given.replace("1.5", "1.50"), ""])
    named = ("--source-field", "source", "--target-field", "translation")
    assert _score(run, file, *named, "--added-prefix", "mt_", "--token-scores") == 0
    line, blank = capfd.readouterr().out.splitlines()
    assert '"n": 1.50' in line
    assert blank.startswith('{"source": "", "translation": "", "mt_score": 0.0')
    record = json.loads(line)
    assert record["score"] == -1 and record["mt_score"] == round(expected[0].score, 6)
    assert record["mt_log_prob"] == round(expected[0].log_prob, 6)
    assert record["mt_num_tokens"] == len(record["mt_tokens"]) == len(record["mt_token_scores"])
    assert _score(run, *_sides(tmp_path), "--format", "jsonl") == 0
    out = capfd.readouterr().out
    assert [json.loads(line)["tgt"] for line in out.split("\n")[:-1]] == TARGETS
    _write(tmp_path / "again.jsonl", out.split("\n")[:-1])
    assert _score(run, tmp_path / "again.jsonl", "--added-prefix", "b_") == 0
    assert all(
        record["score"] == record["b_score"]
        for record in map(json.loads, capfd.readouterr().out.split("\n")[:-1])
    )


def test_the_summary_adds_up(
    run: Path, expected: list[Scored], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Unsmoothed perplexity of all tokens, eos counted; a character more for every line that has a score."""
    assert _score(run, *_sides(tmp_path)) == 0
    err = capfd.readouterr().err
    tokens = sum(len(one.ids) for one in expected)
    total = sum(one.log_prob for one in expected)
    characters = sum(len(text) + 1 for text in TARGETS) - 1  # the pair that is blank twice has none
    assert f"{len(SOURCES)} lines (1 blank), {tokens} target tokens" in err
    assert f"log-probability {total:.2f}, perplexity {math.exp(-total / tokens):.4f} per target token" in err
    assert f"{-total / characters:.4f} nats per target character" in err
    assert f"note: 2 of {len(SOURCES)} lines are blank on one side only, first line 7" in err
    blank = _write(tmp_path / "blank", ["\t", ""])
    assert _score(run, blank) == 0
    out, err = capfd.readouterr()
    assert out == "0.000000\n" * 2 and "2 lines (2 blank), 0 target tokens" in err and "perplexity" not in err


def test_an_output_appears_as_a_whole(
    run: Path, expected: list[Scored], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A broken line leaves the earlier file as it was, and nothing beside it."""
    output = tmp_path / "out"
    assert _score(run, *_sides(tmp_path), "--output", output) == 0
    whole = output.read_text()
    assert whole.split() == [f"{one.score:.6f}" for one in expected] and capfd.readouterr().out == ""
    for content in (["a\tb", "no tab"], ["a\tb\tc"]):
        assert _score(run, _write(tmp_path / "in", content), "--output", output) == 3
        assert "must be source TAB target, but has " in capfd.readouterr().err
    assert output.read_text() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "src", "tgt"]


def test_an_ensemble_is_neither_of_its_runs(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = random_run(tmp_path / "other", seed=9)
    file = _write(tmp_path / "in", ["abe\tbel"])
    scores = []
    for words in ((run,), (other,), (run, "--ensemble", other), (other, "--ensemble", run)):
        assert _score(words[0], file, *words[1:]) == 0
        scores.append(float(capfd.readouterr().out))
    assert len(set(scores[:3])) == 3 and scores[2] == pytest.approx(scores[3], abs=1e-5)


def test_unequal_sides_are_refused_before_anything_is_written(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B148: exit code 3, both numbers, no score."""
    monkeypatch.setattr("transformer_mt.cli.score._BUFFER_LINES", 1)
    _write(tmp_path / "src", ["a", "b", "c"])
    _write(tmp_path / "tgt", ["a", "b"])
    assert _score(run, "--src", tmp_path / "src", "--tgt", tmp_path / "tgt") == 3
    out, err = capfd.readouterr()
    assert out == "" and f"{tmp_path}/src has 3 lines but {tmp_path}/tgt has 2;" in err


def test_of_a_stream_the_lines_before_a_broken_one_come_first(
    run: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be looked through beforehand."""
    monkeypatch.setattr("transformer_mt.cli.input_lines.is_regular", lambda file: False)
    _stdin(monkeypatch, "a\tb\nabe\n")
    assert _score(run) == 3
    out, err = capfd.readouterr()
    assert len(out.split()) == 1
    assert "stdin:2: must be source TAB target, but has 1 column; mend the line" in err


@pytest.mark.parametrize(
    "case",
    [
        ('{"src": "a"}', [], "in.jsonl:1: has no column `de`, only src; needed are src and tgt, de and en"),
        ('{"src": 1, "tgt": "a"}', [], "in.jsonl:1: `src` must be text, but is a number; mend it"),
        ("{", [], "in.jsonl:1: is not JSON"),
        ("[]", [], "in.jsonl:1: must be an object, but is an array; write one object a line"),
        ('{"src": "a", "tgt": "b", "score": 1}', [], "in.jsonl:1: has a field score already; give those"),
        ('{"a": "a"}', ["--source-field", "a", "--target-field", "b"], "in.jsonl:1: has no field b, only a"),
    ],
)
def test_objects_that_are_no_pairs(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], case: tuple[str, list[str], str]
) -> None:
    """Each with its place, exit code 3."""
    record, words, message = case
    assert _score(run, _write(tmp_path / "in.jsonl", [record]), *words) == 3
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    "case",
    [
        (["--src", "in"], "score: give --src FILE and --tgt FILE, or FILE with both sides, or stdin"),
        (["--tgt", "in"], "score: give --src FILE and --tgt FILE"),
        (["in", "--src", "in", "--tgt", "in"], "score: give --src FILE and --tgt FILE"),
        (["in", "--output", "in"], "--output in: is also the input in; name another file"),
        (["--src", "in", "--tgt", "b", "--output", "b"], "--output b: is also the input b"),
        (["in", "--output", "no/out"], "--output no/out: there is no folder"),
        (
            ["in", "--source-field", "a"],
            "--source-field, --target-field: go together, and with --input-format",
        ),
        (["in", "--source-field", "a", "--target-field", "b"], "--source-field, --target-field: go together"),
        (["in", "--format", "text", "--token-scores"], "--format text: has no room for what --token-scores"),
        (["in", "--added-prefix", "x"], "--added-prefix: text has no fields; add --format jsonl"),
        (
            ["in", "--length-penalty", "-1"],
            "--length-penalty: must be greater than or equal to 0, but is -1.0",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    run: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[list[str], str],
) -> None:
    """Exit code 2, before a model is loaded or a file changed."""
    words, message = case
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "in", ["a\tb"])
    _write(tmp_path / "b", ["a\tb"])
    assert _score(run, *words) == 2
    out, err = capfd.readouterr()
    assert out == "" and message in err
    assert (tmp_path / "in").read_text() == (tmp_path / "b").read_text() == "a\tb\n"


def test_one_side_may_come_from_stdin(
    run: Path,
    expected: list[Scored],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Either, but not both; unequal numbers of lines are told as ever."""
    flags = list(_sides(tmp_path))
    for place, lines in ((1, SOURCES), (3, TARGETS)):
        _stdin(monkeypatch, "\n".join(lines) + "\n")
        words = [*flags[:place], "-", *flags[place + 1 :]]
        assert _score(run, *words, "--quiet") == 0
        assert capfd.readouterr().out.split("\n")[:-1] == [f"{one.score:.6f}" for one in expected]
    _stdin(monkeypatch, "a\n")
    assert _score(run, "--src", "-", "--tgt", tmp_path / "tgt") == 3
    assert f"stdin has 1 lines but {tmp_path}/tgt has 9; both sides" in capfd.readouterr().err
    assert _score(run, "--src", "-", "--tgt", "-") == 2
    assert "--src -, --tgt -: stdin is one of them; name a file for the other" in capfd.readouterr().err


def test_a_missing_file_beside_a_stream_is_told_at_once(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the model is loaded and anything is written."""
    _stdin(monkeypatch, "a\tb\n")
    assert _score(run, "-", tmp_path / "missing.tsv") == 3
    out, err = capfd.readouterr()
    assert out == "" and "missing.tsv: cannot be read: No such file" in err
