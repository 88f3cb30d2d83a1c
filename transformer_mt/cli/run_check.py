"""What `doctor` finds in a run directory: whether it can be translated with, and continued.

Reads; mends nothing and prints nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from transformer_mt.errors import EXIT_OK, CheckpointError, ConfigError, DataError, UserError

if TYPE_CHECKING:
    from transformer_mt.config import Recipe

FORGETFUL = (
    "does not know how many sentences its training lines had (it is of an earlier version): of a line of "
    "several sentences some may be lost; put one on each line, or train it again"
)
"""What is to be said of a run without a part of `TrainedOn`."""


class Finding(NamedTuple):
    """One line: section, name, value, and the exit code where it is a fault."""

    section: str
    name: str
    value: str
    fault: int = EXIT_OK


def check_run(run_dir: Path) -> Iterator[Finding]:
    """Everything that can be wrong with a run, and where its parts are."""
    yield from _checkpoints(run_dir)
    yield from _training(run_dir)
    yield from _recipe_and_data(run_dir)


def _checked(section: str, name: str, check: Callable[[], str]) -> Finding:
    """The finding of a check: its result, or the error that a user can mend."""
    try:
        return Finding(section, name, check())
    except UserError as error:
        return Finding(section, name, " ".join(str(error).split()), error.exit_code)


def _checkpoints(run_dir: Path) -> Iterator[Finding]:
    from transformer_mt.checkpoint import AVERAGED, find_checkpoint, saved_steps
    from transformer_mt.checkpoint_files import MANIFEST, folder_of, verify
    from transformer_mt.decoding.lexical_table import FILE

    def whole(folder: Path) -> str:
        verify(folder)
        return "every file has its sha256"

    for step in saved_steps(run_dir, complete=False):
        folder = folder_of(run_dir, step)
        yield _checked("checkpoints", folder.name, lambda folder=folder: whole(folder))  # type: ignore[misc]
    averaged = run_dir / "checkpoints" / AVERAGED
    if (averaged / MANIFEST).is_file():
        yield _checked("checkpoints", AVERAGED, lambda: whole(averaged))
    for which in ("latest", "best"):
        yield _checked("checkpoints", which, lambda which=which: find_checkpoint(run_dir, which).name)  # type: ignore[misc]
    yield _checked("checkpoints", "long lines", lambda: _longest_line(run_dir))
    if (run_dir / FILE).exists():
        yield _checked("checkpoints", "shortlist", lambda: _shortlist(run_dir / FILE))


def _training(run_dir: Path) -> Iterator[Finding]:
    """What the command that trained it would do now."""
    from transformer_mt.training.run_directory import in_use, leftovers

    yield _checked("training", "continues", lambda: _continues(run_dir))
    records = run_dir / "metrics.jsonl"
    if records.is_file():
        yield Finding("training", "records", _records(records))
    left = leftovers(run_dir)
    if left:
        what = f"{len(left)} of a training that was killed ({left[0]}); the next checkpoint removes them"
        yield Finding("training", "unfinished", what)
    if in_use(run_dir):
        yield Finding("training", "process", "one is training here now")


def _continues(run_dir: Path) -> str:
    """Where, and whether something newer is passed over."""
    from transformer_mt.checkpoint import saved_steps
    from transformer_mt.checkpoint_files import folder_of, read_recipe, read_scalars, verify

    steps = saved_steps(run_dir, complete=False)
    refused = 0
    for step in reversed(steps):
        folder = folder_of(run_dir, step)
        try:
            verify(folder)
        except CheckpointError:
            refused += 1
            continue
        wanted, progress = read_recipe(folder).training, read_scalars(folder).get("progress", {})
        passed = f", passing over {refused} newer that cannot be used" if refused else ""
        if progress.get("validation_due"):
            return f"with the validation of step {step}{passed}"
        if step >= wanted.max_steps:
            return f"not: finished at step {step}, training.max_steps{passed}"
        if 0 < wanted.patience <= progress.get("validations_without_better", 0):
            return f"not: finished at step {step} of {wanted.max_steps}, training.patience{passed}"
        return f"after step {step} of {wanted.max_steps}{passed}"
    if steps:
        raise CheckpointError("from none of its checkpoints; restore one from a copy, or --overwrite the run")
    return "from the beginning: nothing is saved yet"


def _records(path: Path) -> str:
    """How far they go; what is half-written or later than the checkpoint is cut when training goes on."""
    steps: list[int] = []
    for line in path.read_bytes().split(b"\n"):
        try:
            steps.append(int(json.loads(line)["step"]))
        except (ValueError, KeyError, TypeError):
            continue
    return f"{len(steps)}, to step {max(steps)}" if steps else "none"


def _longest_line(run_dir: Path) -> str:
    """What line is translated whole."""
    from transformer_mt.checkpoint import TRAINED_ON, find_checkpoint
    from transformer_mt.checkpoint_files import read_scalars

    known = read_scalars(find_checkpoint(run_dir)).get(TRAINED_ON) or {}
    if known.get("sentences") is None:
        return f"the run {FORGETFUL}"
    return f"in parts beyond {known['src_tokens']} tokens or {known['sentences']} sentences"


def _shortlist(path: Path) -> str:
    from transformer_mt.decoding.lexical_table import read_table
    from transformer_mt.text.tokenizer import load_tokenizers

    read_table(path, load_tokenizers(path.parent))
    return f"{path.name} has its sha256"


def _recipe_and_data(run_dir: Path) -> Iterator[Finding]:
    from transformer_mt.data.prepare import prepared_folder
    from transformer_mt.recipe import load_recipe
    from transformer_mt.text.corpus import source_files
    from transformer_mt.text.hub import HUB_PREFIX
    from transformer_mt.training.run_directory import stored_fingerprint

    config = run_dir / "config.yaml"
    try:
        recipe = load_recipe(config)
    except ConfigError as error:
        yield Finding("recipe", "config.yaml", " ".join(str(error).split()), error.exit_code)
        return
    yield Finding("recipe", "config.yaml", "reads")
    data = recipe.data
    for split, sources in (("train", data.train), ("valid", data.valid), ("test", data.test)):
        for source in sources:
            if source.startswith(HUB_PREFIX):
                yield Finding("data", f"{split} {source}", "comes through `datasets`, not looked at")
                continue

            def there(source: str = source) -> str:
                paths = source_files(source, data.root or ".", data.src_lang, data.tgt_lang)
                return " and ".join(map(_short, paths))

            yield _checked("data", f"{split} {source}", there)
    try:
        fingerprint = stored_fingerprint(run_dir) or ""
    except CheckpointError as error:
        yield Finding("data", "run.json", str(error), error.exit_code)
        return
    yield _checked("data", "fingerprint", lambda: _same_data(recipe, fingerprint))
    folder = prepared_folder(recipe.model_copy(update={"run_dir": str(run_dir)}), fingerprint)
    yield _checked("data", "prepared", lambda: _prepared(folder, fingerprint))
    yield from _tokenizers(folder)


def _same_data(recipe: Recipe, fingerprint: str) -> str:
    """Whether the text and options on disk are those that the run was trained on."""
    from transformer_mt.data.prepare import data_fingerprint
    from transformer_mt.text.hub import HUB_PREFIX

    data = recipe.data
    if not fingerprint:
        return "nothing is trained yet"
    if any(source.startswith(HUB_PREFIX) for source in (*data.train, *data.valid, *data.test)):
        return f"{fingerprint[:12]}, not compared: some of the text comes through `datasets`"
    found = data_fingerprint(data, recipe.tokenizer)
    if found != fingerprint:
        raise DataError(
            f"the text and its options are not those of the training (fingerprint {found[:12]}, was "
            f"{fingerprint[:12]}): restore them to train on; translating needs neither"
        )
    return f"{found[:12]}, that of the run"


def _prepared(folder: Path, fingerprint: str) -> str:
    """Where the prepared data of the run are, or that there are none: then they are made when needed."""
    from transformer_mt.data.prepared_files import damaged_file, read_manifest

    if not fingerprint or not folder.is_dir():
        return "not there, `train` makes them from the text"
    manifest = read_manifest(folder)
    if manifest["fingerprint"] != fingerprint:
        raise DataError(
            f"{folder}: was prepared from other text than this run; name another data.prepared_dir"
        )
    damaged = damaged_file(folder, manifest)
    return (
        _short(folder) if damaged is None else f"{folder / damaged}: is damaged, `train` makes the data again"
    )


def _tokenizers(folder: Path) -> Iterator[Finding]:
    """What is known of the tokenizers of prepared data; nothing where those are missing, damaged or older."""
    from transformer_mt.data.tokenizer_report import tokenizer_rows

    try:
        plain = json.loads((folder / "report.json").read_text(encoding="utf-8"))["tokenizer"]
    except (OSError, ValueError, KeyError):
        return
    told: dict[str, list[str]] = {}
    for title, count, what in tokenizer_rows(plain):
        told.setdefault(title or next(reversed(told)), []).append(f"{count} {what}")
    for title, facts in told.items():
        yield Finding("data", title, "; ".join(facts))


def _short(path: Path) -> str:
    """Relative to the current folder where it lies inside."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
