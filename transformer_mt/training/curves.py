"""TensorBoard's files of a run: curves, texts, pictures; each step once, in an order that no clock changes.

A broken installation or a full disk costs what is in them, not the training: `metrics.jsonl` has all numbers.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch.utils.tensorboard import SummaryWriter

_log = logging.getLogger("transformer_mt")
_STAMPED = re.compile(r"events\.out\.tfevents\.(\d+)\.(.*)")


class Curves:
    """Where there is no TensorBoard, nothing is written."""

    def __init__(self, folder: Path, first_step: int) -> None:
        """first_step: steps already done; what was written of later ones is not shown any more."""
        self._excepthook = threading.excepthook
        threading.excepthook = self._report_thread
        self._writer = _open(folder, first_step)

    def numbers(self, kind: str, record: Mapping[str, Any]) -> None:
        """One point for every measure of a record that there is."""
        for key, value in record.items():
            if key != "step" and value is not None:
                self._do(
                    lambda board, key=key, value=value: board.add_scalar(  # type: ignore[misc]
                        f"{kind}/{key}", value, int(record["step"])
                    )
                )

    def text(self, name: str, text: str, step: int) -> None:
        """A text in Markdown."""
        self._do(lambda board: board.add_text(name, text, step))

    def picture(self, name: str, figure: Figure, step: int) -> None:
        """A matplotlib figure."""
        self._do(lambda board: board.add_figure(name, figure, step))

    def close(self) -> None:
        """Write what waits."""
        self._do(lambda board: board.close())
        threading.excepthook = self._excepthook

    def _do(self, write: Callable[[SummaryWriter], object]) -> None:
        if self._writer is None:
            return
        try:
            write(self._writer)
        except OSError as error:
            self._writer = None
            _log.warning("no more TensorBoard files are written: %s", error.strerror or error)

    def _report_thread(self, failure: threading.ExceptHookArgs) -> None:
        """What the writer's thread meets on a full disk is raised in ours too: not shown twice."""
        if not isinstance(failure.exc_value, OSError):
            self._excepthook(failure)


def _open(folder: Path, first_step: int) -> SummaryWriter | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        _log.warning("no TensorBoard files are written (%s); install it with: pip install tensorboard", error)
        return None
    try:
        _put_before(folder, int(time.time()))
        return SummaryWriter(str(folder), purge_step=first_step + 1)
    except OSError as error:
        _log.warning("no TensorBoard files are written: %s", error.strerror or error)
        return None


def _put_before(folder: Path, now: int) -> None:
    """Give files that are not older than now by their names an earlier time: the clock may have gone back.

    TensorBoard reads files in the order of their names, and a later one takes back steps of an earlier one.
    """
    found = [_STAMPED.fullmatch(path.name) for path in folder.glob("events.out.tfevents.*")]
    stamps: list[tuple[re.Match[str], int]] = []
    for match in sorted((one for one in found if one), key=lambda one: one[0], reverse=True):
        now = min(int(match[1]), now - 1)
        stamps.append((match, now))
    for match, stamp in reversed(stamps):  # the oldest first: no name is taken when it is given
        if stamp != int(match[1]):
            (folder / match[0]).rename(folder / f"events.out.tfevents.{stamp:010d}.{match[2]}")
