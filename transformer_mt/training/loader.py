"""Batches built in other processes, ahead of their use and in order.

How many processes is a question of the machine; what they build is not theirs to change. They are copies of
this process (fork): mapped files stay mapped, and what is to be built they work out for themselves. torch's
DataLoader would do the building, but it turns errors into tracebacks, and a lost worker into an exception
anywhere in training. Knows nothing of epochs, positions or models.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import cycle, islice
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Any, TypeVar

import torch

from transformer_mt.errors import DataError, UserError
from transformer_mt.runtime.cores import usable_cores
from transformer_mt.training.signals import STOPPING

# With subword sampling a process builds 90,000 target tokens a second, a tenth to a half of what a GPU takes.
_MOST_FOR_SAMPLING = 8

Place = TypeVar("Place")
Built = TypeVar("Built")


def pick_workers(setting: int | str, device: torch.device, *, sampling: bool) -> tuple[int, str]:
    """(processes that build batches, why); 0 builds them in the training process itself.

    Args:
        setting: a number, or `auto`.
        device: that the batches are for.
        sampling: whether examples are drawn anew (`tokenizer.sampling`, `data.noise`), at up to 40 times the
            cost.
    """
    if setting != "auto":
        return int(setting), "training.workers"
    if device.type == "cpu":
        # Measured on two cores with sampling, where building is 5.5% of an update: a process takes as much
        # from the update as it saves. Without sampling it is 0.1%.
        return 0, "training on a CPU needs every core"
    spare = max(usable_cores().number - 1, 0)
    if sampling:
        return min(spare, _MOST_FOR_SAMPLING), "drawing feeds 90,000 tokens/s from each"
    return min(spare, 1), "one feeds any GPU"


def built_ahead(build: Callable[[Place], Built], places: Iterator[Place], workers: int) -> Generator[Built]:
    """`map(build, places)` by processes that each are one place ahead.

    The processes end when the generator is closed, fails or is dropped, and when this process is gone.

    Args:
        places: endless, and not to be used elsewhere.

    Raises:
        Exception: whatever `build` raised, when it is that place's turn.
        DataError: a process was killed from outside.
    """
    context = multiprocessing.get_context("fork")
    receivers: list[Connection] = []
    processes: list[ForkProcess] = []
    try:
        for number in range(workers):
            receiver, sender = context.Pipe(duplex=False)
            receivers.append(receiver)
            own = islice(places, number, None, workers)  # each copy of `places` goes its own way
            process = context.Process(target=_work, args=(build, own, sender, receivers), daemon=True)
            # They reach the whole group, but training decides when it is over. A worker inherits the mask.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
            try:
                process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            processes.append(process)
            sender.close()  # now the end of the worker is the end of the pipe
        for receiver in cycle(receivers):
            found = _receive(receiver)
            if isinstance(found, Exception):
                raise found
            yield found
    finally:
        for receiver in receivers:
            receiver.close()
        for process in processes:
            process.kill()  # it holds nothing but a pipe
            process.join()


def _receive(receiver: Connection) -> Any:
    try:
        return pickle.loads(receiver.recv_bytes())
    except (EOFError, OSError):
        raise DataError(
            "a process that builds batches was killed, perhaps for want of memory; run the same command "
            "again to continue, with fewer of them by training.workers"
        ) from None


def _work(
    build: Callable[[Place], Built],
    places: Iterator[Place],
    sender: Connection,
    receivers: Sequence[Connection],
) -> None:
    """Build one after the other; the full pipe says when to wait, the broken one when to end."""
    torch.set_num_threads(1)
    for receiver in receivers:
        receiver.close()  # while a copy is open, no worker would notice that training is gone
    try:
        for place in places:
            sender.send_bytes(_packed(build, place))
    except BrokenPipeError:
        return


def _packed(build: Callable[[Place], Built], place: Place) -> bytes:
    """What was built, or the error; pickled by value, as shared memory is scarce in containers."""
    try:
        return pickle.dumps(build(place), protocol=5)
    except Exception as error:
        if not isinstance(error, UserError):
            error.add_note(traceback.format_exc())
        return pickle.dumps(error, protocol=5)
