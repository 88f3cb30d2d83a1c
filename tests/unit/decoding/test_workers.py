"""Worker processes: order, errors, and that none is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from random_run import made_up_lines

from transformer_mt.checkpoint import LoadedRun
from transformer_mt.config import DecodingConfig
from transformer_mt.decoding.translator import Translator
from transformer_mt.decoding.workers import Workers, pick_workers
from transformer_mt.errors import CheckpointError, ConfigError, DataError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked under Linux only")


def _gone(process: int) -> bool:
    """Whether a process has ended; one that only waits to be reaped has."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def _comes_true(condition: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_results_stand_in_the_order_of_the_tasks() -> None:
    """Whoever is done first, and from call to call by the same processes."""

    def work(task: int) -> tuple[int, int]:
        time.sleep(0.02 * (task % 3))
        return task * task, os.getpid()

    workers = Workers(work, 3)
    found = [workers.map(list(range(11))), workers.map([]), workers.map([7, 8])]
    assert [[square for square, _ in results] for results in found] == [
        [n * n for n in range(11)],
        [],
        [49, 64],
    ]
    processes = {process for _, process in found[0]}
    assert 1 < len(processes) <= 3
    assert os.getpid() not in processes
    assert {process for _, process in found[2]} <= processes
    workers.close()
    assert all(_gone(process) for process in processes)


def test_large_tasks_and_results_do_not_block_each_other() -> None:
    """More than a pipe holds, both ways."""
    workers: Workers[bytes, bytes] = Workers(lambda task: task[::-1], 2)
    tasks = [bytes([n]) * 300_000 + b"end" for n in range(5)]
    assert workers.map(tasks) == [task[::-1] for task in tasks]
    workers.close()


def test_an_error_keeps_its_class_and_ends_the_workers() -> None:
    """The others are busy with tasks whose results nobody will fetch."""

    def work(task: int) -> int:
        if task == 1:
            raise CheckpointError("one line")
        time.sleep(60)
        return os.getpid()

    workers = Workers(work, 3)
    start = time.monotonic()
    with pytest.raises(CheckpointError, match=r"^one line\n") as caught:
        workers.map([0, 1, 2])
    assert "in a worker process:\nTraceback" in caught.value.__notes__[0]
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("before_sending", [False, True])
def test_a_killed_worker_is_an_error_not_a_hang(before_sending: bool) -> None:
    """While it works, and while it waits."""

    def work(task: int) -> int:
        if task < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    workers = Workers(work, 1)
    tasks = [-1]
    if before_sending:
        process = workers.map([1])[0]
        os.kill(process, signal.SIGKILL)
        assert _comes_true(lambda: _gone(process))
        tasks = [1]
    with pytest.raises(DataError, match=r"a worker process ended by itself \(signal 9\), .* --workers"):
        workers.map(tasks)


def test_a_worker_that_exits_is_told_with_its_code() -> None:
    """`os._exit` somewhere in a library is no signal."""
    workers: Workers[int, None] = Workers(os._exit, 1)
    with pytest.raises(DataError, match=r"ended by itself \(exit code 7\)"):
        workers.map([7])


def test_how_many_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One per thread on a CPU; never several where forking is not safe."""
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5)
    assert pick_workers(None, cpu) == 5
    assert pick_workers(3, cpu) == 3
    assert pick_workers(None, gpu) == pick_workers(1, gpu) == 1
    with pytest.raises(ConfigError, match="--workers 0: must be from 1 to 256"):
        pick_workers(0, cpu)
    with pytest.raises(ConfigError, match="--workers 257: must be from 1 to 256"):
        pick_workers(257, cpu)
    with pytest.raises(ConfigError, match="--workers 2: there can be but one worker on cuda; leave"):
        pick_workers(2, gpu)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert pick_workers(None, cpu) == 1
    with pytest.raises(ConfigError, match="but one worker in a process that uses a GPU"):
        pick_workers(2, cpu)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ConfigError, match="but one worker on darwin"):
        pick_workers(2, cpu)


def _translator(loaded: LoadedRun, workers: int, **options: object) -> Translator:
    decoding = DecodingConfig.model_validate(
        {**loaded.recipe.decoding.model_dump(), "batch_size": 5, **options}
    )
    return Translator([loaded.model], loaded.tokenizers, decoding, workers=workers)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_texts_and_scores_do_not_depend_on_workers_or_threads(loaded: LoadedRun, beam_size: int) -> None:
    """Bit for bit in fp32: 1 process with 1 or 2 threads, 2 and 3 processes; blank lines in place."""
    lines = [*made_up_lines(40, seed=4), "", "\u3000", *made_up_lines(3, seed=5)]
    threads = torch.get_num_threads()
    outcomes = []
    try:
        for number, workers in [(1, 1), (2, 1), (2, 2), (1, 3)]:
            torch.set_num_threads(number)
            translator = _translator(loaded, workers, beam_size=beam_size)
            found = translator.translate(lines)
            assert translator.translate(lines[::-1]) == found[::-1]
            outcomes.append([(item.text, item.score, item.ids, item.num_src_tokens) for item in found])
    finally:
        torch.set_num_threads(threads)
    assert outcomes[0] == outcomes[1] == outcomes[2] == outcomes[3]
    assert len({text for text, *_ in outcomes[0]}) > 10


def test_errors_of_workers_are_those_of_one_process(
    loaded: LoadedRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A line that does not fit into the memory is named, counted from the first line of the text (B055)."""
    encode = loaded.model.encode

    def tight(src_ids: torch.Tensor, src_mask: torch.Tensor) -> object:
        if src_ids.size(1) > 40:
            raise torch.OutOfMemoryError("no room")
        return encode(src_ids, src_mask)

    monkeypatch.setattr(loaded.model, "encode", tight)
    lines = made_up_lines(12, seed=6)
    translator = _translator(loaded, 2)
    *found, too_long = translator.translate([*lines, "wort " * 40], first_line=11)
    assert found == translator.translate(lines) == _translator(loaded, 1).translate(lines)
    assert too_long.text == ""
    assert re.search(r"line 23: its \d+ tokens do not fit .*; its translation is left empty", caplog.text)
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.fill_(float("nan"))
    with pytest.raises(CheckpointError, match="gives no finite probabilities in fp32"):
        _translator(loaded, 2).translate(lines)


def _start(run: Path, source: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """A command at work in a session of its own, and the processes it has forked."""
    command = [sys.executable, "-m", "transformer_mt", "translate", str(run), str(source), "--workers", "2"]
    command += ["--device", "cpu", "--batch-size", "1", "--beam-size", "40", "--nbest", "40"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    forked = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def workers() -> list[int]:
        return [int(number) for number in forked.read_text(encoding="ascii").split()]

    assert _comes_true(lambda: process.poll() is not None or len(workers()) == 2)
    time.sleep(0.3)
    return process, workers()


@pytest.mark.parametrize(
    ("number", "to", "outcome"),
    [
        (signal.SIGINT, "all", (130, "transformer-mt: error: interrupted\n")),
        (signal.SIGTERM, "parent", (143, "transformer-mt: error: terminated\n")),
        (signal.SIGKILL, "parent", (-9, "")),
        (signal.SIGKILL, "worker", (3, "transformer-mt: error: a worker process ended by itself (signal 9)")),
    ],
)
@pytest.mark.parametrize("run", ["transformer"], indirect=True)
def test_a_signal_ends_all_processes_at_once(
    run: Path, tmp_path: Path, number: signal.Signals, to: str, outcome: tuple[int, str]
) -> None:
    """Ctrl-C goes to the whole group, `kill` to the parent, the system's memory killer to anyone: no
    orphan, no hang, no traceback, the right code."""
    source = tmp_path / "in.txt"
    source.write_text("\n".join(made_up_lines(3000, seed=2)), encoding="utf-8")
    process, workers = _start(run, source)
    assert len(workers) == 2
    if to == "all":
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid if to == "parent" else workers[0], number)
    code, message = outcome
    assert process.wait(timeout=60) == code
    assert process.stderr
    said = process.stderr.read().decode()
    assert said.startswith(message)
    assert said.count("\n") == bool(message)
    assert _comes_true(lambda: all(_gone(worker) for worker in workers))


@pytest.mark.parametrize("run", ["transformer"], indirect=True)
def test_standard_input_is_shared_out_too(run: Path, tmp_path: Path) -> None:
    """The workers are forked while another thread waits for the next line of a pipe that stays open."""
    lines = made_up_lines(150, seed=7)
    command = [sys.executable, "-m", "transformer_mt", "translate", str(run), "--workers", "2"]
    with subprocess.Popen(
        [*command, "--device", "cpu", "--batch-size", "9"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write("\n".join(lines).encode() + b"\n")
        process.stdin.flush()
        found = [process.stdout.readline().decode().rstrip("\n") for _ in lines]
        process.stdin.close()
    assert process.returncode == 0
    assert found == [item.text for item in Translator.load(run, device="cpu").translate(lines)]
