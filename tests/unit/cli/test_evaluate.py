"""`evaluate` through the command: test sets of a run, and plain files."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch
from random_run import MODELS, made_up_lines, random_run

from transformer_mt.cli.main import main
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import DataError
from transformer_mt.evaluation.scores import score
from transformer_mt.model.transformer import Transformer


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


def test_a_set_that_does_not_fit_into_the_memory_has_no_score(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B055: one empty line too many would pass for a bad translation."""

    def tight(self: Transformer, src_ids: torch.Tensor, src_mask: torch.Tensor) -> object:
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(Transformer, "encode", tight)
    assert main(["evaluate", str(run), "--device", "cpu", "--test", "test"]) == 3
    assert "5 lines of test do not fit into the memory of cpu, and a score" in capsys.readouterr().err
    assert not list((run / "evaluation").iterdir())


def test_a_line_that_the_model_cannot_take_is_named_with_its_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pins a bare `line 2`, of whichever of the sets."""
    data = {"train": "train", "valid": "valid", "test": ["test"], "src_lang": "de", "tgt_lang": "en"}
    sizes = {**MODELS["transformer"], "positions": "learned", "max_positions": 40}
    run = random_run(tmp_path / "run", model=sizes, data={**data, "root": str(tmp_path), "max_length": 40})
    _write(tmp_path / "test.de", ["ab", "x" * 99])
    _write(tmp_path / "test.en", ["ab", "x"])
    assert main(["evaluate", str(run), "--no-split-long"]) == DataError.exit_code
    assert re.search(rf"error: {run}: test set test, line 2: has 1\d\d tokens", capsys.readouterr().err)


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
    assert f"/ref2: has 2 lines, but {tmp_path}/hyp has 3; line by line" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a run directory, or --hyp FILE --ref FILE --lang LANGUAGE"),
        (["--hyp", "h", "--ref", "r"], "but --lang is missing; add --lang and the code of their language"),
        (["--ref", "r", "--lang", "en"], "but --hyp is missing; add its FILE"),
        (
            [".", "--hyp", "h", "--ref", "r", "--lang", "en"],
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


def test_chinese_files_get_their_tokenizer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """B164: 57.55 by characters where the usual tokenizer finds 0; the signature says which it was."""
    _write(tmp_path / "hyp", ["我今天去学校上课。", "他昨天买了一本新书。", "天气很好。"])
    _write(tmp_path / "ref", ["我今天去学校学习。", "他昨天买了一本旧书。", "天气非常好。"])
    files = ["--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / "ref")]
    for language in ("zh", "zh-CN"):
        assert main(["evaluate", *files, "--lang", language]) == 0
        printed = capsys.readouterr().out
        assert "  BLEU      57.55  nrefs:1|" in printed and "|tok:zh|" in printed


@pytest.mark.parametrize("language", ["ja", "ko_KR"])
def test_a_missing_tokenizer_is_told_before_translating(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    """B165: what is missing, what to install and what is done instead, before the work and not after it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    data = {"root": str(tmp_path), "train": "t", "valid": "v", "test": "t", "src_lang": "de"}
    run = random_run(tmp_path / "run", data={**data, "tgt_lang": language})
    for side in ("de", language):
        _write(tmp_path / f"t.{side}", made_up_lines(3, seed=1))
    told = f"so BLEU compares characters of {language[:2]} (tok:char); for words: pip install 'sacrebleu["
    translate = Translator.translate

    def watched(*args: Any) -> Any:
        assert told in capsys.readouterr().err
        return translate(*args)

    monkeypatch.setattr(Translator, "translate", watched)
    assert main(["evaluate", str(run), "--device", "cpu"]) == 0
    assert "|tok:char|" in capsys.readouterr().out
    files = ["--hyp", str(tmp_path / "t.de"), "--ref", str(tmp_path / f"t.{language}")]
    assert main(["evaluate", *files, "--lang", language]) == 0
    captured = capsys.readouterr()
    assert told in captured.err and "  BLEU     100.00  nrefs:1|" in captured.out


@pytest.mark.parametrize("side", ["hyp", "ref"])
def test_tokenised_text_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], side: str) -> None:
    """B166: on stderr and in the file, whichever side it is; plain text says nothing."""
    plain = [f"{line}." for line in made_up_lines(100, seed=4)]
    _write(tmp_path / "plain", plain)
    _write(tmp_path / "tokenised", [f"{line[:-1]} ." for line in plain])
    paths = {"hyp": tmp_path / "plain", "ref": tmp_path / "plain", side: tmp_path / "tokenised"}
    out = tmp_path / "scores.json"
    words = ["--hyp", str(paths["hyp"]), "--ref", str(paths["ref"]), "--lang", "en", "--json", str(out)]
    assert main(["evaluate", *words]) == 0
    told = f"{tmp_path / 'tokenised'} looks tokenised: 100 of 100 lines end in a full stop by itself"
    captured = capsys.readouterr()
    assert captured.err == f"transformer-mt: warning: {told}; score text as people read it\n"
    assert "looks tokenised" not in captured.out
    (remark,) = json.loads(out.read_text(encoding="utf-8"))["remarks"]
    assert remark.startswith(told)
    words[1] = words[3] = str(tmp_path / "plain")
    assert main(["evaluate", *words]) == 0
    assert capsys.readouterr().err == ""
    assert json.loads(out.read_text(encoding="utf-8"))["remarks"] == []


def test_a_run_whose_references_are_tokenised_says_so(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """B166: also for the test sets of a run."""
    _write(run.parent / "test.en", [f"{line} ." for line in made_up_lines(5, seed=9)])
    assert main(["evaluate", str(run), "--test", "test", "--device", "cpu"]) == 0
    assert "warning: the reference looks tokenised: 5 of 5 lines" in capsys.readouterr().err
    report = json.loads((run / "evaluation" / "test.json").read_text(encoding="utf-8"))
    assert len(report["remarks"]) == 1


@pytest.mark.parametrize("size", [1, 2, 64])
def test_scores_are_of_the_whole_set(run: Path, size: int) -> None:
    """B171: however many sentences are translated together, BLEU is that of the whole text."""
    words = ["--test", "test", "--batch-size", str(size), "--device", "cpu"]
    assert main(["evaluate", str(run), *words]) == 0
    report = json.loads((run / "evaluation" / "test.json").read_text(encoding="utf-8"))
    texts, references = (
        path.read_text(encoding="utf-8").split("\n")[:-1]
        for path in (run / "evaluation" / "test.txt", run.parent / "test.en")
    )
    found = {one["name"]: one["value"] for one in report["scores"]}
    assert found["bleu"] == sacrebleu.corpus_bleu(texts, [references]).score
    assert found["chrf"] == sacrebleu.corpus_chrf(texts, [references], word_order=2).score


@pytest.mark.parametrize(("hypotheses", "references"), [(3, 5), (5, 3)])
def test_files_of_unequal_length_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hypotheses: int, references: int
) -> None:
    """B167: both counts and no score, though the first three lines are equal."""
    _write(tmp_path / "hyp", ["a b c d"] * hypotheses)
    _write(tmp_path / "ref", ["a b c d"] * references)
    words = ["--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / "ref"), "--lang", "en"]
    assert main(["evaluate", *words, "--json", str(tmp_path / "out.json")]) == 3
    captured = capsys.readouterr()
    message = (
        f"/ref: has {references} lines, but {tmp_path}/hyp has {hypotheses}; line by line they must be the"
    )
    assert message in captured.err
    assert captured.out == "" and not (tmp_path / "out.json").exists()


def test_line_ends_of_other_programs_are_spaces_to_the_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B176: three lines with U+2028, form feed and NEL in them score as with spaces there."""
    hyp, ref = ["a b c d", "e\x0cf g h i", "j k l m"], ["a b\u2028c d", "e f g h i", "j k\x85l m x"]
    printed = []
    for number, change in enumerate([str, lambda text: " ".join(text.split())]):
        _write(tmp_path / "hyp", [change(text) for text in hyp])
        _write(tmp_path / "ref", [change(text) for text in ref])
        words = ["--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / "ref"), "--lang", "en"]
        assert main(["evaluate", *words]) == 0, number
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] and "(3 lines)" in printed[0]
