"""The loop: update, log, validate, save, stop, continue.

Decoding is a higher skill than training knows: the caller hands in a function that translates the validation
set with the model as it stands and scores the result. All state of the loop is `Progress`, plain JSON.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer_mt.checkpoint import newest_valid, rotate, saved_steps
from transformer_mt.checkpoint_files import Checkpoint, folder_of, read_recipe
from transformer_mt.config import Recipe, TrainingConfig
from transformer_mt.data.batch import Batch
from transformer_mt.errors import EXIT_INTERRUPTED, EXIT_TERMINATED, CheckpointError, DivergenceError
from transformer_mt.runtime.device import peak_memory
from transformer_mt.text.tokenizer import Tokenizers
from transformer_mt.text.trained_on import TrainedOn
from transformer_mt.training.divergence import FINITE, where_not_finite
from transformer_mt.training.logbook import Logbook, Record, Totals
from transformer_mt.training.probes import probe
from transformer_mt.training.signals import BrokenOff, Signals
from transformer_mt.training.state import (
    HIGHER_IS_BETTER,
    Progress,
    point,
    restore_state,
    write_state,
    writing_in,
)
from transformer_mt.training.step import Updater
from transformer_mt.training.stream import MicroBatches
from transformer_mt.training.validation import ValidationLoss, loss_sums

# Updates in a row that may be non-finite (fp16 needs some while its scale comes down) before training ends.
MAX_SKIPPED_IN_ROW = 20
_NUM_SAMPLES = 20

Translate = Callable[[], Any]
"""This process's share of the validation set, translated by the model as it stands."""
Score = Callable[[Any], tuple[list[str], dict[str, float]]]
"""What `Translate` gave each process -> all translations, and their scores."""


@dataclass(frozen=True)
class ValidationSet:
    """Batches for the loss (this process's share), raw text for people, what translates and what scores."""

    batches: Sequence[Batch]
    pairs: Sequence[tuple[str, str]]
    translate: Translate
    score: Score
    signatures: Mapping[str, str]


class Interrupted(Exception):
    """A signal asked the run to stop; everything is saved."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.exit_code = EXIT_INTERRUPTED if signal_number == signal.SIGINT else EXIT_TERMINATED


class Trainer:
    """Trains one model in one run directory."""

    def __init__(
        self,
        *,
        recipe: Recipe,
        run_dir: Path,
        model: nn.Module,
        tokenizers: Tokenizers,
        trained_on: TrainedOn,
        updater: Updater,
        stream: Callable[[int, int], MicroBatches],
        validation: ValidationSet,
        pictures: Callable[[Logbook, int], None],
        origins: Callable[[Iterable[int]], list[str]],
    ) -> None:
        """stream: (epoch, position) -> micro-batches from there on; origins: examples -> their file:line."""
        self.recipe, self.config, self.run_dir = recipe, recipe.training, run_dir
        self.model, self.tokenizers, self.updater = model, tokenizers, updater
        self.trained_on = trained_on
        self.validation, self.pictures, self._origins = validation, pictures, origins
        self.progress = Progress()
        self._ranks = updater.ranks
        self._open_stream = stream
        self._spoilt = False  # by the last update: nothing that a divergence should go back to
        self._signals = Signals()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint of this run, bit for bit; with another max_tokens at the epoch's start.

        Raises:
            CheckpointError: it was trained with other tokenizers than the data have now.
        """
        self.progress = restore_state(checkpoint, self.model, self.updater, self.tokenizers)
        if read_recipe(checkpoint.folder).training.token_budget != self.config.token_budget:
            self.progress.position = 0  # batches of other sizes cannot be counted on from here
        if self._ranks.first:
            point(self.run_dir, self.progress, self.config.metric)  # a kill may have come before this

    @property
    def finished(self) -> bool:
        """True where there is nothing more to train or to validate."""
        if self.progress.validation_due:
            return False
        return self.progress.step >= self.config.max_steps or self._out_of_patience

    @property
    def _out_of_patience(self) -> bool:
        return 0 < self.config.patience <= self.progress.validations_without_better

    def train(self, logbook: Logbook) -> None:
        """Train until the last step, until patience runs out, or until a signal.

        Raises:
            DivergenceError: too many updates in a row were not finite, or perplexity is beyond all reason.
            Interrupted: a signal came; the state is saved.
            CheckpointError: the last checkpoint cannot be written.
        """
        progress = self.progress
        stream, due = self._open_stream(progress.epoch, progress.position), False
        with self._signals, closing(stream):
            while not self.finished:
                best_before, better = (progress.best_value, progress.best_step), False
                if not progress.validation_due:
                    self._update(stream, logbook)
                if progress.validation_due and not self._agreed_signal():
                    better = self._validate(logbook)
                stop = self._agreed_signal()  # read once: a signal after this waits for the next update
                ends = bool(stop) or self.finished
                due = due or progress.step % self.config.save_every == 0
                if ends or better or (due and not self._spoilt):
                    self._save_or_go_on(logbook, best_before, must=ends)
                    due = False
                if stop and not self.finished:
                    logbook.say(f"stopped by {signal.Signals(stop).name} after step {progress.step}, saved")
                    raise Interrupted(stop)

    def _save_or_go_on(self, logbook: Logbook, best_before: tuple[float | None, int], *, must: bool) -> None:
        """Save; where that fails and it need not be, say so and train on.

        Of several processes the first does it, for all have the same; the others wait, however long it takes.

        Args:
            logbook: is told; its records come to the disk first.
            best_before: value and step; they are best again where a better one could not be saved.
            must: whether training ends with this.
        """
        failure = ""
        with self._ranks.one_after_the_first():
            if self._ranks.first:
                try:
                    self._save(logbook)
                except CheckpointError as error:
                    if must:
                        raise
                    failure = str(error).partition(";")[0]
        failure = self._ranks.gathered(failure)[0]
        if failure:
            self.progress.best_value, self.progress.best_step = best_before
            logbook.say(f"training goes on after step {self.progress.step}, which is not saved: {failure}")

    def _save(self, logbook: Logbook) -> None:
        """Write a checkpoint of the current step, move the pointers, and delete what is not kept."""
        with writing_in(self.run_dir):
            logbook.sync()
        write_state(
            self.run_dir,
            self.progress,
            self.model,
            self.updater,
            recipe=self.recipe,
            tokenizers=self.tokenizers,
            trained_on=self.trained_on,
        )
        with writing_in(self.run_dir):
            point(self.run_dir, self.progress, self.config.metric)
        # The step itself too: after a roll-back damaged checkpoints of later steps may still stand here.
        kept, every = [self.progress.best_step, self.progress.step], self.config.keep_every
        rotate(self.run_dir, self.config.keep_last, kept, keep_every=every)

    def _update(self, stream: MicroBatches, logbook: Logbook) -> None:
        progress, config = self.progress, self.config
        started = time.perf_counter()
        batches = stream.take(config.update_freq)
        update = self.updater.run(
            progress.step + 1, batches, skipped=progress.skipped, rate_factor=0.5**progress.rollbacks
        )
        seconds = time.perf_counter() - started
        progress.step += 1
        progress.epoch, progress.position = stream.epoch, stream.position
        progress.tokens += update.num_tokens
        progress.seconds += seconds
        progress.totals.add(update, seconds)
        # One that guesses has log(vocabulary); above twice that weights have run away, in warm-up too.
        nll = update.nll_sum / max(update.num_tokens, 1)
        self._spoilt = not update.applied or nll > 2 * math.log(self.tokenizers.tgt.vocab_size)
        logbook.advance()
        if update.pieces > 1:
            logbook.say(
                f"step {progress.step}: the memory did not hold it; done again with every micro-batch cut "
                f"into {update.pieces}; a smaller training.max_tokens saves that time"
            )
        self._probe(logbook, batches[0])
        if update.applied:
            progress.skipped_in_row = 0
        else:
            self._count_skipped(logbook, batches)
        if progress.step % config.log_every == 0 or progress.step == config.max_steps:
            record = progress.totals.record(progress.step, update, peak_memory(self.updater.device))
            logbook.training(record)
            progress.totals = Totals()
            self._check_perplexity(logbook, record, batches)
        progress.validation_due = (
            progress.step % config.validate_every == 0 or progress.step >= config.max_steps
        )

    def _probe(self, logbook: Logbook, batch: Batch) -> None:
        """Look at the attention, where that is due; its time counts in no speed."""
        step, every, updater = self.progress.step, self.config.probe_every, self.updater
        if every and step % every == 0 and self._ranks.first:
            with _uncompiled(self.config):
                logbook.probe({"step": step, **probe(self.model, batch, updater.precision, updater.device)})

    def _count_skipped(self, logbook: Logbook, batches: Sequence[Batch]) -> None:
        progress = self.progress
        progress.skipped += 1
        progress.skipped_in_row += 1
        logbook.note("skipped", progress.step)
        logbook.say(f"step {progress.step}: loss or gradient was not finite; the weights were left alone")
        if progress.skipped_in_row >= MAX_SKIPPED_IN_ROW:
            findings = self._ranks.gathered(where_not_finite(self.updater, progress.step, batches))
            where = next((finding for finding in findings if finding != FINITE), FINITE)
            what = f"loss or gradient was not finite in {MAX_SKIPPED_IN_ROW} updates in a row"
            raise self._diverged(logbook, f"{what}; {where}", batches)

    def _check_perplexity(self, logbook: Logbook, record: Record, batches: Sequence[Batch]) -> None:
        """A model that knows nothing at all has the size of the vocabulary as its perplexity."""
        size, perplexity = self.tokenizers.tgt.vocab_size, record["ppl"]
        if perplexity is not None and perplexity > 2 * size and record["step"] > self.config.warmup_steps:
            what = f"perplexity is {perplexity:.3g} after warm-up, more than twice the vocabulary of {size:,}"
            raise self._diverged(logbook, what, batches)

    def _diverged(self, logbook: Logbook, what: str, batches: Sequence[Batch]) -> DivergenceError:
        """The error that names the batch, and where to go back to."""
        step = self.progress.step
        own = self._origins(index for batch in batches for index in batch.indices)
        pairs = [pair for share in self._ranks.gathered(own) for pair in share]
        logbook.say(f"pairs of step {step}: {', '.join(pairs)}")
        saved = saved_steps(self.run_dir)
        remedy = "no checkpoint was saved yet: start anew with a smaller"
        if saved:
            remedy = f"the same command goes back to {folder_of(self.run_dir, saved[-1])}: give it a smaller"
        precision = "" if self.updater.precision == "fp32" else ", or start anew with training.precision=fp32"
        return DivergenceError(
            f"{self.run_dir}: diverged at step {step}: {what}; its batch was {pairs[0]} and {len(pairs) - 1} "
            f"pairs more (train.log names them all); {remedy} training.learning_rate{precision}"
        )

    def go_back(self) -> bool:
        """Stand where the newest checkpoint stands, with half the learning rate from there on.

        Returns:
            False where the recipe does not allow it (any more), or there is no checkpoint.

        Raises:
            ConfigError: several processes find different checkpoints.
        """
        rollbacks = self.progress.rollbacks + 1
        checkpoint = newest_valid(self.run_dir) if rollbacks <= self.config.max_rollbacks else None
        self._ranks.agreed(
            checkpoint.step if checkpoint else None,
            f"both are said to be the newest checkpoint of {self.run_dir}, which must be the same folder for "
            "every process, on a disk that all machines share; run the same command again to continue",
        )
        if checkpoint is None:
            return False
        self.restore(checkpoint)
        self.progress.rollbacks, self.progress.skipped_in_row = rollbacks, 0
        return True

    def _validate(self, logbook: Logbook) -> bool:
        """Measure, record, draw; True where the metric is the best so far.

        A signal breaks it off, which changes nothing: it is still due.
        """
        progress, started = self.progress, time.perf_counter()
        try:
            loss, translations, scores = self._measure(logbook)
        except BrokenOff:
            return False
        progress.validation_due = False
        record: dict[str, Any] = {**asdict(loss), **scores}
        value = float(record[self.config.metric])
        better = _is_better(self.config.metric, value, progress.best_value)
        if better:
            progress.best_value, progress.best_step = value, progress.step
            progress.validations_without_better = 0
        else:
            progress.validations_without_better += 1
        progress.seconds += time.perf_counter() - started
        logbook.validation(
            {
                "step": progress.step,
                **record,
                "best": progress.best_value,
                "best_step": progress.best_step,
                "epoch": progress.epoch,
                "target_tokens": progress.tokens,
                "seconds": progress.seconds,
            }
        )
        rows = [(s, r, t) for (s, r), t in zip(self.validation.pairs, translations, strict=True)]
        logbook.samples(progress.step, rows[:_NUM_SAMPLES])
        return better

    def _measure(self, logbook: Logbook) -> tuple[ValidationLoss, list[str], dict[str, float]]:
        """Loss, translations and scores of the validation set, by the weights that `translate` would use.

        Raises:
            BrokenOff: a signal came to any process while it was busy with its own share.
        """
        validation, updater, was_training = self.validation, self.updater, self.model.training
        num_chars = sum(len(tgt) + 1 for _, tgt in validation.pairs)
        with _uncompiled(self.config), _averaged(updater):
            done = False
            with suppress(BrokenOff), self._signals.breaking_off():
                sums = loss_sums(updater.loss_module, validation.batches, updater.precision, updater.device)
                self.model.eval()
                share = validation.translate()
                done = True
            if self._ranks.largest(not done):
                raise BrokenOff
            nll_sum, num_tokens = self._ranks.sums(*sums)
            loss = ValidationLoss.of(nll_sum, num_tokens, num_chars)
            translations, scores = validation.score(share)
            with self._ranks.one_after_the_first():
                if self._ranks.first:
                    self.pictures(logbook, self.progress.step)
            self.model.train(was_training)
        return loss, translations, scores

    def _agreed_signal(self) -> int:
        """The signal that any process has got, 0 for none; all see it after the same update."""
        return self._ranks.largest(self._signals.number)


def _uncompiled(config: TrainingConfig) -> AbstractContextManager[object]:
    """Context for passes without gradients, whose modes and shapes would each be compiled anew."""
    return torch.compiler.set_stance("force_eager") if config.compile else nullcontext()


def _averaged(updater: Updater) -> Any:
    """Context with the weights that validation uses: averaged ones where there are."""
    return updater.ema.swapped() if updater.ema is not None else torch.no_grad()


def _is_better(metric: str, value: float, best: float | None) -> bool:
    """Strictly better, unrounded; a value that is not finite never is."""
    if not math.isfinite(value):
        return False
    return best is None or (value > best if metric in HIGHER_IS_BETTER else value < best)
