"""Several processes that work as one, as torchrun starts them: which one this is, what it asks the others.

What is exchanged here is small and on the CPU, so that a process that is missing can be named on every kind
of machine; gradients are left to DDP. A process that torchrun did not start is alone, and asks nobody. Knows
nothing of what is trained or translated.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from transformer_mt.errors import ConfigError, LostProcessError, UserError

_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# How often a process that waits for the first one looks whether it is done.
_LOOK_SECONDS = 0.1


class Ranks:
    """This process among all that work on the same thing; made without words it is alone."""

    def __init__(
        self,
        rank: int = 0,
        world: int = 1,
        local_rank: int = 0,
        notes: Store | None = None,
        seconds: float = 0.0,
        *,
        restarted: bool = False,
    ) -> None:
        """Say who this is; `joined` knows.

        Args:
            rank: from 0.
            world: number of processes.
            local_rank: from 0, on this machine.
            restarted: True where torchrun has started all of them again after one had failed.
            notes: where the processes leave word for each other; None when alone.
            seconds: that a process may be late.
        """
        self.rank, self.world, self.local_rank, self.restarted = rank, world, local_rank, restarted
        self._notes, self._seconds = notes, seconds
        self._meetings = self._turns = 0

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and speaks for all."""
        return self.rank == 0

    def sums(self, *values: float) -> list[float]:
        """Each value summed in fp64 over all processes; the same on each of them.

        Raises:
            LostProcessError: another one failed, or did not come in time.
        """
        if self._notes is None:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64)
        with self.meeting():
            dist.all_reduce(total)
        return [float(value) for value in total]

    def largest(self, value: int) -> int:
        """The largest of what the processes have; the same on each of them.

        Raises:
            LostProcessError: another one failed, or did not come in time.
        """
        if self._notes is None:
            return value
        largest = torch.tensor(value)
        with self.meeting():
            dist.all_reduce(largest, dist.ReduceOp.MAX)
        return int(largest)

    def gathered(self, value: Any) -> list[Any]:
        """What every process has, by rank, on each of them: whatever JSON can hold, infinities too.

        Raises:
            LostProcessError: another one failed, or did not come in time.
        """
        if self._notes is None:
            return [value]
        own = torch.frombuffer(bytearray(json.dumps(value).encode("ascii")), dtype=torch.uint8)
        with self.meeting():
            sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.world)]
            dist.all_gather(sizes, torch.tensor([len(own)]))
            longest = int(max(sizes))
            texts = [torch.zeros(longest, dtype=torch.uint8) for _ in range(self.world)]
            dist.all_gather(texts, torch.nn.functional.pad(own, (0, longest - len(own))))
        return [
            json.loads(text[: int(size)].numpy().tobytes()) for text, size in zip(texts, sizes, strict=True)
        ]

    def agreed(self, value: Any, what: str) -> Any:
        """The value, if every process has the same.

        Args:
            value: whatever JSON can hold.
            what: a user is told that this differs, and what to do about it.

        Raises:
            ConfigError: it differs.
            LostProcessError: another one failed, or did not come in time.
        """
        values = self.gathered(value)
        for rank, other in enumerate(values):
            if other != values[0]:
                raise ConfigError(
                    f"process {rank} of {self.world} has {other!r}, process 0 {values[0]!r}: {what}"
                )
        return value

    @contextlib.contextmanager
    def meeting(self, *, come: bool = True) -> Iterator[None]:
        """For what all processes do together, as DDP sums gradients: one that is missing is named.

        Args:
            come: False where each has work of its own to do inside, before it waits for the others; `come`
                says when it is done.

        Raises:
            LostProcessError: another one failed, or did not come in time.
        """
        if self._notes is None:
            yield
            return
        self._meetings += 1
        try:
            if come:
                self.come()
            yield
        except RuntimeError as error:
            if not _is_of_the_group(error):
                raise
            raise LostProcessError(self._missing()) from error

    def come(self) -> None:
        """Leave word that this process waits for the others from now on."""
        if self._notes is not None:
            self._notes.set(f"meetings/{self.rank}", str(self._meetings))

    @contextlib.contextmanager
    def one_after_the_first(self) -> Iterator[None]:
        """The first process goes in alone, the others when it is out, however long that takes.

        Raises:
            LostProcessError: the first one failed, or its machine does not answer.
        """
        self._turns += 1
        done = f"turns/{self._turns}"
        if self._notes is not None and not self.first:
            with self.meeting():
                while not self._notes.check([done]):
                    if self._notes.check(["failed/0"]):
                        raise LostProcessError(self._missing())
                    time.sleep(_LOOK_SECONDS)
        yield
        if self._notes is not None and self.first:
            with self.meeting():
                self._notes.set(done, "")

    def note_failure(self, message: str) -> None:
        """Leave word for the others of why this process ends."""
        if self._notes is not None:
            with contextlib.suppress(RuntimeError):  # the machine that keeps the notes may be gone itself
                self._notes.set(f"failed/{self.rank}", message)

    def _missing(self) -> str:
        """Who is missing, and what they have said."""
        assert self._notes is not None
        again = "run the same command again to continue"
        try:
            time.sleep(_LOOK_SECONDS)  # one that fails breaks its connections while it is leaving word
            said = [self._note(f"failed/{rank}") for rank in range(self.world)]
            met = [int(self._note(f"meetings/{rank}") or 0) for rank in range(self.world)]
        except RuntimeError:
            return f"the machine of process 0 of {self.world} does not answer; {again}"
        for rank, message in enumerate(said):
            if message and rank != self.rank:
                return f"process {rank} of {self.world} ended: {message}"
        late = [str(rank) for rank, number in enumerate(met) if rank != self.rank and number < self._meetings]
        if self.world == 2:
            late = [str(1 - self.rank)]
        who = f"process {', '.join(late)} of {self.world}" if late else f"one of {self.world} processes"
        return (
            f"{who} was killed, or did not come within {self._seconds:g} s (training.process_timeout); see "
            f"what it wrote last, and {again}"
        )

    def _note(self, key: str) -> str:
        assert self._notes is not None
        return self._notes.get(key).decode() if self._notes.check([key]) else ""


ALONE = Ranks()
"""One process, which asks nobody."""


@contextlib.contextmanager
def joined(seconds: float) -> Iterator[Ranks]:
    """Meet the processes that torchrun started beside this one; without it, or with one process, be alone.

    Args:
        seconds: that a process may be late to what all do together.

    Raises:
        ConfigError: the variables that torchrun sets are there in part only, or wrong.
        LostProcessError: not all processes came.
    """
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield ALONE if attempt == "0" else Ranks(restarted=True)
        return
    rank, local_rank, world = _place()
    limit = timedelta(seconds=seconds)
    try:
        store, *_ = next(rendezvous("env://", timeout=limit))
        # Where torchrun starts all anew, it keeps what the processes before had written there.
        store = PrefixStore(f"attempt_{attempt}", store)
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
            store=PrefixStore("group", store),
            rank=rank,
            world_size=world,
            timeout=limit,
        )
    except (RuntimeError, ValueError) as error:
        first_line = str(error).strip().partition("\n")[0]
        raise LostProcessError(
            f"process {rank} of {world} did not meet the others within {seconds:g} s ({first_line}); check "
            "that all were started, and that MASTER_ADDR and MASTER_PORT can be reached from every machine"
        ) from error
    notes = PrefixStore("notes", store)
    ranks = Ranks(rank, world, local_rank, notes, seconds, restarted=attempt != "0")
    try:
        yield ranks
    except LostProcessError:
        raise  # the one that is lost is the cause, not this one
    except Exception as error:
        ranks.note_failure(str(error) if isinstance(error, UserError) else repr(error))
        raise
    finally:
        dist.destroy_process_group()


def _place() -> tuple[int, int, int]:
    """Rank, rank on this machine, and number of processes."""
    for name in _VARIABLES:
        if not os.environ.get(name):
            raise ConfigError(f"WORLD_SIZE is set, but not {name}; start several processes with torchrun")
    try:
        rank, local_rank, world = (int(os.environ[name]) for name in _VARIABLES[:3])
    except ValueError as error:
        raise ConfigError(
            f"RANK, LOCAL_RANK, WORLD_SIZE: {error}; start several processes with torchrun"
        ) from None
    if not 0 <= rank < world:
        raise ConfigError(
            f"RANK {rank}, WORLD_SIZE {world}: no such process; start several processes with torchrun"
        )
    return rank, local_rank, world


def _is_of_the_group(error: RuntimeError) -> bool:
    """Whether an error comes from what processes exchange; gloo has no kind of its own for it."""
    return isinstance(error, dist.DistError) or "gloo" in str(error).lower()
