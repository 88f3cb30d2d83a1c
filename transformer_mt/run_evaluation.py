"""A test set of a run: read, translate, score, write into `RUN/evaluation/`, and find there again.

What `evaluate`, `compare` and studies share. Here decoding and evaluation meet.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from transformer_mt.config import Recipe
from transformer_mt.errors import ConfigError, DataError

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Translator
    from transformer_mt.evaluation.scores import Score


@dataclass(frozen=True)
class Run:
    """A run directory, the verified checkpoint of it that is meant, and its recipe."""

    path: Path
    folder: Path
    recipe: Recipe


@dataclass(frozen=True)
class Evaluated:
    """Translations of a set, and what is written about them."""

    hypotheses: list[str]
    report: dict[str, Any]

    @property
    def scores(self) -> list[Score]:
        """Those in the report."""
        from transformer_mt.evaluation.scores import Score

        return [Score(**one) for one in self.report["scores"]]


def open_run(run_dir: str | Path, checkpoint: str | int = "best", data_root: str | None = None) -> Run:
    """A run, verified.

    Args:
        run_dir: of the run.
        checkpoint: best, latest, averaged or a step.
        data_root: where its test sets are now, if not where they were in training.

    Raises:
        CheckpointError: no such run or checkpoint, or a damaged one.
    """
    from transformer_mt.checkpoint import find_checkpoint
    from transformer_mt.checkpoint_files import STATE, read_recipe, verify

    folder = find_checkpoint(run_dir, checkpoint)
    verify(folder, unread=STATE)
    recipe = read_recipe(folder)
    if data_root:
        data = recipe.data.model_copy(update={"root": data_root})
        recipe = recipe.model_copy(update={"data": data})
    return Run(Path(run_dir), folder, recipe)


def read_sets(run: Run, wanted: Sequence[str] | None) -> dict[str, list[tuple[str, str]]]:
    """Name of a test set -> its pairs; all of the recipe's where none is named."""
    from transformer_mt.text.corpus import read_pairs

    data = run.recipe.data
    known = {name: (name,) for name in data.test} | {"valid": data.valid}
    if not wanted and not data.test:
        raise ConfigError(f"{run.path}: its recipe names no data.test; use --test valid")
    for name in wanted or ():
        if name not in known:
            raise ConfigError(f"--test {name}: the recipe of {run.path} has {', '.join(known)}")
    root = data.root or "."
    return {
        name: [
            pair for source in known[name] for pair in read_pairs(source, root, data.src_lang, data.tgt_lang)
        ]
        for name in wanted or data.test
    }


def evaluate_sets(
    run: Run,
    sets: Mapping[str, Sequence[tuple[str, str]]],
    settings: Mapping[str, object],
    translator: Callable[[], Translator],
) -> dict[str, Evaluated]:
    """Those on disk where checkpoint, text and settings are as asked; all others are made and written.

    Args:
        run: whose sets.
        sets: name -> pairs.
        settings: what a report must say of how it was made.
        translator: makes one by these settings, at the first set that needs it.

    Raises:
        DataError: as `evaluate_set`.
    """
    made, found = None, {}
    for name, pairs in sets.items():
        stored = stored_evaluation(run, name, {**settings, **fingerprints(run, pairs)})
        if stored is None:
            made = made or translator()
            print(f"transformer-mt: {run.path}: translating {name}, {len(pairs):,} lines", file=sys.stderr)
            stored = evaluate_set(run, name, pairs, made)
        found[name] = stored
    return found


def evaluate_set(run: Run, name: str, pairs: Sequence[tuple[str, str]], translator: Translator) -> Evaluated:
    """Translate and score a set, and write both into the run.

    Raises:
        DataError: a line that does not fit into the memory, or that the model cannot take.
    """
    import torch

    from transformer_mt.decoding.translation import MEMORY
    from transformer_mt.evaluation.scores import score, tokenised_remark
    from transformer_mt.json_file import read_json
    from transformer_mt.runtime.device import machine_name
    from transformer_mt.text.lines import write_lines

    target = _place(run, name)
    target.parent.mkdir(exist_ok=True)
    start = time.perf_counter()
    try:
        translations = translator.translate([source for source, _ in pairs])
    except DataError as error:
        raise DataError(f"{run.path}: test set {name}, {error}") from None  # error: line N: …
    seconds = time.perf_counter() - start
    without = sum(MEMORY in translation.flags for translation in translations)
    if without:
        raise DataError(
            f"{run.path}: {without} lines of {name} do not fit into the memory of {translator.device}, and a "
            "score without them means nothing; lower --beam-size or name another --device"
        )
    hypotheses = [translation.text for translation in translations]
    recipe = run.recipe
    references = [target for _, target in pairs]
    scores = score(hypotheses, [references], recipe.evaluation.metrics, recipe.data.tgt_lang)
    remarks = (tokenised_remark("the output", hypotheses), tokenised_remark("the reference", references))
    scalars = read_json(run.folder / "state.json") or {}
    report: dict[str, Any] = {
        "set": name,
        "scores": [asdict(one) for one in scores],
        "remarks": [remark for remark in remarks if remark],
        "sentences": len(pairs),
        "at_length_limit": sum(translation.at_limit for translation in translations),
        "seconds": round(seconds, 3),
        "sentences_per_second": round(len(pairs) / seconds, 2),
        "checkpoint": run.folder.name,
        "step": scalars.get("step"),
        "device": str(translator.device),
        "machine": machine_name(),
        "threads": torch.get_num_threads(),
        "workers": translator.num_workers,
        "shortlist": translator.shortlist_size,
        "decoding": translator.decoding.model_dump(),
        **fingerprints(run, pairs),
        "translations_sha256": _sha256(hypotheses),
    }
    write_lines(f"{target}.txt", hypotheses)
    write_json(f"{target}.json", report)
    print(f"transformer-mt: written: {target}.txt and {target}.json", file=sys.stderr)
    return Evaluated(hypotheses, report)


def stored_evaluation(run: Run, name: str, expected: Mapping[str, object]) -> Evaluated | None:
    """What an earlier evaluation has written, if it still stands there unchanged and was made as expected.

    Args:
        expected: entries that its report must have, such as those of `fingerprints`.
    """
    from transformer_mt.json_file import read_json
    from transformer_mt.text.lines import read_lines

    target = _place(run, name)
    report = read_json(Path(f"{target}.json")) or {}
    if (
        any(report.get(key) != value for key, value in expected.items())
        or not Path(f"{target}.txt").is_file()
    ):
        return None
    hypotheses = list(read_lines(f"{target}.txt"))
    return Evaluated(hypotheses, report) if report.get("translations_sha256") == _sha256(hypotheses) else None


def add_to_evaluation(run: Run, name: str, evaluated: Evaluated, **entries: object) -> Evaluated:
    """Write more into the report of an evaluation."""
    report = {**evaluated.report, **entries}
    write_json(f"{_place(run, name)}.json", report)
    return Evaluated(evaluated.hypotheses, report)


def fingerprints(run: Run, pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What translations of a set depend on besides settings: the checkpoint, and the text of both sides."""
    from transformer_mt.checkpoint_files import MANIFEST

    return {
        "checkpoint_sha256": hashlib.sha256((run.folder / MANIFEST).read_bytes()).hexdigest(),
        "sources_sha256": _sha256([source for source, _ in pairs]),
        "references_sha256": _sha256([target for _, target in pairs]),
    }


def write_json(path: str, report: dict[str, Any]) -> None:
    """Write a report that people read too: one entry a line, no escapes."""
    from transformer_mt.json_file import json_text
    from transformer_mt.text.lines import write_lines

    write_lines(path, json_text(report, indent=1).split("\n"))


def _place(run: Run, name: str) -> Path:
    return run.path / "evaluation" / quote(name, safe="")


def _sha256(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
