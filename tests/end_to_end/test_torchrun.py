"""Training by several processes, as torchrun starts them: the same model, ends together, restarts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from tests.end_to_end.conftest import LSTM, MakeTask

_FAULTY = Path(__file__).with_name("faulty_rank.py")
_NODE = ["--nproc-per-node=1", "--nnodes=2", "--master-addr=127.0.0.1"]


def _start(
    *words: str | Path,
    processes: int = 2,
    fault: str | None = None,
    flags: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """torchrun with so many processes of a verb; fault: what happens to one; flags: where they run."""
    where = flags or ["--standalone", f"--nproc-per-node={processes}"]
    what = ["-m", "transformer_mt"] if fault is None else [_FAULTY, fault]
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *where, *map(str, (*what, *words))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
        start_new_session=True,
    )


def _ended(process: subprocess.Popen[str], seconds: float = 180.0) -> tuple[int, str]:
    """Exit code and stderr; nothing of it runs on after this."""
    try:
        _, stderr = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, stderr


def _last_weights(run: Path) -> dict[str, Any]:
    step = json.loads((run / "latest.json").read_text())["step"]
    return load_file(run / "checkpoints" / f"step_{step:08d}" / "model.safetensors")


def _records(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


@pytest.mark.parametrize("model", [{}, LSTM], ids=["transformer", "lstm"])
def test_two_processes_learn_what_one_learns_from_as_many_batches(copy_task: MakeTask, cli, model) -> None:
    """B090, B113, B135, B138: two processes are one with update_freq doubled.

    Batches are uneven, an epoch has an odd number of them, and the validation set has five lines.
    """
    recipe = copy_task({**model, "  dropout: 0.1": "  dropout: 0.1\n  ema: 0.9"}, num_valid=5)
    overrides = ["training.max_steps=8", "tokenizer.sampling=0.1", "training.validate_every=4"]
    one, two = recipe.parent / "one", recipe.parent / "two"
    done = cli("train", recipe, *overrides, f"run_dir={one}", "training.update_freq=2")
    assert done.returncode == 0, done.stderr
    code, stderr = _ended(_start("train", recipe, *overrides, f"run_dir={two}"))
    assert code == 0, stderr
    ours, theirs = _last_weights(one), _last_weights(two)
    assert ours.keys() == theirs.keys()
    for name, weight in ours.items():
        difference = float((weight - theirs[name]).abs().max())
        assert difference < 1e-6, name
    for kind in ("train", "valid"):
        for mine, other in zip(_records(one, kind), _records(two, kind), strict=True):
            assert mine["step"] == other["step"]
            for exact in {"train": ("tokens",), "valid": ("bleu", "best_step")}[kind]:
                assert mine[exact] == other[exact]
            for close in {"train": ("loss", "nll"), "valid": ("nll", "nats_per_char")}[kind]:
                assert mine[close] == pytest.approx(other[close], rel=1e-6)
    assert _progress(one, 8) == _progress(two, 8)
    assert _progress(one, 8)[0] > 1
    samples = [sorted(path.read_text() for path in (run / "samples").iterdir()) for run in (one, two)]
    assert samples[0] == samples[1]
    assert json.loads((two / "run.json").read_text())["processes"] == 2
    assert stderr.count("step 8/8") + stderr.count("step 8 validation") <= 2  # one process speaks for all


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raises", "process 1 of 2 ended: the disk of this machine is on fire; call someone"),
        ("fails", r"process 1 of 2 ended: ZeroDivisionError\('a fault of the program'\)"),
        ("killed", r"process 1 of 2 was killed, or did not come within 60 s \(training.process_timeout\)"),
        ("sleeps", r"process 1 of 2 was killed, or did not come within 3 s \(training.process_timeout\)"),
    ],
)
@pytest.mark.slow
def test_all_end_when_one_does_and_say_which(copy_task: MakeTask, fault: str, said: str) -> None:
    """B135, B136: no process waits for ever for one that is gone; its message comes from the others too."""
    recipe = copy_task()
    seconds = 3 if fault == "sleeps" else 60
    started = time.monotonic()
    code, stderr = _ended(_start("train", recipe, f"training.process_timeout={seconds}", fault=fault))
    assert code != 0
    assert time.monotonic() - started < 120
    assert re.search(f"^transformer-mt: error: {said}", stderr, re.MULTILINE), stderr
    assert ("ZeroDivisionError: a fault" in stderr) == (
        fault == "fails"
    )  # a traceback for our own faults only
    assert "terminate called" not in stderr


@pytest.mark.slow
def test_one_that_hangs_amid_an_update_is_named(copy_task: MakeTask) -> None:
    """There it spends nearly all of its time; the others wait for it where gradients are summed."""
    seconds = "training.process_timeout=8"
    code, stderr = _ended(_start("train", copy_task(), seconds, fault="sleeps_amid", processes=3))
    assert code != 0
    assert "transformer-mt: error: process 1 of 3 was killed, or did not come within 8 s" in stderr


@pytest.mark.slow
def test_a_gradient_that_is_nan_on_one_process_changes_the_weights_of_none(copy_task: MakeTask) -> None:
    """All of them skip the update alike, and learn the same from then on."""
    recipe = copy_task()
    code, stderr = _ended(_start("train", recipe, "training.max_steps=6", fault="nan"))
    assert code == 0, stderr
    assert stderr.count("step 3: loss or gradient was not finite; the weights were left alone") == 1
    records = _records(recipe.parent / "run", "train")
    assert sum(record["skipped"] for record in records) == 1
    assert all(bool(weight.isfinite().all()) for weight in _last_weights(recipe.parent / "run").values())


@pytest.mark.slow
def test_a_restart_by_torchrun_continues_from_the_last_checkpoint(copy_task: MakeTask, cli) -> None:
    """--max-restarts; with --overwrite too, which must not delete what the first attempt saved."""
    recipe = copy_task()
    whole, torn = recipe.parent / "whole", recipe.parent / "torn"
    overrides = ["training.max_steps=6", "training.save_every=1"]
    code, stderr = _ended(_start("train", recipe, *overrides, f"run_dir={whole}"))
    assert code == 0, stderr
    flags = ["--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    words = ["train", recipe, *overrides, f"run_dir={torn}", "--overwrite"]
    code, stderr = _ended(_start(*words, fault="killed_once", flags=flags))
    assert code == 0, stderr
    assert "continuing after step 2" in stderr
    for name, weight in _last_weights(whole).items():
        assert weight.equal(_last_weights(torn)[name]), name
    steps = [record["step"] for record in _records(torn, "train")]
    assert steps == sorted(set(steps))


@pytest.mark.slow
def test_another_number_of_processes_continues_a_run(copy_task: MakeTask, cli) -> None:
    """Two processes, then one with as many batches: the same data in the same order, and that is said."""
    recipe = copy_task()
    one, mixed = recipe.parent / "one", recipe.parent / "mixed"
    done = cli("train", recipe, "training.max_steps=12", f"run_dir={one}")
    assert done.returncode == 0, done.stderr
    code, stderr = _ended(_start("train", recipe, "training.max_steps=4", f"run_dir={mixed}"))
    assert code == 0, stderr
    done = cli("train", recipe, "training.max_steps=8", f"run_dir={mixed}")
    assert done.returncode == 0, done.stderr
    assert "continuing with processes: 2 -> 1: the data come in the same order" in done.stderr
    places = [_progress(one, 12), _progress(mixed, 8)]  # 12 updates of one batch; 4 of two and 4 of one
    assert places[0] == places[1]


def _progress(run: Path, step: int) -> tuple[int, int, int]:
    state = json.loads((run / "checkpoints" / f"step_{step:08d}" / "state.json").read_text())["progress"]
    return state["epoch"], state["position"], state["tokens"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_to_torchrun_saves_once_and_ends_all(copy_task: MakeTask, number: signal.Signals) -> None:
    """torchrun hands it on; all stop after the same update, and the same command continues."""
    recipe = copy_task()
    run = recipe.parent / "run"
    process = _start("train", recipe, "training.max_steps=100000", "training.log_every=1")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("step 3/"):
            break
    process.send_signal(number)
    code, stderr = _ended(process, seconds=60)
    assert code != 0
    stopped = re.findall(rf"stopped by {number.name} after step (\d+), saved", stderr)
    assert len(stopped) == 1, stderr
    assert json.loads((run / "latest.json").read_text())["step"] == int(stopped[0])
    last = int(stopped[0]) + 2
    code, stderr = _ended(_start("train", recipe, f"training.max_steps={last}", "training.log_every=1"))
    assert code == 0, stderr
    assert f"continuing after step {stopped[0]}" in stderr
    assert [record["step"] for record in _records(run, "train")] == list(range(1, last + 1))


@pytest.mark.slow
def test_a_validation_of_several_is_broken_off_and_made_again(copy_task: MakeTask) -> None:
    """However long one of them takes with its share: all stop in time, saved, the validation still due."""
    recipe = copy_task()
    run = recipe.parent / "run"
    words = ("train", recipe, "training.max_steps=5", "training.log_every=1", "training.validate_every=4")
    process = _start(*words, fault="translates_for_ever")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("step 4/"):
            break
    time.sleep(2)  # amid the validation
    process.send_signal(signal.SIGTERM)
    code, stderr = _ended(process, seconds=25)  # torchrun kills what has not ended after 30 s
    assert code != 0
    assert "stopped by SIGTERM after step 4, saved" in stderr
    state = json.loads((run / "checkpoints" / "step_00000004" / "state.json").read_text())["progress"]
    assert state["validation_due"] and not _records(run, "valid")
    code, stderr = _ended(_start(*words))
    assert code == 0, stderr
    assert [record["step"] for record in _records(run, "valid")] == [4, 5]


@pytest.mark.slow
def test_two_nodes_train_as_one(copy_task: MakeTask) -> None:
    """Each machine starts its own torchrun; here both are this one."""
    recipe = copy_task()
    flags = [*_NODE, "--master-port=29731"]
    words = ["train", recipe, "training.max_steps=4"]
    other = _start(*words, flags=[*flags, "--node-rank=1"])
    code, stderr = _ended(_start(*words, flags=[*flags, "--node-rank=0"]))
    other_code, other_stderr = _ended(other)
    assert (code, other_code) == (0, 0), stderr + other_stderr
    assert "step 4 validation" in stderr
    assert "step 4 validation" not in other_stderr


@pytest.mark.slow
def test_processes_that_see_other_folders_do_not_begin(copy_task: MakeTask, tmp_path: Path) -> None:
    """A run directory that is not on a common disk would be continued by one process and begun by another."""
    recipe = copy_task()
    code, stderr = _ended(_start("train", recipe, "training.max_steps=2"))
    assert code == 0, stderr
    flags = [*_NODE, "--master-port=29732"]
    words = ["train", recipe, "training.max_steps=4"]
    other = _start(*words, f"run_dir={tmp_path / 'elsewhere'}", flags=[*flags, "--node-rank=1"])
    code, stderr = _ended(_start(*words, flags=[*flags, "--node-rank=0"]))
    other_code, _ = _ended(other)
    assert code != 0
    assert other_code != 0
    assert re.search("process 1 of 2 has .*: data.root and run_dir must be the same folders", stderr), stderr


@pytest.fixture(scope="module")
def trained(copy_task: MakeTask, cli) -> Path:
    """A run after 20 updates."""
    recipe = copy_task()
    done = cli("train", recipe)
    assert done.returncode == 0, done.stderr
    return recipe.parent / "run"


def test_two_processes_write_what_one_writes(trained: Path, cli, tmp_path: Path) -> None:
    """In order, whatever is asked for: candidates, alignments, drawn texts, blank lines, one last line."""
    lines = (trained.parent / "train.xx").read_text().splitlines()[:41]
    lines[3] = lines[4] = ""
    source = tmp_path / "source.txt"
    source.write_text("\n".join(lines) + "\n")
    flags = [
        "--nbest",
        "2",
        "--format",
        "jsonl",
        "--alignment",
        "mean",
        "--token-scores",
        "--buffer-size",
        "20",
    ]
    flags += ["--temperature", "1.1", "--seed", "3", "--beam-size", "2"]
    alone = cli("translate", trained, source, *flags, "--output", tmp_path / "one.jsonl")
    assert alone.returncode == 0, alone.stderr
    code, stderr = _ended(_start("translate", trained, source, *flags, "--output", tmp_path / "two.jsonl"))
    assert code == 0, stderr
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    assert len((tmp_path / "one.jsonl").read_text().splitlines()) == 41
    assert stderr.count("41 lines") == 1


@pytest.mark.slow
def test_a_killed_translation_of_two_processes_is_continued_by_one(
    trained: Path, cli, tmp_path: Path
) -> None:
    lines = (trained.parent / "train.xx").read_text().splitlines() * 8
    source, two = tmp_path / "source.txt", tmp_path / "two.txt"
    source.write_text("\n".join(lines) + "\n")
    words = ["translate", trained, source, "--resume", "--output", two, "--buffer-size", "100"]
    process = _start(*words)
    partial = tmp_path / "two.txt.partial"
    deadline = time.monotonic() + 60
    while not (partial.exists() and partial.stat().st_size > 0) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    _ended(process)
    assert not two.exists()
    done = cli(*words)
    assert done.returncode == 0, done.stderr
    assert re.search(r"has \d+00 lines; goes on with line", done.stderr), done.stderr
    alone = cli("translate", trained, source, "--output", tmp_path / "one.txt")
    assert alone.returncode == 0
    assert two.read_bytes() == (tmp_path / "one.txt").read_bytes()


def test_a_stream_cannot_be_shared(monkeypatch: pytest.MonkeyPatch, capsys, trained: Path) -> None:
    """One process would take the lines of the other."""
    from transformer_mt.cli import translate
    from transformer_mt.cli.main import build_parser
    from transformer_mt.errors import ConfigError
    from transformer_mt.runtime.distributed import Ranks

    for words in ([], ["-"], ["/dev/null"]):
        all_words = ["translate", str(trained), *words]
        args = build_parser(all_words).parse_args(all_words)
        with pytest.raises(ConfigError, match="several processes each read all lines"):
            translate._run(args, Ranks(0, 2))


@pytest.mark.parametrize("verb", ["prepare", "evaluate", "study", "score"])
def test_a_verb_that_works_alone_says_so(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path
) -> None:
    """Two processes of it would write the same files."""
    from transformer_mt.cli.main import main

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert main([verb, str(tmp_path)]) == 2
    message = f"transformer-mt: error: {verb}: works in one process; start it without torchrun\n"
    assert capsys.readouterr().err == message
