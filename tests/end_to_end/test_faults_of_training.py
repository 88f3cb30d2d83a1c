"""Faults of training that users of other toolkits met, tried through the commands."""

from __future__ import annotations

import itertools
import json
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from random_run import made_up_lines
from torch import Tensor

from tests.end_to_end.conftest import WORDS
from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli.main import main
from transformer_mt.data.origin import origins
from transformer_mt.data.prepare import prepare
from transformer_mt.decoding.translator import Translator
from transformer_mt.recipe import load_recipe
from transformer_mt.text.tokenizer import Tokenizer
from transformer_mt.training import step as step_module

MakeTask = Callable[..., Path]


def _of_length(tokenizer: Tokenizer, number: int, how_many: int) -> list[str]:
    """Lines of exactly so many tokens, eos not counted."""
    texts = (" ".join(words) for size in (2, 3, 4, 5) for words in itertools.product(WORDS, repeat=size))
    fit = (text for text in texts if len(tokenizer.encode(text)) == number)
    return list(itertools.islice(fit, how_many))


def test_what_is_shouted_in_training_is_understood(tmp_path: Path) -> None:
    """B062: `data.noise.upper`, the option for letter case: twelve sentences learned by heart are translated
    alike as they were written and in capitals, none of which stands in the training text."""
    words = [line.split()[:4] for line in made_up_lines(16, seed=4)]
    for name, chosen in (("train", words[:12]), ("valid", words[12:])):
        for side, step in (("xx", 1), ("yy", -1)):
            text = "".join(" ".join(line[::step]) + "\n" for line in chosen)
            (tmp_path / f"{name}.{side}").write_text(text, encoding="utf-8")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "run_dir: run\n"
        "data: {train: train, valid: valid, src_lang: xx, tgt_lang: yy, noise: {upper: 0.5}}\n"
        "tokenizer: {type: bpe, vocab_size: 340}\n"
        "model: {d_model: 32, num_heads: 2, d_ff: 64, num_encoder_layers: 1, num_decoder_layers: 1}\n"
        "training: {max_steps: 120, max_tokens: 1024, learning_rate: 1e-2, warmup_steps: 20, dropout: 0,"
        " label_smoothing: 0, save_every: 120, validate_every: 120, metric: nll}\n",
        encoding="utf-8",
    )
    assert main(["train", str(recipe), f"run_dir={tmp_path / 'run'}", "--device", "cpu"]) == 0
    translator = Translator.load(tmp_path / "run", device="cpu", beam_size=1)
    written = [" ".join(line) for line in words[:12]]
    expected = [" ".join(line[::-1]) for line in words[:12]]
    for lines in (written, [line.upper() for line in written]):
        found = [one.text for one in translator.translate(lines)]
        assert sum(map(operator.eq, found, expected)) >= 9


def test_one_length_is_meant_everywhere(copy_task: MakeTask, capsys: pytest.CaptureFixture[str]) -> None:
    """B056, B057: with max_length 10 and as many learned positions a side of 9 tokens and eos is prepared,
    trained on and validated, one token more is dropped and counted; and a validation pair that is too long
    is named, with its length, before anything is trained."""
    recipe = copy_task({"d_ff: 128": "d_ff: 128\n  positions: learned\n  max_positions: 10"})
    first = prepare(load_recipe(recipe, ["model.positions=rotary"]), lambda message: None)
    words = ["data.max_length=10", f"tokenizer.from={first.folder}", "training.max_steps=1"]
    tokenizer = first.tokenizers.src
    short, fits, too_long = (_of_length(tokenizer, number, 3) for number in (6, 9, 10))

    def write(name: str, lines: list[str]) -> None:
        for side in ("xx", "yy"):
            (recipe.parent / f"{name}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")

    write("train", [*short, *fits[:2], too_long[0]])
    write("valid", [fits[2]])
    assert main(["train", str(recipe), *words]) == 0
    data = prepare(load_recipe(recipe, words), lambda message: None)
    assert not data.is_new
    assert data.train.src_lengths.tolist() == [7, 7, 7, 10, 10]
    assert data.report["train"]["dropped"]["longer than max_length"]["count"] == 1
    translator = Translator.load(recipe.parent / "run", device="cpu", max_len_a=0.0, max_len_b=9)
    assert translator.translate([fits[2]])[0].num_src_tokens == 9
    write("valid", [fits[2], too_long[1]])
    capsys.readouterr()
    assert main(["train", str(recipe), *words, f"run_dir={recipe.parent}/second"]) == 3
    assert f"{recipe.parent}/valid.xx:2: has a side of 11 tokens" in capsys.readouterr().err
    assert not (recipe.parent / "second" / "checkpoints").exists()


def _infinite_where(monkeypatch: pytest.MonkeyPatch, poisoned: Callable[[Tensor], bool]) -> None:
    """The loss of micro-batches with such labels, and its gradient, are infinite."""
    fused_loss = step_module.fused_loss

    def loss(hidden: Tensor, weight: Tensor, labels: Tensor, *rest: object, **options: object) -> object:
        loss_sum, nll_sum = fused_loss(hidden, weight, labels, *rest, **options)  # type: ignore[arg-type]
        return (loss_sum * torch.inf if poisoned(labels) else loss_sum), nll_sum

    monkeypatch.setattr(step_module, "fused_loss", loss)


def _append(recipe: Path, line: str) -> None:
    for side in ("xx", "yy"):
        with open(recipe.parent / f"train.{side}", "a", encoding="utf-8") as stream:
            stream.write(line + "\n")


def _progress(recipe: Path, step: int) -> dict[str, Any]:
    state = files.folder_of(recipe.parent / "run", step) / "state.json"
    return dict(json.loads(state.read_text(encoding="utf-8"))["progress"])


def test_one_bad_pair_costs_its_own_updates(copy_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """B085: a pair whose gradient is infinite in every epoch, with fp16: its updates are skipped, counted and
    logged, the optimizer and the schedule of the learning rate do not count them, and training ends well."""
    recipe = copy_task({"precision: fp32": "precision: fp16", "max_tokens: 512": "max_tokens: 900"}, pairs=60)
    _append(recipe, "red 龘")
    bad = prepare(load_recipe(recipe), lambda message: None).tokenizers.tgt.encode("red 龘")[-1]
    _infinite_where(monkeypatch, lambda labels: bool((labels == bad).any()))
    words = ["training.max_steps=12", "training.warmup_steps=12", "training.log_every=1"]
    assert main(["train", str(recipe), *words]) == 0
    skipped = _progress(recipe, 12)["skipped"]
    assert 2 <= skipped <= 8
    log = (recipe.parent / "run" / "train.log").read_text(encoding="utf-8")
    assert log.count("loss or gradient was not finite; the weights were left alone") == skipped
    saved = files.read_checkpoint(files.folder_of(recipe.parent / "run", 12))
    counts = {int(tensor) for name, tensor in saved.state.items() if name.startswith("optimizer.step.")}
    assert counts == {12 - skipped}
    assert all(torch.isfinite(tensor).all() for tensor in saved.weights.values())
    metrics = (recipe.parent / "run" / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
    records = [json.loads(line) for line in metrics if '"train"' in line]
    lost_before = skipped - (records[-1]["grad_norm"] is None)  # as is the rate of a lost last one
    assert records[-1]["learning_rate"] == pytest.approx(3e-3 * (12 - lost_before) / 12)


def test_a_run_without_finite_updates_ends_and_names_its_text(
    copy_task: MakeTask, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """B085: with fp16, 20 skipped updates in a row end training with code 4; file and line of a pair of
    the last batch are in the message, those of all pairs in train.log; the last checkpoint is whole."""
    recipe = copy_task({"precision: fp32": "precision: fp16"}, pairs=60)
    assert main(["train", str(recipe), "training.max_steps=10"]) == 0
    _infinite_where(monkeypatch, lambda labels: True)
    capsys.readouterr()
    assert main(["train", str(recipe), "training.max_steps=100", "training.save_every=100"]) == 4
    error = capsys.readouterr().err.split("\n")[-2]
    assert "diverged at step 30: loss or gradient was not finite in 20 updates in a row" in error
    place = re.search(r"its batch was (\S+/train\.xx):(\d+) and (\d+) pairs more \(train.log", error)
    assert place is not None
    log = (recipe.parent / "run" / "train.log").read_text(encoding="utf-8")
    (named,) = re.findall(r"pairs of step 30: (.*)", log)
    lines = [int(one.rpartition(":")[2]) for one in named.split(", ")]
    assert len(set(lines)) == len(lines) == int(place[3]) + 1
    assert lines[0] == int(place[2])
    assert all(1 <= line <= 60 for line in lines)
    saved = ckpt.newest_valid(recipe.parent / "run")
    assert saved is not None
    assert saved.scalars["step"] == 10
    assert all(torch.isfinite(tensor).all() for tensor in saved.weights.values())


def test_origins_are_the_lines_of_the_text(copy_task: MakeTask) -> None:
    """B085: dropped pairs, several sources and odd characters do not shift them; without the text numbers are
    left."""
    recipe = copy_task(pairs=60)
    _append(recipe, "")
    _append(recipe, "blue \u2581 red")
    for side in ("xx", "yy"):
        (recipe.parent / f"more.{side}").write_text("red\ngreen one\n", encoding="utf-8")
    loaded = load_recipe(recipe, ["data.train=[train, more]"])
    data = prepare(loaded, lambda message: None)
    assert len(data.train) == 63
    found = origins(loaded.data, data.train, data.tokenizers, [62, 0, 60])
    folder = recipe.parent
    assert found == [f"{folder}/more.xx:2", f"{folder}/train.xx:1", f"{folder}/train.xx:62"]
    (folder / "train.xx").unlink()
    assert origins(loaded.data, data.train, data.tokenizers, [62]) == ["example 63 of the prepared data"]
