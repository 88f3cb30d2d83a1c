"""What a run tells people: progress bar or log lines, train.log, metrics.jsonl, TensorBoard, text samples.

On a terminal there is one bar; on a pipe one plain line per log step. `metrics.jsonl` holds every record
once: records past the step a run continues from are cut off before they are written again.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from transformer_mt.json_file import json_text
from transformer_mt.training.step import Update
from transformer_mt.training.validation import perplexity

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch.utils.tensorboard import SummaryWriter

_log = logging.getLogger("transformer_mt")

Record = Mapping[str, Any]
"""Step and measures, numbers all; None for a measure that there is none of."""


@dataclass
class Totals:
    """Sums over the updates since the last log line. Saved with a checkpoint, so that a continued run writes
    the record that an uninterrupted one would have written."""

    loss_sum: float = 0.0
    nll_sum: float = 0.0
    finite_tokens: int = 0
    tokens: int = 0
    src_tokens: int = 0
    padded_tokens: int = 0
    skipped: int = 0
    seconds: float = 0.0

    def add(self, update: Update, seconds: float) -> None:
        """Count one update in."""
        if update.applied:
            self.loss_sum += update.loss_sum
            self.nll_sum += update.nll_sum
            self.finite_tokens += update.num_tokens
        self.tokens += update.num_tokens
        self.src_tokens += update.num_src_tokens
        self.padded_tokens += update.padded_tokens
        self.skipped += not update.applied
        self.seconds += seconds

    def record(self, step: int, last: Update, peak_bytes: int) -> Record:
        """One metrics record; losses per target token, `tokens_per_second` of real target tokens.

        Where every update was skipped, nothing was learned and there is no loss.
        """
        tokens = self.finite_tokens
        return {
            "step": step,
            "loss": self.loss_sum / tokens if tokens else None,
            "nll": self.nll_sum / tokens if tokens else None,
            "ppl": perplexity(self.nll_sum / tokens) if tokens else None,
            "grad_norm": last.grad_norm,
            "learning_rate": last.learning_rate,
            "tokens": self.tokens,
            "tokens_per_second": self.tokens / max(self.seconds, 1e-9),
            "padding": 1.0 - (self.tokens + self.src_tokens) / max(self.padded_tokens, 1),
            "peak_gib": peak_bytes / 2**30,
            "skipped": self.skipped,
        }


class Logbook:
    """Writes all of it; use as a context manager."""

    def __init__(self, run_dir: Path, first_step: int, max_steps: int) -> None:
        """first_step: steps already done, 0 in a new run; later records are removed from the files."""
        self._metrics = run_dir / "metrics.jsonl"
        self._samples = run_dir / "samples"
        _cut(self._metrics, first_step)
        self._stream = open(self._metrics, "a", encoding="utf-8")  # noqa: SIM115 (closed in close)
        self._excepthook = threading.excepthook
        threading.excepthook = self._report_thread
        self._board = _open_board(run_dir / "tensorboard", first_step)
        self._file = logging.FileHandler(run_dir / "train.log", encoding="utf-8")
        self._file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        _log.addHandler(self._file)
        self._bar = tqdm(total=max_steps, initial=first_step, unit="step", disable=None, file=sys.stderr)
        self._max_steps = max_steps
        self._started, self._first_step = time.perf_counter(), first_step

    def __enter__(self) -> Logbook:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        if self._board:
            self._board.close()
        threading.excepthook = self._excepthook
        self._stream.close()
        _log.removeHandler(self._file)
        self._file.close()

    def advance(self) -> None:
        """One update is done."""
        self._bar.update(1)

    def training(self, record: Record) -> None:
        """A record of training, every `log_every` updates."""
        step = int(record["step"])
        self._write("train", record)
        per_step = (time.perf_counter() - self._started) / max(step - self._first_step, 1)
        if record["loss"] is None:
            learned = f"nothing learned, all {record['skipped']} updates skipped,"
        else:
            learned = f"loss {record['loss']:.3f} ppl {record['ppl']:.2f}"
        line = (
            f"{learned} {record['tokens_per_second']:,.0f} tok/s pad {record['padding']:.1%} "
            f"lr {record['learning_rate']:.2e} |g| {record['grad_norm']:.2f} mem {record['peak_gib']:.2f} GiB"
        )
        if record["skipped"] and record["loss"] is not None:
            line += f" skipped {record['skipped']}"
        self._bar.set_postfix_str(line)
        eta = tqdm.format_interval((self._max_steps - step) * per_step)
        self.say(f"step {step}/{self._max_steps} {line} eta {eta}", on_terminal=False)

    def validation(self, record: Record) -> None:
        """A record of one validation."""
        self._write("valid", record)
        shown = " ".join(
            f"{key} {'none' if value is None else format(value, '.4g')}"
            for key, value in record.items()
            if key != "step"
        )
        self.say(f"step {record['step']} validation: {shown}")

    def samples(self, step: int, rows: Sequence[tuple[str, str, str]]) -> None:
        """Source, reference and translation of fixed validation lines."""
        self._samples.mkdir(exist_ok=True)
        lines = ["source\treference\ttranslation", *("\t".join(_cell(text) for text in row) for row in rows)]
        (self._samples / f"step_{step:08d}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        text = "\n\n".join(f"**{_cell(s)}**  \n{_cell(r)}  \n*{_cell(t)}*" for s, r, t in rows[:8])
        if self._board:
            self._board.add_text("samples", text, step)

    def picture(self, name: str, figure: Figure, step: int) -> None:
        """A matplotlib figure for TensorBoard."""
        if self._board:
            self._board.add_figure(name, figure, step)

    def say(self, message: str, *, on_terminal: bool = True) -> None:
        """A line for train.log, and for people: above the bar on a terminal, plainly on a pipe."""
        if self._bar.disable:
            _log.info(message)
            return
        record = _log.makeRecord(_log.name, logging.INFO, __file__, 0, message, (), None)
        self._file.emit(record)
        if on_terminal:
            self._bar.write(message, file=sys.stderr)

    def _report_thread(self, failure: threading.ExceptHookArgs) -> None:
        """What TensorBoard's writer thread meets on a full disk is raised in ours too: not shown twice."""
        if not isinstance(failure.exc_value, OSError):
            self._excepthook(failure)

    def _write(self, kind: str, record: Record) -> None:
        self._stream.write(json_text({"kind": kind, "time": round(time.time(), 3), **record}) + "\n")
        self._stream.flush()
        for key, value in record.items():
            if self._board and key != "step" and value is not None:
                self._board.add_scalar(f"{kind}/{key}", value, int(record["step"]))


class SilentLogbook(Logbook):
    """For all processes but the first of several that train together: that one speaks and writes for all."""

    def __init__(self) -> None:
        """Nothing is opened."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was opened."""

    def advance(self) -> None:
        """Silent."""

    def training(self, record: Record) -> None:
        """Silent."""

    def validation(self, record: Record) -> None:
        """Silent."""

    def samples(self, step: int, rows: Sequence[tuple[str, str, str]]) -> None:
        """Silent."""

    def picture(self, name: str, figure: Figure, step: int) -> None:
        """Silent."""

    def say(self, message: str, *, on_terminal: bool = True) -> None:
        """Silent."""


def _open_board(folder: Path, first_step: int) -> SummaryWriter | None:
    """The writer of curves and pictures; a broken installation costs those, not the training."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        _log.warning("no TensorBoard files are written (%s); install it with: pip install tensorboard", error)
        return None
    return SummaryWriter(str(folder), purge_step=first_step + 1)


def _cell(text: str) -> str:
    """A text as one TSV cell."""
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")


def _cut(path: Path, last_step: int) -> None:
    """Drop records after `last_step`, and a last line that a kill left half-written."""
    if not path.exists():
        return
    kept = []
    for line in path.read_bytes().split(b"\n"):
        try:
            if json.loads(line)["step"] <= last_step:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue
    temporary = path.with_name(".writing-metrics.jsonl")
    temporary.write_bytes(b"".join(line + b"\n" for line in kept))
    temporary.replace(path)
