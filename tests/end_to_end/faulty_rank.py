"""The command, but in process 1 of those that torchrun started something happens at the third update.

Started with what happens, then the words of the command: `torchrun … faulty_rank.py killed train RECIPE`.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from transformer_mt.cli import build_trainer
from transformer_mt.cli.main import main
from transformer_mt.errors import DataError
from transformer_mt.training.step import LossModule, Updater

_UPDATE = 3
_run, _forward = Updater.run, LossModule.forward


def _happens(fault: str) -> None:
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "killed_once" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "raises":
        raise DataError("the disk of this machine is on fire; call someone")
    if fault == "fails":
        raise ZeroDivisionError("a fault of the program")
    if fault == "sleeps":
        time.sleep(600)
    if fault == "sleeps_amid":
        LossModule.forward = _never_done  # type: ignore[method-assign]
    if fault == "translates_for_ever":
        build_trainer.own_share = _never_done  # type: ignore[assignment]
    if fault == "nan":
        LossModule.forward = _poisoned  # type: ignore[method-assign]


def _never_done(*_):  # type: ignore[no-untyped-def]
    time.sleep(600)


def _poisoned(self, batch):  # type: ignore[no-untyped-def]
    LossModule.forward = _forward  # type: ignore[method-assign]
    loss, nll, tokens = _forward(self, batch)
    return loss * float("nan"), nll, tokens


if __name__ == "__main__":
    fault = sys.argv.pop(1)
    if os.environ["RANK"] == "1":

        def run(self, step, batches, **more):  # type: ignore[no-untyped-def]
            if step == _UPDATE:
                _happens(fault)
            return _run(self, step, batches, **more)

        Updater.run = run  # type: ignore[method-assign]
    sys.exit(main())
