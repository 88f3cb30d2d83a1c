"""Signals that ask a training to stop: noted when they come, acted upon where everything can be saved.

What changes nothing, as a validation does, may be broken off at once.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

# A scheduler that is about to end a job sends SIGUSR1, a terminal that is closed SIGHUP.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)


class BrokenOff(BaseException):
    """A signal came amid what may be broken off."""


class Signals:
    """Inside, `number` is the last signal that came, 0 for none; further ones do no harm, nor after an error.

    What `nohup` has this process ignore stays ignored.
    """

    def __init__(self) -> None:
        self.number = 0
        self._may_break_off = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        """Take over."""
        for number in STOPPING:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            # A training that was stopped is saved: the impatient Ctrl-C that comes now interrupts nothing.
            signal.signal(number, signal.SIG_IGN if self.number and error else handler)

    @contextmanager
    def breaking_off(self) -> Iterator[None]:
        """Inside, a signal raises BrokenOff; one that came before does so at once."""
        self._may_break_off = True
        try:
            if self.number:
                raise BrokenOff
            yield
        finally:
            self._may_break_off = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        if self._may_break_off:
            self._may_break_off = False  # once: what cleans up after the first is not broken off
            raise BrokenOff
