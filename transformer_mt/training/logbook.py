"""What a run tells people: progress bar or log lines, train.log, records, curves, text samples.

On a terminal there is one bar; on a pipe one plain line per log step. A full disk costs lines of train.log
and samples, never the training.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from transformer_mt.json_file import write_text
from transformer_mt.training.curves import Curves
from transformer_mt.training.records import Records
from transformer_mt.training.step import Update
from transformer_mt.training.validation import perplexity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

    def __init__(self, run_dir: Path, first_step: int, max_steps: int, *, validated: bool = True) -> None:
        """Open all.

        Args:
            run_dir: of the run.
            first_step: steps already done, 0 in a new run; what was written of later ones is removed.
            max_steps: where training ends.
            validated: False where the validation of the first step is made again.
        """
        self._records = Records(run_dir / "metrics.jsonl", first_step, validated=validated)
        self._samples = run_dir / "samples"
        self._curves = Curves(run_dir / "tensorboard", first_step)
        self._file = _LogFile(run_dir / "train.log", encoding="utf-8")
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
        self._curves.close()
        self._records.close()
        _log.removeHandler(self._file)
        with contextlib.suppress(OSError):
            self._file.close()

    def sync(self) -> None:
        """Bring every record to the disk, before a checkpoint counts on them.

        Raises:
            OSError: it is full.
        """
        self._records.sync()

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

    def probe(self, record: Record) -> None:
        """A record of one probe of the attention; it is drawn and not said."""
        self._write("probe", record)

    def note(self, kind: str, step: int) -> None:
        """Something that the records shall tell of a step: `skipped` for an update that was not finite,
        `diverged` for the end of a training that could not go on."""
        self._write(kind, {"step": step})

    def samples(self, step: int, rows: Sequence[tuple[str, str, str]]) -> None:
        """Source, reference and translation of fixed validation lines."""
        lines = ["source\treference\ttranslation", *("\t".join(_cell(text) for text in row) for row in rows)]
        try:
            self._samples.mkdir(exist_ok=True)
            write_text(self._samples / f"step_{step:08d}.tsv", "\n".join(lines) + "\n")
        except OSError as error:
            self.say(f"no samples are written: {error.strerror or error}")
        text = "\n\n".join(f"**{_cell(s)}**  \n{_cell(r)}  \n*{_cell(t)}*" for s, r, t in rows[:8])
        self._curves.text("samples", text, step)

    def picture(self, name: str, figure: Figure, step: int) -> None:
        """A matplotlib figure for TensorBoard."""
        self._curves.picture(name, figure, step)

    def say(self, message: str, *, on_terminal: bool = True) -> None:
        """A line for train.log, and for people: above the bar on a terminal, plainly on a pipe."""
        if self._bar.disable:
            _log.info(message)
            return
        record = _log.makeRecord(_log.name, logging.INFO, __file__, 0, message, (), None)
        self._file.emit(record)
        if on_terminal:
            self._bar.write(message, file=sys.stderr)

    def _write(self, kind: str, record: Record) -> None:
        self._records.add({"kind": kind, "time": round(time.time(), 3), **record})
        self._curves.numbers(kind, record)


class SilentLogbook(Logbook):
    """For all processes but the first of several that train together: that one speaks and writes for all."""

    def __init__(self) -> None:
        """Nothing is opened."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was opened."""

    def sync(self) -> None:
        """Nothing was written."""

    def advance(self) -> None:
        """Silent."""

    def training(self, record: Record) -> None:
        """Silent."""

    def validation(self, record: Record) -> None:
        """Silent."""

    def probe(self, record: Record) -> None:
        """Silent."""

    def note(self, kind: str, step: int) -> None:
        """Silent."""

    def samples(self, step: int, rows: Sequence[tuple[str, str, str]]) -> None:
        """Silent."""

    def picture(self, name: str, figure: Figure, step: int) -> None:
        """Silent."""

    def say(self, message: str, *, on_terminal: bool = True) -> None:
        """Silent."""


class _LogFile(logging.FileHandler):
    """train.log."""

    def handleError(self, record: logging.LogRecord) -> None:
        """A line that a full disk does not take was shown all the same."""


def _cell(text: str) -> str:
    """A text as one TSV cell."""
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")
