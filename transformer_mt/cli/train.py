"""`train`: run, continue or rehearse a training."""

from __future__ import annotations

import argparse
import io
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt.cli.stream_output import show
from transformer_mt.config import Recipe
from transformer_mt.errors import EXIT_OK, CheckpointError, ConfigError, DivergenceError
from transformer_mt.recipe import dump_recipe, load_recipe

if TYPE_CHECKING:
    import torch

    from transformer_mt.checkpoint_files import Checkpoint
    from transformer_mt.data.prepare import PreparedData
    from transformer_mt.runtime.distributed import Ranks
    from transformer_mt.training.logbook import Logbook
    from transformer_mt.training.state import Progress
    from transformer_mt.training.trainer import Trainer

HELP = "train a model by a recipe; the same command again continues where it stopped"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of this verb."""
    parser.add_argument("recipe", metavar="RECIPE", help="YAML recipe")
    parser.add_argument("overrides", metavar="KEY=VALUE", nargs="*", help="recipe keys to override")
    parser.add_argument("--device", help="cpu, cuda or cuda:N (default: a GPU where there is one)")
    parser.add_argument("--overwrite", action="store_true", help="delete the old run in run_dir, start anew")
    parser.add_argument("--init-from", metavar="RUN", help="start with the weights and tokenizer of a run")
    parser.add_argument(
        "--dry-run", action="store_true", help="report data, model, memory and time; train nothing"
    )
    parser.add_argument("--print-config", action="store_true", help="print the resolved recipe and stop")


def run(args: argparse.Namespace) -> int:
    """Train. Returns 0, or 130/143 when a signal stopped it and everything is saved."""
    recipe = load_recipe(args.recipe, args.overrides)
    if args.print_config:
        show(dump_recipe(recipe).removesuffix("\n"))
        return EXIT_OK

    from transformer_mt.runtime.distributed import joined

    with joined(recipe.training.process_timeout) as ranks:
        return _run(recipe, args, ranks)


def _run(recipe: Recipe, args: argparse.Namespace, ranks: Ranks) -> int:
    """Do what the command asks for, in one or in each of several processes; the first one speaks for all."""
    from transformer_mt.checkpoint import find_checkpoint
    from transformer_mt.data.prepare import prepare
    from transformer_mt.model.build import head_warning
    from transformer_mt.runtime.device import (
        is_out_of_memory,
        pick_device,
        pick_precision,
        set_up_process,
    )
    from transformer_mt.training.run_directory import check_usable, locked, stored_precision

    run_dir = Path(recipe.run_dir)
    if not ranks.first:
        logging.getLogger("transformer_mt").setLevel(logging.ERROR)
    if args.dry_run and ranks.world > 1:
        raise ConfigError("--dry-run: rehearses in one process; start it without torchrun")
    if ranks.restarted:
        args.overwrite = False  # what the first attempt saved is the run now
    if args.init_from and Path(args.init_from).resolve().is_relative_to(run_dir.resolve()):
        raise ConfigError(f"--init-from {args.init_from}: lies in run_dir {run_dir}; name another run_dir")
    check_usable(run_dir, overwrite=args.overwrite)
    set_up_process()
    device = pick_device(args.device, ranks)
    precision: str = recipe.training.precision
    if precision == "auto" and not args.overwrite:
        precision = stored_precision(run_dir)
    recipe = _replace(recipe, "training", precision=pick_precision(precision, device))
    if args.init_from:
        find_checkpoint(args.init_from)
    if args.init_from and recipe.tokenizer.from_ is None:
        recipe = _replace(recipe, "tokenizer", from_=str(Path(args.init_from).resolve()))
    say = partial(print, file=sys.stderr if ranks.first else io.StringIO())
    with ranks.one_after_the_first():
        prepared = prepare(recipe, log=say)
    for warning in (head_warning(recipe.model), *_remarks_on_scores(recipe, prepared)):
        if warning:
            say(f"transformer-mt: warning: {warning}")
    try:
        recipe = _with_budget(recipe, prepared, device, args, ranks)
        if args.dry_run:
            return _rehearse(recipe, prepared, device)
        with locked(run_dir) if ranks.first else nullcontext():
            return _train(recipe, prepared, device, args, ranks)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise ConfigError(
            f"{args.recipe}: the model or a batch does not fit into the memory of {device}; "
            "lower training.max_tokens (and raise training.update_freq as much), or set "
            "training.gradient_checkpointing, and the same command goes on; or take a smaller model"
        ) from None


def _with_budget(
    recipe: Recipe, prepared: PreparedData, device: torch.device, args: argparse.Namespace, ranks: Ranks
) -> Recipe:
    """The recipe with `max_tokens: auto` resolved, once for a run: the least that a process finds."""
    from transformer_mt.cli.build_trainer import build_updater, open_stream
    from transformer_mt.runtime.memory import usable_memory
    from transformer_mt.training.run_directory import belongs_to_run, stored_recipe
    from transformer_mt.training.token_budget import budget_of

    run_dir = Path(recipe.run_dir)
    if recipe.training.max_tokens != "auto":
        return recipe
    if belongs_to_run(run_dir) and not args.overwrite:
        return _replace(recipe, "training", max_tokens=stored_recipe(run_dir).training.max_tokens)
    _, updater = build_updater(recipe, prepared, device)
    memory = usable_memory(device)
    budget = budget_of(
        updater,
        prepared.train,
        lambda tokens: open_stream(_replace(recipe, "training", max_tokens=tokens), prepared)(1, 0),
        memory.limit,
    )
    tokens = -ranks.largest(-budget.tokens)
    if ranks.first:
        print(
            f"training.max_tokens auto: {tokens:,} tokens take about {budget.bytes / 2**30:.1f} of "
            f"{memory.limit / 2**30:.1f} GiB ({memory.reason})",
            file=sys.stderr,
        )
    return _replace(recipe, "training", max_tokens=tokens)


def _remarks_on_scores(recipe: Recipe, prepared: PreparedData) -> tuple[str | None, str | None]:
    """What will make the scores of validation incomparable: better said before training."""
    from transformer_mt.evaluation.scores import tokenised_remark, tokenizer_remark

    references = [target for _, target in prepared.valid_pairs()]
    return tokenizer_remark(recipe.data.tgt_lang), tokenised_remark("validation text", references)


def _train(
    recipe: Recipe, prepared: PreparedData, device: torch.device, args: argparse.Namespace, ranks: Ranks
) -> int:
    from transformer_mt.checkpoint import newest_valid
    from transformer_mt.cli.build_trainer import build_trainer
    from transformer_mt.json_file import read_json
    from transformer_mt.training.run_directory import belongs_to_run, check_continues, clear, describe

    run_dir = Path(recipe.run_dir)
    continuing = belongs_to_run(run_dir) and not args.overwrite
    changes = check_continues(run_dir, recipe, prepared.fingerprint) if continuing else []
    with ranks.one_after_the_first():  # it holds the directory, and puts right what a kill has left there
        checkpoint = None if args.overwrite else newest_valid(run_dir)
    if checkpoint and not continuing:
        raise CheckpointError(
            f"{run_dir}: holds checkpoints but no config.yaml; put back that of the newest checkpoint, or "
            "name another run_dir"
        )
    # Also the end of reading: from here on the first process may write into the run directory.
    ranks.agreed(
        {"data": prepared.fingerprint, "step": checkpoint.step if checkpoint else None},
        "data.root and run_dir must be the same folders for every process, on a disk that all machines share",
    )
    trainer = build_trainer(recipe, prepared, device, ranks)
    if checkpoint:
        trainer.restore(checkpoint)
    elif args.init_from:
        _initialise_from(trainer, args.init_from)
    if args.overwrite and ranks.first:
        clear(run_dir)  # only now: what cannot be started must not cost the old run
    info = {
        "data_fingerprint": prepared.fingerprint,
        "training_pairs": len(prepared.train),
        "parameters": sum(weight.numel() for weight in trainer.model.parameters()),
        "init_from": args.init_from,
        "processes": ranks.world,
    }
    progress = trainer.progress
    said = [*_said_of(checkpoint, progress, ranks), *changes]
    if not ranks.first:
        return EXIT_OK if trainer.finished else _trained(trainer, ranks, said)
    if trainer.finished:
        if "cost" not in (read_json(run_dir / "run.json") or {}):
            _close(trainer, info)  # killed after the last checkpoint, before the books were closed
        limit = "max_steps" if progress.step >= recipe.training.max_steps else "patience"
        value = getattr(recipe.training, limit)
        print(
            f"{run_dir}: already finished at step {progress.step}: training.{limit} is {value}; "
            "raise it to go on",
            file=sys.stderr,
        )
        return EXIT_OK
    describe(run_dir, recipe, info)
    prepared.tokenizers.save(run_dir)
    code = _trained(trainer, ranks, said)
    if code == EXIT_OK:
        _close(trainer, info)
    return code


def _said_of(checkpoint: Checkpoint | None, progress: Progress, ranks: Ranks) -> Iterator[str]:
    """What a log has to know of the checkpoint that training continues from."""
    from transformer_mt.training.state import PROCESSES

    if checkpoint is None:
        return
    yield f"continuing after step {checkpoint.step}"
    if progress.position != checkpoint.scalars["progress"]["position"]:
        yield f"with another training.max_tokens the batches are others: epoch {progress.epoch} begins anew"
    before = checkpoint.scalars.get(PROCESSES, 1)
    if before != ranks.world:
        yield (
            f"continuing with processes: {before} -> {ranks.world}: the data come in the same order, "
            "but an update has more or fewer batches, so nothing is bit for bit as it would be"
        )


def _trained(trainer: Trainer, ranks: Ranks, said: Iterable[str]) -> int:
    """Train to the end, or until a signal; go back after a divergence, as often as the recipe allows.

    Args:
        trainer: stands where training begins.
        ranks: the processes that train together.
        said: lines for the log, before all others.

    Returns:
        The exit code.
    """
    from transformer_mt.training.trainer import Interrupted

    while True:
        with _open_logbook(trainer, ranks) as logbook:
            for line in said:
                logbook.say(line)
            try:
                trainer.train(logbook)
            except Interrupted as stop:
                return stop.exit_code
            except DivergenceError as error:
                if not trainer.go_back():
                    logbook.note("diverged", trainer.progress.step)
                    raise
                progress = trainer.progress
                factor = f"1/{2**progress.rollbacks} of the learning rate"
                said = [str(error), f"goes back to step {progress.step}, and on with {factor}"]
            else:
                return EXIT_OK


def _open_logbook(trainer: Trainer, ranks: Ranks) -> Logbook:
    from transformer_mt.training.logbook import Logbook, SilentLogbook

    if not ranks.first:
        return SilentLogbook()
    progress, max_steps = trainer.progress, trainer.config.max_steps
    return Logbook(trainer.run_dir, progress.step, max_steps, validated=not progress.validation_due)


def _close(trainer: Trainer, info: dict[str, Any]) -> None:
    """Write down what the whole training cost, and the model card."""
    from transformer_mt.runtime.device import peak_memory
    from transformer_mt.training.model_card import write_model_card
    from transformer_mt.training.run_directory import describe

    progress = trainer.progress
    info["cost"] = {
        "steps": progress.step,
        "target_tokens": progress.tokens,
        "seconds": progress.seconds,
        "peak_gib": peak_memory(trainer.updater.device) / 2**30,
    }
    info["signatures"] = trainer.validation.signatures
    describe(trainer.run_dir, trainer.recipe, info)
    write_model_card(trainer.run_dir)


def _initialise_from(trainer: Trainer, run: str) -> None:
    """Give a new run the weights of another; its own optimizer, schedule and best score start anew."""
    from transformer_mt.checkpoint import find_checkpoint, load_weights
    from transformer_mt.checkpoint_files import read_checkpoint, read_recipe
    from transformer_mt.text.tokenizer import load_tokenizers

    folder = find_checkpoint(run)
    kind, wanted = read_recipe(folder).model.architecture, trainer.recipe.model.architecture
    if kind != wanted:
        raise ConfigError(
            f"--init-from {run}: is a {kind}, but model.architecture of this recipe is {wanted}; "
            "name a run of that architecture"
        )
    theirs, ours = load_tokenizers(folder), trainer.tokenizers
    if (theirs.src.fingerprint, theirs.tgt.fingerprint) != (ours.src.fingerprint, ours.tgt.fingerprint):
        raise ConfigError(
            f"--init-from {run}: its tokenizer is not the one of this recipe; "
            "leave tokenizer.from out, or set it to that run"
        )
    load_weights(trainer.model, read_checkpoint(folder).weights, folder)


def _rehearse(recipe: Recipe, prepared: PreparedData, device: torch.device) -> int:
    from transformer_mt.cli.build_trainer import build_updater, open_stream
    from transformer_mt.data.report import format_report
    from transformer_mt.training.rehearsal import rehearse

    model, updater = build_updater(recipe, prepared, device)
    show(format_report(prepared.report))
    for line in rehearse(recipe, prepared, model, updater, open_stream(recipe, prepared)(1, 0)):
        show(line)
    return EXIT_OK


def _replace(recipe: Recipe, section: str, **values: object) -> Recipe:
    """The recipe with some keys of one section changed."""
    changed = getattr(recipe, section).model_copy(update=values)
    return recipe.model_copy(update={section: changed})
