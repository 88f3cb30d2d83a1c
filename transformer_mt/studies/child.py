"""A verb in a process of its own: its memory, allocator and random state are nobody else's.

Knows nothing of studies.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

from transformer_mt.errors import EXIT_INTERRUPTED, EXIT_TERMINATED

# Seconds between two looks at whether the process has ended.
_PATIENCE = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)


class Stopped(Exception):
    """A signal asked for the end; the process has ended."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def run_verb(words: Sequence[str]) -> int:
    """Run `transformer-mt WORDS`; what it prints goes to stderr.

    The process stands in a group of its own, so that Ctrl-C does not reach it beside us: the first signal
    that we get is handed on, once. A closed terminal (SIGHUP) asks it to save, as SIGTERM does.

    Returns:
        The exit code, 128 + N where signal N killed it.

    Raises:
        Stopped: a signal came here or there.
    """
    child: subprocess.Popen[bytes] | None = None
    received: list[int] = []
    waiting: list[int] = []  # the first signal, until it is handed on

    def note(number: int, frame: FrameType | None) -> None:
        if not received:
            waiting.append(signal.SIGTERM if number == signal.SIGHUP else number)
        received.append(number)
        hand_on()

    def hand_on() -> None:
        if child is not None and waiting:
            child.send_signal(waiting.pop())

    # An ignored signal (nohup) stays ignored, here and there.
    heeded = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in heeded}
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "transformer_mt", *words],
            stdin=subprocess.DEVNULL,
            stdout=2,
            process_group=0,
        )
        hand_on()  # what came before there was a process
        while (code := child.poll()) is None:
            # Not child.wait(): a signal that another thread gets would be noted only when it returns.
            time.sleep(_PATIENCE)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    code = 128 - code if code < 0 else code
    if received:
        raise Stopped(EXIT_INTERRUPTED if received[0] == signal.SIGINT else EXIT_TERMINATED)
    if code in (EXIT_INTERRUPTED, EXIT_TERMINATED):
        raise Stopped(code)
    return code
