"""What the loop must remember, in a checkpoint and back from it, bit for bit.

A checkpoint holds the weights that `translate` uses, beside them the raw ones where these are averaged, the
optimizer's tensors, the loss scale, and `Progress` as plain JSON. When it is written is the trainer's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from torch import nn

from transformer_mt.checkpoint import TRAINED_ON, load_weights
from transformer_mt.checkpoint_files import Checkpoint, save_checkpoint
from transformer_mt.config import Recipe
from transformer_mt.errors import CheckpointError
from transformer_mt.json_file import write_json
from transformer_mt.text.tokenizer import Tokenizers
from transformer_mt.text.trained_on import TrainedOn
from transformer_mt.training.logbook import Totals
from transformer_mt.training.optimizer import optimizer_tensors, restore_optimizer
from transformer_mt.training.step import Updater

PROCESSES = "processes"
"""The key of a checkpoint's scalars that says how many processes wrote it together."""

HIGHER_IS_BETTER = ("bleu", "chrf")
"""Metrics of validation; of all others the lower value is the better one."""


@dataclass
class Progress:
    """Where a run stands; everything the loop must remember."""

    step: int = 0
    epoch: int = 1
    position: int = 0
    tokens: int = 0
    skipped: int = 0
    skipped_in_row: int = 0
    seconds: float = 0.0
    best_value: float | None = None
    best_step: int = 0
    validations_without_better: int = 0
    validation_due: bool = False
    ema_updates: int = 0
    rollbacks: int = 0
    totals: Totals = field(default_factory=Totals)


def restore_state(
    checkpoint: Checkpoint, model: nn.Module, updater: Updater, tokenizers: Tokenizers
) -> Progress:
    """Put a model and all that updates it where a checkpoint stands.

    Raises:
        CheckpointError: it was trained with other tokenizers than the data have now.
    """
    if checkpoint.scalars["tokenizers"] != [side.fingerprint for side in tokenizers]:
        raise CheckpointError(
            f"{checkpoint.folder}: was trained with another vocabulary than the one learned now from the "
            "same text; put back the old prepared data, or start anew with --overwrite"
        )
    saved = dict(checkpoint.scalars["progress"])
    progress = Progress(**{**saved, "totals": Totals(**saved["totals"])})
    ema = updater.ema
    raw = {name.removeprefix("raw."): t for name, t in checkpoint.state.items() if name.startswith("raw.")}
    load_weights(model, raw if ema else checkpoint.weights, checkpoint.folder)
    if ema is not None:
        ema.load(checkpoint.weights, progress.ema_updates)
    restore_optimizer(updater.optimizer, model, checkpoint.state)
    if checkpoint.scalars["scaler"]:
        updater.scaler.load_state_dict(checkpoint.scalars["scaler"])
    return progress


def write_state(
    run_dir: Path,
    progress: Progress,
    model: nn.Module,
    updater: Updater,
    *,
    recipe: Recipe,
    tokenizers: Tokenizers,
    trained_on: TrainedOn,
) -> None:
    """Write the checkpoint of the step that training stands at.

    Raises:
        CheckpointError: it cannot be written.
    """
    ema = updater.ema
    raw = {name: weight.detach() for name, weight in model.named_parameters()}
    state = optimizer_tensors(updater.optimizer, model)
    if ema is not None:
        progress.ema_updates = ema.updates
        state |= {f"raw.{name}": weight for name, weight in raw.items()}
    save_checkpoint(
        run_dir,
        progress.step,
        weights=raw if ema is None else ema.tensors(),
        state=state,
        scalars={
            "progress": asdict(progress),
            "scaler": updater.scaler.state_dict(),
            TRAINED_ON: trained_on.as_json(),
            PROCESSES: updater.ranks.world,
        },
        recipe=recipe,
        tokenizers=tokenizers,
    )


def point(run_dir: Path, progress: Progress, metric: str) -> None:
    """Move latest.json and best.json to where a run stands."""
    write_json(run_dir / "latest.json", {"step": progress.step})
    if progress.best_step:
        better = "higher" if metric in HIGHER_IS_BETTER else "lower"
        best = {"step": progress.best_step, "metric": metric, "value": progress.best_value}
        write_json(run_dir / "best.json", {**best, "better": better})


@contextmanager
def writing_in(run_dir: Path) -> Iterator[None]:
    """Around what is written beside a checkpoint: a full disk is told as one that takes no checkpoint."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{run_dir}: cannot be written: {error.strerror or error}; free some space and run the "
            "command again"
        ) from None
