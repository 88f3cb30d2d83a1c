"""Several processes that share one piece of work: tasks in, results out, in order.

Workers are forked: they start within milliseconds, and read the weights in the parent's memory instead of
copying them. A fork cannot use the threads that its parent has started, so each worker computes with one;
that is also the faster way to spend the cores of a CPU. Knows neither models nor text.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Generic, NoReturn, TypeVar

import torch

from transformer_mt.errors import ConfigError, DataError

Task = TypeVar("Task")
Result = TypeVar("Result")
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_MOST = 256


def pick_workers(wanted: int | None, device: torch.device) -> int:
    """How many processes shall translate.

    Args:
        wanted: a number, or None for one per thread that torch would use on this CPU.
        device: where the models are; a GPU is fed by one process.

    Raises:
        ConfigError: several where there can be but one.
    """
    obstacle = _obstacle(device)
    if wanted is None:
        return 1 if obstacle else torch.get_num_threads()
    if not 1 <= wanted <= _MOST:
        raise ConfigError(f"--workers {wanted}: must be from 1 to {_MOST}")
    if wanted > 1 and obstacle:
        raise ConfigError(f"--workers {wanted}: there can be but one worker {obstacle}; leave the flag out")
    return wanted


def _obstacle(device: torch.device) -> str | None:
    """Why this process must not fork, if so."""
    if device.type != "cpu":
        return f"on {device.type}"
    if sys.platform != "linux":
        return f"on {sys.platform}"
    in_use: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return "in a process that uses a GPU" if in_use else None


class Workers(Generic[Task, Result]):
    """Forked processes that all do `work`, and wait between two calls of `map`.

    They end when this object or its process does, however that ends: their connection to it closes.
    """

    def __init__(self, work: Callable[[Task], Result], count: int) -> None:
        """Fork `count` processes now; what `work` refers to stays in them as it is."""
        self._processes: dict[Connection, int] = {}
        # A signal before the new process has its own handlers would end in a traceback.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        try:
            for _ in range(count):
                ours, theirs = Pipe()
                # Not multiprocessing.Process: it closes stdin first, and waits for ever if a thread reads it.
                process = os.fork()
                if not process:
                    # A worker that held its parent's ends would never see them close.
                    _live(work, theirs, [*self._processes, ours])
                theirs.close()
                self._processes[ours] = process
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def map(self, tasks: Sequence[Task]) -> list[Result]:
        """The result of every task; they are started in their order, so put the longest first.

        After any exception the workers are gone.

        Raises:
            DataError: a worker was killed.
            Exception: what `work` raised.
        """
        results: dict[int, Result] = {}
        coming = iter(enumerate(tasks))
        at_work: dict[Connection, int] = {}
        try:
            for worker, (number, task) in zip(self._processes, coming, strict=False):
                at_work[worker] = number
                self._send(worker, task)
            while at_work:
                for worker in [ready for ready in wait(list(at_work)) if isinstance(ready, Connection)]:
                    results[at_work.pop(worker)] = self._receive(worker)
                    for number, task in coming:
                        at_work[worker] = number
                        self._send(worker, task)
                        break
        except BaseException:
            self.close()
            raise
        return [results[number] for number in range(len(tasks))]

    def close(self) -> None:
        """End all workers at once, whatever they are doing."""
        for process in self._processes.values():
            os.kill(process, signal.SIGKILL)
        for connection, process in self._processes.items():
            os.waitpid(process, 0)
            connection.close()
        self._processes = {}

    def _send(self, worker: Connection, task: Task) -> None:
        try:
            worker.send(task)
        except ConnectionError:
            raise self._death(worker) from None

    def _receive(self, worker: Connection) -> Result:
        try:
            result, error = worker.recv()
        except (EOFError, ConnectionError):
            raise self._death(worker) from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def _death(self, worker: Connection) -> DataError:
        _, status = os.waitpid(self._processes.pop(worker), 0)
        worker.close()
        code = os.waitstatus_to_exitcode(status)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return DataError(
            f"a worker process ended by itself ({how}), most likely for want of memory; "
            "use fewer --workers or a smaller --batch-size"
        )


def _live(work: Callable[[Task], Result], parent: Connection, foreign: Sequence[Connection]) -> NoReturn:
    """The whole life of a worker; its parent alone ends it, with Ctrl-C too."""
    try:
        for connection in foreign:
            connection.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        torch.set_num_threads(1)
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                parent.send(_answer(work, parent.recv()))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _answer(work: Callable[[Task], Result], task: Task) -> tuple[Result | None, Exception | None]:
    try:
        return work(task), None
    except Exception as error:
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return None, error
