"""Processes that build batches: in order, ending with their owner, errors as they were raised."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count

import pytest
import torch

from transformer_mt.errors import DataError
from transformer_mt.runtime.cores import Cores
from transformer_mt.training import loader
from transformer_mt.training.loader import built_ahead, pick_workers

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.mark.parametrize(
    ("asked", "workers", "cores"),
    [
        ((3, CPU, False), 3, 2),
        ((0, GPU, True), 0, 16),
        (("auto", CPU, False), 0, 16),
        (("auto", CPU, True), 0, 16),
        (("auto", GPU, False), 1, 16),
        (("auto", GPU, True), 4, 5),
        (("auto", GPU, True), 8, 64),
        (("auto", GPU, True), 0, 1),
        (("auto", GPU, False), 0, 1),
    ],
)
def test_workers_by_machine(
    monkeypatch: pytest.MonkeyPatch, asked: tuple[int | str, torch.device, bool], workers: int, cores: int
) -> None:
    """One core is left to training; the user's number counts as it stands."""
    monkeypatch.setattr(loader, "usable_cores", lambda: Cores(cores, ""))
    setting, device, sampling = asked
    assert pick_workers(setting, device, sampling=sampling)[0] == workers


def test_order_whoever_is_first() -> None:
    """The slow worker's batch still comes first."""

    def build(place: int) -> tuple[int, int]:
        time.sleep(0.05 if place % 2 == 0 else 0.0)
        return place, os.getpid()

    built = built_ahead(build, count(5), 2)
    found = [next(built) for _ in range(7)]
    built.close()
    assert [place for place, _ in found] == list(range(5, 12))
    assert len({worker for _, worker in found} - {os.getpid()}) == 2


def _end(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    time.sleep(5)


@pytest.mark.parametrize(
    ("fail", "kind", "message"),
    [
        (
            lambda: _raise(DataError("x.arrow: is damaged; prepare it again")),
            DataError,
            "^x.arrow: is damaged; pre",
        ),
        (lambda: _raise(ZeroDivisionError("a fault of ours")), ZeroDivisionError, "a fault of ours"),
        (
            lambda: _end(os.getpid()),
            DataError,
            "a process that builds batches was killed, perhaps for want of mem",
        ),
    ],
)
def test_errors_come_when_it_is_their_turn(
    fail: Callable[[], None], kind: type[Exception], message: str
) -> None:
    """What was built before the error is delivered; then the error is raised, as itself, and no one waits."""

    def build(place: int) -> int:
        if place == 2:
            fail()
        return place

    built = built_ahead(build, count(), 1)
    with pytest.raises(kind, match=message):
        for expected in range(3):
            assert next(built) == expected
    assert multiprocessing.active_children() == []


def _raise(error: Exception) -> None:
    raise error


def test_runtime_errors_of_our_own_stay_what_they_are() -> None:
    """Only a lost worker is told as such."""
    built = built_ahead(lambda place: _raise(RuntimeError("shape mismatch")), count(), 1)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        next(built)


def test_signals_to_the_group_and_a_dropped_iterator() -> None:
    """Ctrl-C and what a scheduler sends end no worker while training needs it; closing ends them all."""
    built = built_ahead(lambda place: place, count(), 2)
    assert next(built) == 0
    workers = multiprocessing.active_children()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        for worker in workers:
            os.kill(worker.pid or 0, number)
    assert [next(built) for _ in range(20)] == list(range(1, 21))
    built.close()
    assert [worker.is_alive() for worker in workers] == [False, False]


def test_workers_end_when_the_process_is_killed() -> None:
    """SIGKILL leaves no process behind: the workers' pipes break."""
    program = """
import multiprocessing, os, signal, sys
from itertools import count
from transformer_mt.training.loader import built_ahead
built = built_ahead(lambda place: place, count(), 2)
next(built)
print(*[worker.pid for worker in multiprocessing.active_children()], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=False, text=True)
    workers = [int(number) for number in re.findall(r"\d+", done.stdout)]
    assert len(workers) == 2
    deadline = time.monotonic() + 5
    while any(map(_is_running, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
