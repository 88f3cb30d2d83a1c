"""`evaluate` through the command: test sets of a run, and plain files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from random_run import made_up_lines, random_run

from transformer_mt.cli.main import main
from transformer_mt.decoding.translator import Translator
from transformer_mt.evaluation.scores import score


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose data.root holds two test sets of 5 and 3 pairs and a validation set of 4."""
    for number, (name, size) in enumerate([("test", 5), ("sets/two", 3), ("valid", 4)]):
        _write(tmp_path / f"{name}.de", made_up_lines(size, seed=10 + number))
        _write(tmp_path / f"{name}.en", made_up_lines(size, seed=20 + number))
    return random_run(tmp_path / "run")


def test_all_test_sets_of_the_recipe_are_scored_by_name(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B173, B178: each set under its own name; texts are those of `translate`, scores those of the texts."""
    assert main(["evaluate", str(run), "--device", "cpu"]) == 0
    printed = capsys.readouterr().out
    for name, size, stem in [("test", 5, "test"), ("sets/two", 3, "sets%2Ftwo")]:
        sources = (run.parent / f"{name}.de").read_text(encoding="utf-8").split("\n")[:-1]
        references = (run.parent / f"{name}.en").read_text(encoding="utf-8").split("\n")[:-1]
        texts = [item.text for item in Translator.load(run, device="cpu").translate(sources)]
        expected = score(texts, [references], ("bleu", "chrf", "ter"), "en")
        report = json.loads((run / "evaluation" / f"{stem}.json").read_text(encoding="utf-8"))
        assert (run / "evaluation" / f"{stem}.txt").read_bytes().decode().split("\n")[:-1] == texts
        assert [one["value"] for one in report["scores"]] == [one.value for one in expected]
        assert [one["signature"] for one in report["scores"]] == [one.signature for one in expected]
        assert (report["set"], report["sentences"], report["step"]) == (name, size, 20)
        assert report["checkpoint"] == "step_00000020"
        assert report["decoding"]["beam_size"] == 3
        assert report["sentences_per_second"] == pytest.approx(size / report["seconds"], rel=0.05)
        assert f"{name} ({size} lines)\n  BLEU " in printed
        assert all(f"{one.value:6.2f}  {one.signature}" in printed for one in expected)
    assert printed.count("chrF2++") == printed.count("TER ") == 2


def test_one_set_and_decoding_flags_can_be_chosen(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`valid` is a set too; flags override the recipe and are told in the report."""
    assert main(["evaluate", str(run), "--test", "valid", "--beam-size", "1", "--device", "cpu"]) == 0
    report = json.loads((run / "evaluation" / "valid.json").read_text(encoding="utf-8"))
    assert report["decoding"]["beam_size"] == 1
    assert [path.name for path in sorted((run / "evaluation").iterdir())] == ["valid.json", "valid.txt"]
    assert main(["evaluate", str(run), "--test", "tset"]) == 2
    assert f"--test tset: the recipe of {run} has test, sets/two, valid" in capsys.readouterr().err


def test_unequal_or_missing_test_files_end_it_before_translating(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B167, B165: both counts, code 3, and no time spent on the set before."""
    monkeypatch.setattr(Translator, "translate", lambda *_: pytest.fail("translated before all was read"))
    _write(run.parent / "sets" / "two.en", ["one", "two"])
    assert main(["evaluate", str(run), "--device", "cpu"]) == 3
    error = capsys.readouterr().err
    assert "3" in error
    assert "2" in error
    (run.parent / "sets" / "two.en").unlink()
    assert main(["evaluate", str(run), "--device", "cpu"]) == 3
    assert "two" in capsys.readouterr().err


def test_text_cut_into_pieces_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """B161: translations that were never put together again score next to nothing; the file is named."""
    _write(tmp_path / "hyp", ["\u2581a \u2581b \u2581c", "\u2581d"])
    _write(tmp_path / "ref", ["a b c", "d"])
    files = ["--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / "ref")]
    assert main(["evaluate", *files, "--lang", "en"]) == 0
    assert capsys.readouterr().err.startswith(
        f"transformer-mt: warning: 2 of 2 lines of {tmp_path}/hyp hold U+2581"
    )


def test_plain_files_are_scored_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """B176: characters that other programs take for line ends do not misalign; two reference streams."""
    _write(tmp_path / "hyp", ["a b c d e", "f\x0c g h i", "猫"])
    _write(tmp_path / "ref1", ["a b\u2028 c d e", "f g h i", "x"])
    _write(tmp_path / "ref2", ["q", "r", "猫"])
    files = ["--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / "ref1"), str(tmp_path / "ref2")]
    assert main(["evaluate", *files, "--lang", "en"]) == 0
    printed = capsys.readouterr().out
    assert "(3 lines)" in printed
    assert "  BLEU     100.00  nrefs:2|" in printed
    _write(tmp_path / "ref2", ["q", "r"])
    assert main(["evaluate", *files, "--lang", "en"]) == 3
    assert "3 hypotheses but 2 references in stream 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a run directory, or --hyp FILE --ref FILE --lang LANGUAGE"),
        (["--hyp", "h", "--ref", "r"], "but --lang is missing"),
        (["--ref", "r", "--lang", "en"], "but --hyp is missing"),
        (
            ["run", "--hyp", "h", "--ref", "r", "--lang", "en"],
            "give either a run, or --hyp, --ref and --lang",
        ),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_run_without_test_sets_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = {"root": str(tmp_path), "train": "t", "valid": "v", "src_lang": "de", "tgt_lang": "en"}
    run = random_run(tmp_path / "run", data=data)
    assert main(["evaluate", str(run)]) == 2
    assert "names no data.test; use --test valid" in capsys.readouterr().err


def test_scores_of_plain_files_are_written_as_json(tmp_path: Path) -> None:
    """Two reference streams; the file holds what was printed."""
    for name in ("hyp", "one", "two"):
        _write(tmp_path / name, ["a first line of text", f"and one more line {name}"])
    files = [str(tmp_path / name) for name in ("hyp", "one", "two")]
    command = ["evaluate", "--hyp", files[0], "--ref", *files[1:], "--lang", "en"]
    assert main([*command, "--json", str(tmp_path / "scores.json")]) == 0
    report = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    hypotheses, *references = [(tmp_path / n).read_text(encoding="utf-8").split("\n")[:-1] for n in files]
    expected = score(hypotheses, references, ("bleu", "chrf", "ter"), "en")
    assert [one["value"] for one in report["scores"]] == [one.value for one in expected]
    assert report["sentences"] == 2
    assert "nrefs:2" in report["scores"][0]["signature"]


def test_scores_never_overwrite_their_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pins B185 for --json: before any work, and the translations are as they were."""
    for name in ("hyp", "ref"):
        _write(tmp_path / name, ["a line"])
    command = ["evaluate", "--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / "ref"), "--lang", "en"]
    for path, message in [
        ("hyp", "is also the input"),
        ("ref", "is also the input"),
        (".", "is a folder"),
        ("no/x.json", "there is no folder"),
    ]:
        assert main([*command, "--json", str(tmp_path / path)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and "--json " in err and message in err
    assert (tmp_path / "hyp").read_text(encoding="utf-8") == "a line\n"


def test_moved_test_sets_are_found_by_data_root(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run outlives the folder it was trained from."""
    moved = run.parent / "moved"
    moved.mkdir()
    for side in ("de", "en"):
        (run.parent / f"test.{side}").rename(moved / f"test.{side}")
    assert main(["evaluate", str(run), "--test", "test"]) == 3
    capsys.readouterr()
    assert main(["evaluate", str(run), "--test", "test", "--data-root", str(moved)]) == 0
    assert "test (5 lines)" in capsys.readouterr().out


def test_two_names_never_share_a_file(run: Path) -> None:
    """Pins `a/b` and `a_b` writing over each other: the file name spells the name reversibly."""
    from urllib.parse import unquote

    assert main(["evaluate", str(run), "--test", "sets/two"]) == 0
    (path,) = (run / "evaluation").glob("*.json")
    assert unquote(path.stem) == "sets/two"
