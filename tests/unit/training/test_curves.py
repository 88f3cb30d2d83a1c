"""TensorBoard's files: one order whatever the clock says, and nothing that a full disk ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from transformer_mt.training.curves import Curves


def _steps(folder: Path) -> list[int]:
    events = EventAccumulator(str(folder))
    events.Reload()
    return [event.step for event in events.Scalars("train/loss")]


@pytest.mark.parametrize("moved", [0, -5, -86_400, 86_400], ids=lambda seconds: f"clock moved by {seconds} s")
def test_a_clock_that_goes_back_hides_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    """Pins a file of a continued run that is read before those it goes on from, which then take it back."""
    clock = time.time()
    for first_step in (0, 3, 5):
        monkeypatch.setattr(time, "time", lambda now=clock: now)
        curves = Curves(tmp_path, first_step)
        for step in range(first_step + 1, first_step + 5):
            curves.numbers("train", {"step": step, "loss": 1.0})
        curves.close()
        clock += moved
    assert len(list(tmp_path.iterdir())) == 3
    assert _steps(tmp_path) == list(range(1, 10))


def test_names_are_moved_and_never_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container host and process are called the same after every start."""
    for second in (98, 99, 100, 101, 200):
        (tmp_path / f"events.out.tfevents.{second:010d}.host.1.0").write_text(str(second))
    monkeypatch.setattr(time, "time", lambda: 100.5)
    Curves(tmp_path, 1).close()
    older = sorted(path for path in tmp_path.iterdir() if path.name.endswith(".host.1.0"))
    assert [path.read_text() for path in older] == ["98", "99", "100", "101", "200"]
    assert [int(path.name.split(".")[3]) for path in older] == [95, 96, 97, 98, 99]


def test_a_full_disk_costs_curves_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One warning, also where it was full from the start."""
    curves = Curves(tmp_path, 0)
    calls: list[str] = []

    class Full:
        def __getattr__(self, name: str) -> object:
            calls.append(name)
            raise OSError(28, "No space left on device")

    curves._writer = Full()  # type: ignore[assignment]
    for step in (1, 2):
        curves.numbers("train", {"step": step, "loss": 1.0, "nll": 1.0})
    curves.text("samples", "", 2)
    curves.close()
    assert calls == ["add_scalar"]
    assert caplog.text.count("no more TensorBoard files are written: No space left on device") == 1
    (tmp_path / "file").touch()
    Curves(tmp_path / "file", 0).close()
    assert "no TensorBoard files are written: " in caplog.text
