"""Training through the command: it learns, stops, continues bit for bit, and refuses what it must."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sacrebleu
import safetensors.torch
import torch

from tests.end_to_end.conftest import LSTM
from tests.small_runs import held
from transformer_mt import checkpoint as ckpt
from transformer_mt import checkpoint_files as files
from transformer_mt.cli.main import main


def metrics(run_dir: Path, kind: str) -> list[dict[str, float]]:
    lines = (run_dir / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
    records = [json.loads(line) for line in lines if line]
    return [record for record in records if record["kind"] == kind]


def assert_same_checkpoint(one: Path, other: Path) -> None:
    for name in ("model.safetensors", "state.safetensors"):
        ours, theirs = (safetensors.torch.load_file(folder / name) for folder in (one, other))
        assert ours.keys() == theirs.keys()
        different = [key for key in ours if not torch.equal(ours[key], theirs[key])]
        assert not different


@pytest.mark.slow
def test_copy_task_is_learned(copy_task, capsys):
    """The whole road on a task whose answer is known: perplexity <= 1.02 and 98% of lines exact."""
    recipe = copy_task(
        {
            "max_steps: 20": "max_steps: 1000",
            "max_tokens: 512": "max_tokens: 1024\n  label_smoothing: 0.0\n  schedule: cosine",
            "dropout: 0.1": "dropout: 0.0",
            "save_every: 10": "save_every: 1000",
            "validate_every: 10": "validate_every: 1000",
        },
        pairs=6000,
        num_valid=200,
    )
    assert main(["train", str(recipe)]) == 0
    run_dir = recipe.parent / "run"
    last = metrics(run_dir, "valid")[-1]
    assert last["ppl"] <= 1.02
    capsys.readouterr()
    source = recipe.parent / "valid.xx"
    assert main(["translate", str(run_dir), str(source)]) == 0
    translations = capsys.readouterr().out.split("\n")
    expected = source.read_text(encoding="utf-8").split("\n")
    exact = sum(ours == theirs for ours, theirs in zip(translations, expected, strict=True))
    assert exact >= 0.98 * len(expected)


@pytest.mark.parametrize("model", [{}, LSTM], ids=["transformer", "lstm"])
def test_run_directory_has_everything(copy_task, model):
    recipe = copy_task(model)
    assert main(["train", str(recipe)]) == 0
    run_dir = recipe.parent / "run"
    present = {entry.name for entry in run_dir.iterdir()}
    assert present >= {
        "config.yaml",
        "run.json",
        "train.log",
        "metrics.jsonl",
        "tensorboard",
        "samples",
        "checkpoints",
        "latest.json",
        "best.json",
        "README.md",
    }
    assert [record["step"] for record in metrics(run_dir, "train")] == [5, 10, 15, 20]
    assert [record["step"] for record in metrics(run_dir, "valid")] == [10, 20]
    assert ckpt.saved_steps(run_dir) == [10, 20]
    samples = (run_dir / "samples" / "step_00000020.tsv").read_text(encoding="utf-8").split("\n")
    assert samples[0] == "source\treference\ttranslation"
    assert len(samples) == 22
    info = json.loads((run_dir / "run.json").read_text(encoding="utf-8"))
    run = ckpt.load_run(run_dir, "latest")
    assert info["parameters"] == sum(weight.numel() for weight in run.model.parameters())
    assert run.trained_on.src_tokens < run.recipe.data.max_length
    assert (run.trained_on.sentences, run.trained_on.usual) == (1, ("copy",))
    record = metrics(run_dir, "train")[-1]
    assert 0.0 < record["padding"] < 0.5
    assert record["tokens_per_second"] > 0.0
    (events,) = (run_dir / "tensorboard").glob("events*")
    assert events.read_bytes().count(b"attention/2") >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {
            "precision: fp32": "precision: bf16\n  ema: 0.9\n  update_freq: 2",
            "type: bpe": "type: bpe\n  sampling: 0.2",
        },
        {"precision: fp32": "precision: fp16\n  gradient_checkpointing: true\n  attention_dropout: 0.1"},
        {
            **LSTM,
            "precision: fp32": "precision: bf16\n  ema: 0.9\n  gradient_checkpointing: true",
        },
    ],
)
def test_stopped_and_continued_equals_not_stopped(copy_task, settings):
    """Bitwise: weights, moments, averages, metrics after a SIGTERM at any moment (B100, B102, B186).

    The signal goes to the processes that build batches too, as that of a batch system or Ctrl-C does.
    """
    whole, parts = copy_task(settings), copy_task(settings)
    assert main(["train", str(whole)]) == 0
    command = [sys.executable, "-m", "transformer_mt", "train", str(parts), "training.log_every=1"]
    command.append("training.workers=2")
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, encoding="utf-8", start_new_session=True
    )
    for line in process.stderr:
        if line.startswith("step 7/"):
            os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(60) == 143
    stopped_at = ckpt.saved_steps(parts.parent / "run")[-1]
    assert 7 <= stopped_at < 20
    assert main(["train", str(parts)]) == 0
    run_dirs = whole.parent / "run", parts.parent / "run"
    assert_same_checkpoint(*(files.folder_of(run_dir, 20) for run_dir in run_dirs))
    ours, theirs = (metrics(run_dir, "valid") for run_dir in run_dirs)
    for one, other in zip(ours, theirs, strict=True):
        assert {k: v for k, v in one.items() if k not in ("time", "seconds")} == {
            k: v for k, v in other.items() if k not in ("time", "seconds")
        }
    steps = [record["step"] for record in metrics(run_dirs[1], "train")]
    assert steps == sorted(set(steps))


def test_continuing_after_a_lost_checkpoint_rewrites_the_metrics_once(copy_task):
    """A run whose newest checkpoint is damaged goes on from the one before; no step appears twice."""
    recipe = copy_task()
    assert main(["train", str(recipe)]) == 0
    run_dir = recipe.parent / "run"
    before = metrics(run_dir, "train")
    # Loaded from bytes: a mapped file would change under the tensors.
    whole = safetensors.torch.load((files.folder_of(run_dir, 20) / "model.safetensors").read_bytes())
    weights = files.folder_of(run_dir, 20) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    assert main(["train", str(recipe)]) == 0
    after = metrics(run_dir, "train")
    timing = {"time", "tokens_per_second", "peak_gib"}
    assert [{k: v for k, v in r.items() if k not in timing} for r in after] == [
        {k: v for k, v in r.items() if k not in timing} for r in before
    ]
    again = safetensors.torch.load_file(weights)
    assert all(torch.equal(again[name], whole[name]) for name in whole)


@pytest.mark.parametrize("model", [{}, LSTM], ids=["transformer", "lstm"])
def test_validation_best_and_evaluate_agree(copy_task, model):
    """B164, B173, B175: validation with other weights, beam, references or BLEU tokenizer than `evaluate` of
    the best one, or of pieces instead of text."""
    learning = {"learning_rate: 3e-3": "learning_rate: 3e-3\n  ema: 0.9\n  metric: chrf"}
    recipe = copy_task({**model, **learning, "tgt_lang: yy": "tgt_lang: zh"}, num_valid=10)
    for path in recipe.parent.glob("*.yy"):
        path.rename(path.with_suffix(".zh"))
    assert main(["train", str(recipe)]) == 0
    run_dir = recipe.parent / "run"
    assert main(["evaluate", str(run_dir), "--test", "valid"]) == 0
    report = json.loads((run_dir / "evaluation" / "valid.json").read_text(encoding="utf-8"))
    evaluated = {score["name"]: score["value"] for score in report["scores"]}
    best = json.loads((run_dir / "best.json").read_text(encoding="utf-8"))
    (validated,) = [record for record in metrics(run_dir, "valid") if record["step"] == best["step"]]
    assert report["step"] == best["step"]
    assert evaluated["chrf"] == validated["chrf"] == best["value"] > 0.0
    assert evaluated["bleu"] == validated["bleu"]
    described = json.loads((run_dir / "run.json").read_text(encoding="utf-8"))
    signatures = {one["name"]: one["signature"] for one in report["scores"]}
    assert described["signatures"] == {name: signatures[name] for name in ("bleu", "chrf")}
    assert "|tok:zh|" in described["signatures"]["bleu"]
    texts, references = (
        path.read_text(encoding="utf-8").split("\n")[:-1]
        for path in (run_dir / "evaluation" / "valid.txt", recipe.parent / "valid.zh")
    )
    assert validated["bleu"] == sacrebleu.corpus_bleu(texts, [references], tokenize="zh").score
    card = (run_dir / "README.md").read_text(encoding="utf-8")
    assert f"- valid, step {best['step']}: chrf {evaluated['chrf']:.2f} (" in card


def test_what_makes_scores_incomparable_is_told_first(copy_task, capsys, monkeypatch):
    """B165, B166: no MeCab for Japanese, and validation text that was tokenised; a dry run says so too."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    recipe = copy_task({"tgt_lang: yy": "tgt_lang: ja"}, pairs=100, num_valid=5)
    for path in recipe.parent.glob("*.yy"):
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        path.with_suffix(".ja").write_text("".join(f"{line} .\n" for line in lines), encoding="utf-8")
    assert main(["train", str(recipe), "--dry-run", "tokenizer.vocab_size=290"]) == 0
    error = capsys.readouterr().err
    assert "pip install 'sacrebleu[ja]'" in error
    assert "warning: validation text looks tokenised: 5 of 5 lines" in error


def test_finished_run_says_so_and_changes_nothing(copy_task, capsys):
    """Pins a finished run that writes another final checkpoint (B104, B105) or forgets what it cost."""
    recipe = copy_task()
    assert main(["train", str(recipe)]) == 0
    folder = files.folder_of(recipe.parent / "run", 20)
    stamp = (folder / "manifest.json").stat().st_mtime_ns
    described = (recipe.parent / "run" / "run.json").read_bytes()
    assert b"signatures" in described
    capsys.readouterr()
    assert main(["train", str(recipe)]) == 0
    assert "already finished at step 20: training.max_steps is 20; raise it" in capsys.readouterr().err
    assert (folder / "manifest.json").stat().st_mtime_ns == stamp
    assert (recipe.parent / "run" / "run.json").read_bytes() == described
    assert main(["train", str(recipe), "training.max_steps=22"]) == 0
    assert ckpt.saved_steps(recipe.parent / "run")[-1] == 22
    log = (recipe.parent / "run" / "train.log").read_text(encoding="utf-8")
    assert "continuing with training.max_steps: 20 -> 22" in log


def test_another_recipe_or_other_data_are_refused(copy_task, capsys):
    """Pins a mixture of old and new settings (B106, B188)."""
    recipe = copy_task()
    assert main(["train", str(recipe)]) == 0
    weights = files.folder_of(recipe.parent / "run", 20) / "model.safetensors"
    before = weights.read_bytes()
    capsys.readouterr()
    assert main(["train", str(recipe), "model.d_ff=96", "training.seed=2"]) == 2
    error = capsys.readouterr().err
    assert "belongs to another configuration (model.d_ff: 128 -> 96, training.seed: 1 -> 2)" in error
    assert "--overwrite" in error
    with open(recipe.parent / "train.xx", "a", encoding="utf-8") as stream:
        stream.write("one more\n")
    with open(recipe.parent / "train.yy", "a", encoding="utf-8") as stream:
        stream.write("one more\n")
    assert main(["train", str(recipe)]) == 2
    assert "was trained on other data" in capsys.readouterr().err
    assert weights.read_bytes() == before
    assert main(["train", str(recipe), "--overwrite", "training.max_steps=10"]) == 0
    assert ckpt.saved_steps(recipe.parent / "run") == [10]


def test_another_architecture_neither_continues_nor_starts_a_run(copy_task, tmp_path, capsys):
    """One line that names the architectures, not the first weight that is missing; nothing is changed."""
    recipe, other = copy_task(), copy_task(LSTM)
    assert main(["train", str(recipe), "training.max_steps=1"]) == 0
    run_dir = recipe.parent / "run"
    before = {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert main(["train", str(other), f"run_dir={run_dir}"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "belongs to another configuration (model.architecture: 'transformer' -> 'lstm', " in error
    assert main(["train", str(other), f"run_dir={tmp_path / 'new'}", "--init-from", str(run_dir)]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "run: is a transformer, but model.architecture of this recipe is lstm; " in error
    assert {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()} == before


def test_a_rehearsal_and_doctor_know_an_lstm(copy_task, capsys):
    """Through the commands: what --dry-run reports, and what doctor says of the run that follows."""
    recipe = copy_task(LSTM, pairs=120)
    assert main(["train", str(recipe), "--dry-run"]) == 0
    report = capsys.readouterr().out
    assert "one update: finite" in report
    assert main(["train", str(recipe), "training.max_steps=1"]) == 0
    assert main(["doctor", str(recipe.parent / "run")]) == 0
    assert "FAULT" not in capsys.readouterr().out
    parameters = json.loads((recipe.parent / "run" / "run.json").read_text(encoding="utf-8"))["parameters"]
    assert f"parameters         {parameters:,} " in report


def test_overwrite_leaves_a_folder_that_is_no_run_alone(copy_task, capsys):
    recipe = copy_task()
    run_dir = recipe.parent / "run"
    run_dir.mkdir()
    (run_dir / "thesis.tex").write_text("years of work", encoding="utf-8")
    assert main(["train", str(recipe), "--overwrite"]) == 2
    assert "is not a run directory (it holds thesis.tex)" in capsys.readouterr().err
    assert (run_dir / "thesis.tex").exists()


def test_checkpoints_without_run_json_or_config_are_refused(copy_task, capsys):
    """Without run.json nobody looked whether the text had changed."""
    recipe = copy_task(pairs=60, num_valid=3)
    assert main(["train", str(recipe), "training.max_steps=1"]) == 0
    (recipe.parent / "run" / "run.json").unlink()
    assert main(["train", str(recipe), "training.max_steps=2"]) == 5
    assert "run.json: is missing, and nothing else says what" in capsys.readouterr().err
    (recipe.parent / "run" / "config.yaml").unlink()
    assert main(["train", str(recipe), "training.max_steps=2"]) == 5
    assert "holds checkpoints but no config.yaml; put back" in capsys.readouterr().err


@pytest.mark.parametrize("model", [{}, LSTM], ids=["transformer", "lstm"])
def test_fine_tuning_starts_from_the_weights_with_a_fresh_best(copy_task, tmp_path, model):
    """Pins an inherited best score (B123): the new run has steps, best and optimizer of its own."""
    recipe = copy_task(model)
    assert main(["train", str(recipe)]) == 0
    old = recipe.parent / "run"
    new = tmp_path / "tuned"
    command = ["train", str(recipe), "--init-from", str(old), f"run_dir={new}", "training.max_steps=1"]
    assert main([*command, "training.learning_rate=1e-12", "training.warmup_steps=0"]) == 0
    start = ckpt.load_run(old)
    tuned = ckpt.load_run(new)
    for ours, theirs in zip(start.model.parameters(), tuned.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8)
    assert json.loads((new / "best.json").read_text(encoding="utf-8"))["step"] == 1
    assert tuned.tokenizers.src.fingerprint == start.tokenizers.src.fingerprint


def test_init_from_another_tokenizer_is_refused(copy_task, tmp_path, capsys):
    recipe, other = copy_task(), copy_task({"vocab_size: 310": "vocab_size: 305"})
    assert main(["train", str(other), "training.max_steps=1"]) == 0
    command = ["train", str(recipe), "--init-from", str(other.parent / "run")]
    assert main(["train", str(recipe), "training.max_steps=1"]) == 0
    own = recipe.parent / "run"
    assert main([*command, f"run_dir={tmp_path / 'new'}", f"tokenizer.from={own}"]) == 2
    assert "its tokenizer is not the one of this recipe" in capsys.readouterr().err


def test_a_start_that_fails_does_not_cost_the_old_run(copy_task, capsys):
    """Pins --overwrite that deletes a run, or the one to start from, before it knows that it can start."""
    recipe = copy_task()
    run_dir = recipe.parent / "run"
    assert main(["train", str(recipe), "training.max_steps=10"]) == 0
    before = {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}
    capsys.readouterr()
    command = ["train", str(recipe), "--overwrite", "--init-from"]
    assert main([*command, str(run_dir)]) == 2
    assert "lies in run_dir" in capsys.readouterr().err
    assert main([*command, str(recipe.parent / "nowhere")]) == 5
    assert "nowhere: no such run directory" in capsys.readouterr().err
    wider = copy_task({"d_ff: 128": "d_ff: 96"})
    assert main(["train", str(wider), "training.max_steps=1"]) == 0
    assert main([*command, str(wider.parent / "run")]) == 5
    assert "does not fit its config" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()} == before


def test_auto_precision_is_decided_once(copy_task, monkeypatch):
    """Pins a run that another machine refuses to continue because its `auto` would be another."""
    from transformer_mt.runtime import device

    recipe = copy_task({"precision: fp32": "precision: auto"})
    monkeypatch.setattr(device, "bf16_features", list)
    assert main(["train", str(recipe), "training.max_steps=10"]) == 0
    monkeypatch.setattr(device, "bf16_features", lambda: ["amx_bf16"])
    assert main(["train", str(recipe), "training.max_steps=11"]) == 0
    assert ckpt.load_run(recipe.parent / "run", "latest").recipe.training.precision == "fp32"


def test_pointers_and_rotation_follow_the_run_after_a_roll_back(copy_task):
    """Pins damaged later checkpoints that displace the one just written, and pointers a kill left behind."""
    recipe = copy_task()
    run_dir = recipe.parent / "run"
    assert main(["train", str(recipe), "training.max_steps=10"]) == 0
    later = files.folder_of(run_dir, 30)
    shutil.copytree(files.folder_of(run_dir, 10), later)
    (later / "model.safetensors").write_bytes(b"cut")
    (run_dir / "best.json").unlink()
    (run_dir / "latest.json").write_text('{"step": 30}', encoding="utf-8")
    assert main(["train", str(recipe), "training.max_steps=10"]) == 0
    assert json.loads((run_dir / "best.json").read_text(encoding="utf-8"))["step"] == 10
    assert ckpt.find_checkpoint(run_dir, "latest") == files.folder_of(run_dir, 10)
    assert main(["train", str(recipe), "training.max_steps=12", "training.keep_last=1"]) == 0
    assert 12 in ckpt.saved_steps(run_dir)
    assert ckpt.find_checkpoint(run_dir, "latest") == files.folder_of(run_dir, 12)


def test_validation_text_too_long_for_learned_positions_is_refused_at_once(copy_task, capsys):
    """Pins a crash at the first validation, after hours (B057)."""
    recipe = copy_task({"d_ff: 128": "d_ff: 128\n  positions: learned\n  max_positions: 40"})
    text = recipe.read_text(encoding="utf-8").replace("  valid: valid", "  valid: valid\n  max_length: 40")
    recipe.write_text(text, encoding="utf-8")
    for side, line in (("xx", "red"), ("yy", "red " * 60)):
        with open(recipe.parent / f"valid.{side}", "a", encoding="utf-8") as stream:
            stream.write(line + "\n")
    for command in (["train", str(recipe)], ["train", str(recipe), "--dry-run"]):
        assert main(command) == 3
        assert f"{recipe.parent}/valid.xx:41: has a side of " in capsys.readouterr().err


def test_two_processes_cannot_train_in_one_directory(copy_task, capsys):
    recipe = copy_task()
    with held(recipe.parent / "run"):
        assert main(["train", str(recipe)]) == 5
    assert "another process is training in it" in capsys.readouterr().err


def test_full_disk_ends_with_one_line_and_the_last_checkpoint_stays(copy_task, capsys, monkeypatch):
    recipe = copy_task()
    assert main(["train", str(recipe), "training.max_steps=10"]) == 0
    usage = shutil.disk_usage(recipe.parent)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    capsys.readouterr()
    assert main(["train", str(recipe)]) == 5
    assert "the checkpoint cannot be written" in capsys.readouterr().err
    assert ckpt.newest_valid(recipe.parent / "run").step == 10


def test_divergence_is_caught_with_its_exit_code(copy_task, capsys, monkeypatch):
    """Non-finite updates in a row end training with exit code 4 (B085); nothing of them is saved."""
    from transformer_mt.training import step as step_module

    recipe = copy_task()
    assert main(["train", str(recipe), "training.max_steps=10"]) == 0

    def broken(hidden, *rest, padded):
        loss = hidden.sum() * float("nan")
        return loss, loss.detach()

    monkeypatch.setattr(step_module, "fused_loss", broken)
    assert main(["train", str(recipe), "training.max_steps=100", "training.save_every=100"]) == 4
    told = capsys.readouterr().err
    assert (
        "diverged at step 30: loss or gradient was not finite in 20 updates in a row; the loss is the" in told
    )
    assert "the same command goes back to" in told
    assert "step_00000010: give it a smaller training.learning_rate" in told
    pairs = re.search(r"its batch was (\S+:\d+) and (\d+) pairs more", told)
    assert pairs is not None
    named = re.search(r"pairs of step 30: (.*)", (recipe.parent / "run" / "train.log").read_text())
    assert named is not None
    assert named[1].split(", ")[0] == pairs[1]
    assert len(named[1].split(", ")) == int(pairs[2]) + 1
    assert ckpt.saved_steps(recipe.parent / "run") == [10]


def test_perplexity_beyond_all_reason_is_a_divergence(copy_task, capsys):
    """Pins weights that left all reason, but not the finite numbers: exit code 4 long before a validation."""
    recipe = copy_task({"learning_rate: 3e-3": "learning_rate: 30"})
    words = ["train", str(recipe), "training.warmup_steps=4", "training.validate_every=100"]
    assert main([*words, "training.max_steps=100", "training.schedule=constant"]) == 4
    told = capsys.readouterr().err
    assert re.search(
        r"diverged at step \d+: perplexity is \S+ after warm-up, more than twice the voc", told
    ), told


def test_a_training_that_diverges_goes_back_and_on_with_half_the_rate(copy_task, monkeypatch):
    """What was recorded of the lost updates is cut off; nothing was saved while no update could be made."""
    from transformer_mt.training.step import Updater

    recipe = copy_task()
    run, update, rates = recipe.parent / "run", Updater.run, {}

    def diverging(self, step, batches, **more):
        rates.setdefault(step, []).append(more["rate_factor"])
        result = update(self, step, batches, **more)
        wrong = step > 12 and more["rate_factor"] == 1.0
        return dataclasses.replace(result, applied=False, loss_sum=math.nan) if wrong else result

    monkeypatch.setattr(Updater, "run", diverging)
    words = ["train", str(recipe), "training.max_steps=50", "training.max_rollbacks=1"]
    assert main([*words, "training.validate_every=100"]) == 0
    told = (run / "train.log").read_text(encoding="utf-8")
    assert "diverged at step 32: loss or gradient was not finite in 20 updates in a row" in told
    assert "goes back to step 10, and on with 1/2 of the learning rate" in told
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [record["step"] for record in records if record["kind"] == "train"]
    assert steps == list(range(5, 51, 5))
    assert rates[10] == [1.0]
    assert rates[11] == rates[32] == [1.0, 0.5]
    assert rates[50] == [0.5]


def test_a_checkpoint_that_was_due_amid_skipped_updates_is_saved_after_them(copy_task, monkeypatch):
    """One update of fp16 that is skipped, as its scale comes down, must not cost a checkpoint."""
    from transformer_mt.training.step import Updater

    recipe = copy_task()
    update = Updater.run

    def skipping(self, step, batches, **more):
        result = update(self, step, batches, **more)
        return dataclasses.replace(result, applied=False, loss_sum=math.nan) if step in {4, 5} else result

    monkeypatch.setattr(Updater, "run", skipping)
    words = ["train", str(recipe), "training.max_steps=9", "training.save_every=4"]
    assert main([*words, "training.validate_every=100"]) == 0
    assert ckpt.saved_steps(recipe.parent / "run") == [6, 8, 9]


def test_weights_that_run_away_in_warm_up_are_not_saved(copy_task, monkeypatch):
    """Perplexity is no divergence in warm-up, but where it is absurd there is nothing to keep."""
    from transformer_mt.training.step import Updater

    recipe = copy_task()
    update = Updater.run

    def running_away(self, step, batches, **more):
        result = update(self, step, batches, **more)
        worse = 2.1 * math.log(310) * result.num_tokens
        return dataclasses.replace(result, nll_sum=worse) if step in {4, 5} else result

    monkeypatch.setattr(Updater, "run", running_away)
    words = [
        "train",
        str(recipe),
        "training.max_steps=9",
        "training.save_every=4",
        "training.warmup_steps=50",
    ]
    assert main([*words, "training.validate_every=100"]) == 0
    assert ckpt.saved_steps(recipe.parent / "run") == [6, 8, 9]


def test_patience_ends_training(copy_task, capsys):
    """With a learning rate too small to change anything no second validation is better: patience 1 ends."""
    recipe = copy_task(
        {"learning_rate: 3e-3": "learning_rate: 1e-30\n  patience: 1\n  metric: nll\n  weight_decay: 0.0"}
    )
    assert main(["train", str(recipe), "training.max_steps=200", "training.validate_every=5"]) == 0
    run_dir = recipe.parent / "run"
    assert [record["step"] for record in metrics(run_dir, "valid")] == [5, 10]
    assert json.loads((run_dir / "best.json").read_text(encoding="utf-8"))["step"] == 5
    assert ckpt.saved_steps(run_dir) == [5, 10]
    again = ["train", str(recipe), "training.max_steps=200", "training.validate_every=5"]
    assert main(again) == 0
    assert "already finished at step 10: training.patience is 1; raise it" in capsys.readouterr().err


def test_print_config_reads_back(copy_task, capsys, tmp_path):
    from transformer_mt.recipe import load_recipe

    recipe = copy_task()
    assert main(["train", str(recipe), "--print-config", "training.seed=5"]) == 0
    printed = tmp_path / "printed.yaml"
    printed.write_text(capsys.readouterr().out, encoding="utf-8")
    assert load_recipe(printed) == load_recipe(recipe, ["training.seed=5"])


@pytest.mark.slow
def test_dry_run_estimates_hold(copy_task, cli):
    """Memory, tokens and wall time of 200 updates, validation not counted: within 25% of 200 real ones.

    In processes of their own, because a process knows only the peak of its whole life. Both are timed on the
    same busy machine, so the test takes the best of five tries.
    """
    for _ in range(5):
        recipe = copy_task({"log_every: 5": "log_every: 200"}, pairs=3000)
        rehearsal = cli("train", recipe, "--dry-run")
        assert rehearsal.returncode == 0, rehearsal.stderr
        report = rehearsal.stdout
        speed = float(report.split("(")[-1].split(" tokens/s")[0].replace(",", ""))
        assert not (recipe.parent / "run").exists()
        long = ["training.max_steps=200", "training.validate_every=200", "training.save_every=200"]
        assert cli("train", recipe, *long).returncode == 0
        measured = metrics(recipe.parent / "run", "train")[-1]
        if abs(measured["tokens_per_second"] / speed - 1.0) <= 0.25:
            break
    assert measured["tokens_per_second"] == pytest.approx(speed, rel=0.25)
    tokens = float(report.split("an update of ")[1].split(" target tokens")[0].replace(",", ""))
    assert measured["tokens"] == pytest.approx(200 * tokens, rel=0.25)
    memory = float(report.split("memory ")[1].split(" GiB")[0])
    assert measured["peak_gib"] == pytest.approx(memory, rel=0.25)
    for word in (
        "pairs read",
        "vocabulary source",
        "parameters",
        "padding",
        "longest batch",
        "memory",
        "time",
    ):
        assert word in report


def test_interrupt_key_saves_and_exits_130(copy_task):
    """Ctrl-C, twice: saved once, exit code 130, and the same command continues."""
    recipe = copy_task({"max_steps: 20": "max_steps: 2000"})
    command = [sys.executable, "-m", "transformer_mt", "train", str(recipe), "training.log_every=1"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment)
    for line in process.stderr:
        if line.startswith("step 3/"):
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
            process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    saved = ckpt.newest_valid(recipe.parent / "run")
    assert saved.step >= 3
    assert main(["train", str(recipe), f"training.max_steps={saved.step + 2}"]) == 0


def test_weights_that_left_the_finite_numbers_are_a_divergence(copy_task, capsys):
    """Pins a finite gradient times an absurd rate: the first validation ends training, with code 4."""
    recipe = copy_task({"learning_rate: 3e-3": "learning_rate: 1e300"})
    assert main(["train", str(recipe), "training.warmup_steps=0", "training.validate_every=2"]) == 4
    assert "diverged: in validation the model gives no finite" in capsys.readouterr().err


def test_a_model_that_exceeds_the_memory_is_a_matter_of_the_recipe(copy_task, capsys):
    """Pins B055 for training: what to lower, and no traceback."""
    sizes = ["model.d_model=100000000", "model.num_heads=1"]
    assert main(["train", str(copy_task()), *sizes]) == 2
    assert "does not fit into the memory of cpu; lower training.max_tokens" in capsys.readouterr().err


def test_max_tokens_auto_is_found_once_and_kept(copy_task, capsys, monkeypatch):
    """What fits into the memory, no more than an epoch has; the run goes on with it wherever it goes on."""
    from transformer_mt.runtime import memory

    recipe = copy_task({"max_tokens: 512": "max_tokens: auto"})
    run = recipe.parent / "run"
    assert main(["train", str(recipe), "training.max_steps=2"]) == 0
    found = re.search(r"training.max_tokens auto: (\S+) tokens take about \d.\d of", capsys.readouterr().err)
    assert found is not None
    tokens = int(found[1].replace(",", ""))
    assert tokens % 512 == 0
    assert tokens > 4000
    assert f"max_tokens: {tokens}\n" in (run / "config.yaml").read_text()

    def tiny(device):
        return memory.Memory(1, "a limit")

    monkeypatch.setattr(memory, "usable_memory", tiny)
    assert main(["train", str(recipe), "training.max_steps=4"]) == 0
    assert f"max_tokens: {tokens}\n" in (run / "config.yaml").read_text()
    assert main(["train", str(recipe), "training.max_steps=2", f"run_dir={recipe.parent / 'tight'}"]) == 0
    assert "max_tokens: 512" in (recipe.parent / "tight" / "config.yaml").read_text()


def test_max_tokens_is_auto_or_a_number(copy_task, capsys):
    recipe = copy_task()
    assert main(["train", str(recipe), "training.max_tokens=many", "training.workers=-1"]) == 2
    assert [line.partition("line: ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "training.max_tokens: must be auto or a valid integer, but is 'many' instead",
        "training.workers: must be auto or greater than or equal to 0, but is -1 instead",
    ]
