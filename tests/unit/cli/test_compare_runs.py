"""`compare` of runs through the command: translations made once, both architectures, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from random_run import MODELS, made_up_lines, random_run

from transformer_mt import checkpoint
from transformer_mt.checkpoint import load_run
from transformer_mt.cli.main import main
from transformer_mt.decoding.translator import Translator
from transformer_mt.evaluation.scores import score
from transformer_mt.training.validation import reference_loss

Capture = pytest.CaptureFixture[str]


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two test sets of 6 and 4 pairs, training text, and three runs: a and a2 (Transformers), b (LSTM)."""
    folder = tmp_path_factory.mktemp("runs")
    for number, (name, size) in enumerate([("test", 6), ("sets/two", 4), ("valid", 3), ("train", 30)]):
        write(folder / f"{name}.de", made_up_lines(size, seed=10 + number))
        write(folder / f"{name}.en", made_up_lines(size, seed=20 + number))
    random_run(folder / "a")
    random_run(folder / "a2", seed=5)
    random_run(folder / "b", model=MODELS["lstm"])
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, so that tests do not see each other's translations; the runs' data.root is the original.

    Pages and thousands of trials are for the tests of plain files.
    """
    shutil.copytree(made, tmp_path / "runs")
    monkeypatch.chdir(tmp_path / "runs")
    monkeypatch.setattr("transformer_mt.evaluation.significance.TRIALS", 50)
    monkeypatch.setattr("transformer_mt.evaluation.significance.RESAMPLES", 50)
    monkeypatch.setattr("transformer_mt.evaluation.report.write_report", lambda comparison, path: None)
    return tmp_path / "runs"


def compare(*words: str) -> int:
    return main(["compare", *words, "--device", "cpu"])


def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out/report.json").read_text(encoding="utf-8"))
    return found


def test_a_transformer_and_an_lstm_side_by_side(folder: Path, capsys: Capture) -> None:
    """Pins scores, nats, attention, and facts of both, without a word about which model is which."""
    info = {"parameters": 77, "machine": "m", "threads": 1, "torch": "t", "training_pairs": 30}
    cost = {"steps": 20, "target_tokens": 900, "seconds": 3.0, "peak_gib": 0.5}
    (folder / "a/run.json").write_text(json.dumps({**info, "cost": cost}), encoding="utf-8")
    (folder / "b/run.json").write_text(json.dumps({**info, "threads": 2}), encoding="utf-8")
    point = {"kind": "valid", "step": 20, "nll": 2.0, "bleu": 3.0, "seconds": 3.0, "target_tokens": 900}
    (folder / "a/metrics.jsonl").write_text(json.dumps(point) + "\n", encoding="utf-8")
    assert compare("a", "b", "--output", "out") == 0
    printed, told = capsys.readouterr()
    assert told.count(": translating ") == 4
    found = report()
    assert [one["name"] for one in found["sets"]] == ["test", "sets/two"]
    for test_set, name in zip(found["sets"], ("test", "sets/two"), strict=True):
        sources, references = read(folder / f"{name}.de"), read(folder / f"{name}.en")
        for run, result in zip("ab", test_set["results"], strict=True):
            texts = [one.text for one in Translator.load(folder / run, device="cpu").translate(sources)]
            expected = score(texts, [references], ("bleu", "chrf", "ter"), "en")
            assert [one["value"] for one in result["scores"]] == [one.value for one in expected]
            loaded = load_run(folder / run)
            pairs = list(zip(sources, references, strict=True))
            loss = reference_loss(loaded.model, loaded.tokenizers, pairs, torch.device("cpu"))
            assert loss is not None
            assert result["nats_per_char"] == pytest.approx(loss.nats_per_char)
            assert result["sentences_per_second"] > 0
        assert (
            test_set["rarity_of"]
            == "times that the rarest word of the reference is in the training text of a"
        )
    first, second = found["systems"]
    assert (first["kind"], first["cost"][0]["finished"], first["cost"][0]["step"]) == ("run", True, 20)
    assert (second["cost"][0]["finished"], second["curve"]) == (False, [[]])
    assert found["time_to_bleu"][-1] == {"bleu": 3.0, "seconds": [3.0, None]}
    assert found["warnings"] == [
        "b: training has not come to its end; its costs are those until its last validation",
        "trained with different numbers of threads, so times and rates are not comparable: a 1; b 2",
    ]
    sentence = found["attention"][0]
    assert [one["system"] for one in sentence["maps"]] == ["a", "b"]
    assert sentence["source"] == read(folder / "test.de")[sentence["number"] - 1]
    assert all(sum(row) == pytest.approx(1.0, abs=2e-3) for one in sentence["maps"] for row in one["weights"])
    assert "cost of training" in printed and "warnings\n" in printed


def test_nothing_is_translated_twice(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins that what `evaluate` or an earlier `compare` wrote is used, and gives the same report."""
    assert main(["evaluate", "a", "--device", "cpu"]) == 0
    assert compare("a", "b", "--output", "out") == 0
    told = capsys.readouterr().err
    assert "a: translating" not in told and "b: translating test" in told
    before = report()
    monkeypatch.setattr(Translator, "translate", lambda *_: pytest.fail("translated again"))
    assert compare("a", "b", "--output", "out") == 0
    assert report() == before


def test_without_a_report_no_model_is_loaded_for_its_pictures(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins a second table at the cost of reading what is written down."""
    assert compare("a", "b") == 0
    monkeypatch.setattr(checkpoint, "load_run", lambda *_, **__: pytest.fail("loaded"))
    assert compare("a", "b") == 0
    with pytest.raises(pytest.fail.Exception, match="loaded"):
        compare("a", "b", "--output", "out")


def change_text(folder: Path) -> None:
    (folder / "a/evaluation/test.txt").write_text("x\n" * 6, encoding="utf-8")


def remove_text(folder: Path) -> None:
    (folder / "a/evaluation/test.txt").unlink()


def change_checkpoint(folder: Path) -> None:
    shutil.rmtree(folder / "a/checkpoints")
    shutil.copytree(folder / "a2/checkpoints", folder / "a/checkpoints")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_text, ()),
        (remove_text, ()),
        (change_checkpoint, ()),
        (lambda _: None, ("--beam-size", "1")),
        (lambda _: None, ("--workers", "2")),
        (lambda _: None, ("--data-root", "moved")),
    ],
    ids=[
        "text changed",
        "text gone",
        "other weights of one step",
        "other beam",
        "other workers",
        "other text",
    ],
)
def test_what_was_made_otherwise_is_made_anew(
    change: Any, words: tuple[str, ...], folder: Path, capsys: Capture
) -> None:
    """B178: stale translations under a fresh name; only what has changed is translated again."""
    assert compare("a", "b", "--test", "test", "--workers", "1") == 0
    assert capsys.readouterr().err.count(": translating ") == 2
    write(folder / "moved/test.de", read(folder / "test.de"))
    write(folder / "moved/test.en", [*read(folder / "test.en")[:-1], "other"])
    change(folder)
    assert compare("a", "b", "--test", "test", *words) == 0
    told = capsys.readouterr().err
    assert "a: translating test, 6 lines" in told
    assert ("b: translating" in told) is bool(words)


def test_seeds_are_averaged_and_plain_text_stands_beside_runs(folder: Path, capsys: Capture) -> None:
    """Pins mean, sd, nats over seeds, one cost each; text against the run's own references."""
    write(folder / "copy", read(folder / "test.en"))
    words = ["--test", "test", "--output", "out", "--hyp", "human=copy"]
    assert compare("T=a,b", "a2", *words) == 0
    found = report()
    assert [one["name"] for one in found["systems"]] == ["T", "a2", "human"]
    assert [len(one["cost"]) for one in found["systems"]] == [2, 1, 0]
    first, _, human = found["sets"][0]["results"]
    values = [read(folder / f"{run}/evaluation/test.txt") for run in ("a", "b")]
    expected = [score(texts, [read(folder / "test.en")], ("chrf",), "en")[0].value for texts in values]
    assert first["scores"][1]["values"] == expected and expected[0] != expected[1]
    assert first["scores"][1]["value"] == pytest.approx(sum(expected) / 2)
    nats = [
        json.loads((folder / f"{run}/evaluation/test.json").read_text("utf-8"))["nats_per_char"]
        for run in ("a", "b")
    ]
    assert first["nats_per_char"] == pytest.approx(sum(nats) / 2)
    assert (human["scores"][0]["value"], human["nats_per_char"]) == (pytest.approx(100.0), None)
    assert [one["system"] for one in found["attention"][0]["maps"]] == ["T", "a2"]


def test_different_settings_are_told(folder: Path, capsys: Capture) -> None:
    random_run(folder / "c", decoding={"beam_size": 2, "max_len_a": 0.5, "max_len_b": 4})
    data = {
        "root": str(folder),
        "train": ["train", "valid"],
        "valid": "test",
        "src_lang": "de",
        "tgt_lang": "en",
    }
    random_run(folder / "d", data={**data, "test": ["test", "sets/two"]})
    assert compare("a", "c", "d", "--test", "test", "--output", "out") == 0
    warned = report()["warnings"]
    assert "translated with different beam_size: a 3; c 2; d 3" in warned
    assert "trained on different text: a train; c train; d train, valid" in warned
    assert any(one.startswith("validated on different text, so curves") for one in warned)


def test_speeds_of_other_machines_are_told(folder: Path, capsys: Capture) -> None:
    """Pins that a stored rate knows where it was measured, and that one from before it did is no error."""
    assert compare("a", "b", "--test", "test", "--output", "out") == 0
    assert not any("translated with different" in one for one in report()["warnings"])
    stored = json.loads((folder / "a/evaluation/test.json").read_text(encoding="utf-8"))
    changed = {**stored, "machine": "another", "threads": 77}
    (folder / "a/evaluation/test.json").write_text(json.dumps(changed), encoding="utf-8")
    assert compare("a", "b", "--test", "test", "--output", "out") == 0
    warned = "\n".join(report()["warnings"])
    assert "translated with different machine: a another; b " in warned
    assert "translated with different threads: a 77; b " in warned
    old = {key: value for key, value in stored.items() if key not in ("machine", "threads")}
    (folder / "a/evaluation/test.json").write_text(json.dumps(old), encoding="utf-8")
    assert compare("a", "b", "--test", "test", "--output", "out") == 0
    assert not any("translated with different" in one for one in report()["warnings"])


def test_runs_that_are_no_seeds_of_one_system_are_told(folder: Path, capsys: Capture) -> None:
    """Their mean is that of no system; runs that differ in the seed alone are not mentioned."""
    random_run(folder / "e", seed=6, training={"seed": 6})
    assert compare("S=a,e", "M=a2,b", "--test", "test", "--output", "out") == 0
    (mixed,) = [one for one in report()["warnings"] if "more than the seed" in one]
    assert mixed.startswith("M: its runs differ in more than the seed: ")
    assert "model.architecture" in mixed and "run_dir" not in mixed


def test_without_the_training_text_rare_words_are_left_out(folder: Path, capsys: Capture) -> None:
    for name in ("test.de", "test.en"):
        write(folder / "only" / name, read(folder / name))
    assert compare("a", "b", "--test", "test", "--data-root", "only", "--output", "out") == 0
    (test_set,) = report()["sets"]
    assert test_set["by_rarity"] == []
    assert test_set["rarity_of"].startswith("left out, because the training text of a cannot be read: ")


def run_with(folder: Path, name: str, **data: object) -> None:
    base = {"root": str(folder), "train": "train", "valid": "valid", "src_lang": "de", "tgt_lang": "en"}
    random_run(folder / name, data={**base, **data})


def test_runs_with_other_tests_are_refused(folder: Path, capsys: Capture) -> None:
    """B178: in one line, before anything is translated; --test picks common ones."""
    run_with(folder, "c", test=["test", "valid"])
    run_with(folder, "none")
    assert compare("a", "c") == 2
    message = (
        "c: its test sets are test, valid, but those of a are test, sets/two; choose common ones with --test"
    )
    assert message in capsys.readouterr().err
    assert compare("a", "none") == 2
    assert "none: its test sets are none, but those of a are test, sets/two" in capsys.readouterr().err
    assert compare("a", "c", "--test", "sets/two") == 2
    assert "--test sets/two: the recipe of c has test, valid" in capsys.readouterr().err
    assert compare("a", "c", "--test", "test") == 0


def test_runs_of_other_directions_are_refused(folder: Path, capsys: Capture) -> None:
    run_with(folder, "c", test=["test", "sets/two"], src_lang="en", tgt_lang="de")
    assert compare("a", "c") == 2
    assert "c: translates en to de, but a de to en; compare runs of one direction" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (5, "c: its test set test has 5 lines, but that of a has 6; compare on one text"),
        (6, "c: its test set test differs from that of a in line 6; compare on one text"),
    ],
)
def test_one_name_for_two_texts_is_refused(lines: int, message: str, folder: Path, capsys: Capture) -> None:
    for side in ("de", "en"):
        write(folder / f"other/test.{side}", [*read(folder / f"test.{side}")[:5], "other"][:lines])
    run_with(folder, "c", root=str(folder / "other"), test=["test"])
    assert compare("a", "c", "--test", "test") == 3
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["a", "b", "--hyp", "test.en"],
            2,
            "--hyp is about one set, but the runs have test, sets/two; choose one",
        ),
        (["a", "b", "--scores", "C=c"], 2, "--scores is about one set, but the runs have test, sets/two"),
        (["a", "--hyp", "valid.en", "--test", "test"], 3, "valid.en: has 3 lines, but test set test has 6"),
        (["a", "b", "--ref", "test.en"], 2, "--ref is for plain text alone; runs know their own texts"),
        (["a", "b", "--src-lang", "de"], 2, "--src-lang is for plain text alone"),
        (["a", "b", "--train", "train.en"], 2, "--train is for plain text alone"),
        (["a", "gone"], 5, "gone: no such run directory"),
        (["a", "sets"], 5, "sets: holds no complete checkpoint; train it first"),
        (["a", "a"], 2, "a and a are both named a; tell them apart with NAME=a"),
        (["a", "b", "--beam-size", "0"], 2, "--beam-size"),
    ],
)
def test_what_does_not_go_together_is_refused_before_any_work(
    words: list[str], code: int, message: str, folder: Path, capsys: Capture
) -> None:
    assert compare(*words) == code
    printed, error = capsys.readouterr()
    assert printed == "" and error.count("\n") == 1 and message in error
    assert not (folder / "a/evaluation").exists()


@pytest.mark.parametrize("words", [["compare", "a", "b"], ["evaluate", "."]])
def test_verbs_that_look_at_the_best_alone_take_no_nbest(words: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--nbest", "2"])
    assert "unrecognized arguments: --nbest 2" in capsys.readouterr().err
