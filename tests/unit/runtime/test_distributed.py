"""Which of several processes this is; what they do together is tested with torchrun, in end_to_end."""

from __future__ import annotations

import socket
from typing import NoReturn

import pytest
import torch
import torch.distributed as dist

from transformer_mt.errors import ConfigError, LostProcessError
from transformer_mt.runtime.cores import usable_cores
from transformer_mt.runtime.device import _limit_threads, pick_device
from transformer_mt.runtime.distributed import ALONE, Ranks, joined


@pytest.fixture
def torchrun(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """What torchrun sets for the second of two processes that will not meet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    for name, value in {**settings, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.mark.parametrize("world", [None, "1"])
def test_a_process_by_itself_asks_nobody(monkeypatch: pytest.MonkeyPatch, world: str | None) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if world:
        monkeypatch.setenv("WORLD_SIZE", world)
    with joined(1.0) as ranks:
        assert ranks is ALONE
    assert ranks.first
    assert ranks.sums(1.5, 2) == [1.5, 2]
    assert ranks.largest(3) == 3
    assert ranks.gathered("x") == ["x"]
    assert ranks.agreed([1], "never said") == [1]
    with ranks.meeting(), ranks.one_after_the_first():
        pass


def test_one_process_too_knows_that_it_was_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What --overwrite would delete then is what the first attempt saved."""
    monkeypatch.setenv("WORLD_SIZE", "1")
    for attempt, restarted in (("0", False), ("1", True)):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", attempt)
        with joined(1.0) as ranks:
            assert ranks.world == 1
            assert ranks.restarted == restarted


def test_an_error_of_a_process_by_itself_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="gloo"), ALONE.meeting():
        raise RuntimeError("gloo")


@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"])
def test_half_of_the_variables_is_not_enough(torchrun: pytest.MonkeyPatch, name: str) -> None:
    torchrun.delenv(name)
    with pytest.raises(
        ConfigError, match=f"WORLD_SIZE is set, but not {name}; start several processes with torchrun"
    ):
        joined(1.0).__enter__()


def test_a_rank_is_a_number(torchrun: pytest.MonkeyPatch) -> None:
    torchrun.setenv("LOCAL_RANK", "one")
    with pytest.raises(
        ConfigError, match="RANK, LOCAL_RANK, WORLD_SIZE: .*'one'; start several processes with torchrun"
    ):
        joined(1.0).__enter__()


@pytest.mark.parametrize(("rank", "world"), [("2", "2"), ("-1", "2"), ("0", "0"), ("0", "-1")])
def test_a_rank_is_one_of_the_world(torchrun: pytest.MonkeyPatch, rank: str, world: str) -> None:
    torchrun.setenv("RANK", rank)
    torchrun.setenv("WORLD_SIZE", world)
    with pytest.raises(ConfigError, match=f"RANK {rank}, WORLD_SIZE {world}: no such process; start several"):
        joined(1.0).__enter__()


class _DeadStore(dist.Store):
    """Kept by a machine that has gone."""

    def __getattribute__(self, name: str) -> NoReturn:
        raise dist.DistNetworkError("Connection reset by peer")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_first_process_whose_machine_is_gone_is_not_waited_for(rank: int) -> None:
    """Before anything is exchanged, or long after: whoever waits for its turn learns it as all others do."""
    ranks = Ranks(rank, 2, notes=_DeadStore())
    with (
        pytest.raises(LostProcessError, match="the machine of process 0 of 2 does not answer; run the same"),
        ranks.one_after_the_first(),
    ):
        pass


def test_processes_that_do_not_come_are_not_waited_for_for_ever(torchrun: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        LostProcessError, match="process 1 of 2 did not meet the others within 1 s .*MASTER_ADDR"
    ):
        joined(1.0).__enter__()


def test_each_process_takes_a_card_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks(3, 4, 1)
    assert pick_device("cpu", ranks) == torch.device("cpu")
    taken = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    assert pick_device(None, ranks) == torch.device("cuda", 1)
    assert pick_device("cuda", ranks) == torch.device("cuda", 1)
    assert taken == [1, 1]
    with pytest.raises(
        ConfigError, match="--device cuda:0: each of several processes takes its own; use cpu or cuda"
    ):
        pick_device("cuda:0", ranks)
    with pytest.raises(
        ConfigError, match="has 2 GPUs, but torchrun started process 3 on it; lower --nproc-per-node"
    ):
        pick_device(None, Ranks(2, 4, 2))


def test_the_processes_of_a_machine_share_its_cores(torchrun: pytest.MonkeyPatch) -> None:
    torchrun.delenv("LOCAL_WORLD_SIZE")
    alone = usable_cores()
    torchrun.setenv("LOCAL_WORLD_SIZE", "2")
    shared = usable_cores()
    assert shared.number == max(alone.number // 2, 1)
    assert shared.reason == f"{alone.reason}, shared by 2 processes"


def test_the_one_thread_of_torchrun_is_not_the_users_word(torchrun: pytest.MonkeyPatch) -> None:
    """torchrun says OMP_NUM_THREADS=1 where its user says nothing; all but one core would be idle."""
    chosen = []
    torchrun.setattr(torch, "set_num_threads", chosen.append)
    torchrun.setenv("OMP_NUM_THREADS", "1")
    torchrun.delenv("MKL_NUM_THREADS", raising=False)
    assert _limit_threads() == "OMP_NUM_THREADS=1"
    torchrun.setenv("TORCHELASTIC_RUN_ID", "none")
    assert _limit_threads().endswith("shared by 2 processes")
    assert chosen == [usable_cores().number]
    torchrun.setenv("OMP_NUM_THREADS", "3")
    assert _limit_threads() == "OMP_NUM_THREADS=3"
