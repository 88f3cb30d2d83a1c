"""A verb in a process of its own: exit codes, and signals that are handed on once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from transformer_mt.studies.child import Stopped, run_verb


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """script.write_text(...) says what runs instead of Python; it gets `-m transformer_mt` and the words."""
    path = tmp_path / "python"
    path.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(path))
    return path


WAITS = f"""#!{sys.executable}
import signal, sys, time
received = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(number, lambda number, frame: received.append(number))
open({{ready!r}}, "w").close()
for tick in range(40):
    time.sleep(0.01)
print(*received, file=open({{log!r}}, "w"))
sys.exit(128 + received[0] if received else 0)
"""


def test_exit_codes_come_through_and_output_goes_to_stderr(
    script: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Pins the words of the child, its code, and that stdout stays free for the table."""
    script.write_text('#!/bin/sh\necho "$@"\nexit 4\n', encoding="utf-8")
    assert run_verb(["train", "a b"]) == 4
    assert capfd.readouterr() == ("", "-m transformer_mt train a b\n")


def test_a_killed_process_is_a_failure(script: Path) -> None:
    """Pins the shell's code for what the system killed, for want of memory say."""
    script.write_text("#!/bin/sh\nkill -9 $$\n", encoding="utf-8")
    assert run_verb(["train"]) == 128 + 9


@pytest.mark.parametrize(
    ("number", "got", "code"),
    [
        (signal.SIGINT, 2, 130),
        (signal.SIGTERM, 15, 143),
        (signal.SIGUSR1, int(signal.SIGUSR1), 143),
        (signal.SIGHUP, 15, 143),
    ],
)
def test_the_first_signal_is_handed_on_once(
    script: Path, tmp_path: Path, number: signal.Signals, got: int, code: int
) -> None:
    """Pins that the child gets one signal, however often and to whatever group it is sent, and may save."""
    log, ready = tmp_path / "log", tmp_path / "ready"
    script.write_text(WAITS.format(log=str(log), ready=str(ready)), encoding="utf-8")

    def send() -> None:
        while not ready.exists():
            threading.Event().wait(0.01)
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGTERM)

    before = {
        one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
    }
    thread = threading.Thread(target=send)
    thread.start()
    with pytest.raises(Stopped, match=str(code)) as stop:
        run_verb(["train"])
    thread.join()
    assert stop.value.exit_code == code
    assert log.read_text(encoding="utf-8") == f"{got}\n"
    assert {one: signal.getsignal(one) for one in before} == before


def test_the_child_has_a_group_of_its_own(script: Path, tmp_path: Path) -> None:
    """Pins that Ctrl-C in a terminal, which goes to a whole group, does not reach the child beside us."""
    script.write_text(f"#!/bin/sh\nps -o pgid= -p $$ > {tmp_path}/group\n", encoding="utf-8")
    assert run_verb(["train"]) == 0
    assert int((tmp_path / "group").read_text(encoding="utf-8")) != os.getpgrp()


def test_a_child_that_was_stopped_by_itself_stops_us(script: Path) -> None:
    """Pins that a batch system's signal to the child alone does not start the next run."""
    script.write_text("#!/bin/sh\nexit 143\n", encoding="utf-8")
    with pytest.raises(Stopped, match="143"):
        run_verb(["train"])
