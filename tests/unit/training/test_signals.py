"""Signals are noted, break off what may be, and are given back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from transformer_mt.training.signals import STOPPING, BrokenOff, Signals


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of before come back."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_is_noted_and_its_handler_comes_back(number: signal.Signals) -> None:
    """Whatever its kind."""
    signal.signal(number, signal.SIG_DFL)
    with Signals() as signals:
        assert signals.number == 0
        os.kill(os.getpid(), number)
        assert signals.number == number
    assert signal.getsignal(number) == signal.SIG_DFL


def test_what_is_broken_off_is_broken_off_once() -> None:
    """A second signal does not disturb what cleans up after the first."""
    cleaned = False
    with Signals() as signals:
        try:
            with signals.breaking_off():
                try:
                    os.kill(os.getpid(), signal.SIGTERM)
                finally:
                    os.kill(os.getpid(), signal.SIGINT)
                    cleaned = True
        except BrokenOff:
            assert cleaned
        else:
            pytest.fail("it went on")
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_just_before_breaks_off_too() -> None:
    """Pins the moment between the last look at signals and a validation of an hour."""
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(BrokenOff), signals.breaking_off():
            pytest.fail("it went on")


def test_nohup_is_respected() -> None:
    """A job that shall outlive its terminal does."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        assert signals.number == 0


def test_after_a_stop_further_signals_interrupt_nothing() -> None:
    """Pins a traceback for the Ctrl-C that comes while files are closed."""
    with pytest.raises(ValueError, match="stopped"), Signals():
        os.kill(os.getpid(), signal.SIGINT)
        raise ValueError("stopped")
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(ValueError, match="another"), Signals():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise ValueError("another")
