"""What `filter` does with a corpus: the rules, the classifiers, what stays, and the files.

What the rules say is `data.verdicts`, what a classifier says is `training.cross_fitting`.
"""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from transformer_mt.config import Recipe
from transformer_mt.data.negatives import Indices
from transformer_mt.data.prepare import PreparedData
from transformer_mt.data.verdicts import training_text, verdicts
from transformer_mt.errors import DataError
from transformer_mt.text.corpus_check import KEPT, REASONS
from transformer_mt.text.lines import write_lines
from transformer_mt.text.oddities import oddities
from transformer_mt.training.cross_fitting import cross_fitted

BY_SCORE = "score"
"""The reason of a pair that a classifier takes for no translation."""
_POOR = 0.75
Answers = npt.NDArray[np.float32]


def judge(
    recipe: Recipe,
    prepared: PreparedData,
    *,
    updates: int,
    device: torch.device,
    threshold: float = 0.0,
    keep: float | None = None,
) -> tuple[list[str], Answers]:
    """Why each pair of the training text is dropped, empty where it is not, and its score, NaN without one.

    Args:
        updates: of each of the two classifiers.
        device: where they learn.
        threshold: what a pair that stays must score above.
        keep: the share of all pairs that stays, whatever they score; then the threshold has no say.

    Raises:
        DataError: too little text, or text that changes meanwhile.
        ConfigError: a recipe that no classifier can be made of.
        DivergenceError: a classifier that learns nothing finite.
    """
    reasons, lines, examples = _by_rules(recipe, prepared)
    answers = _answers(recipe, prepared, examples, updates, device)
    for place in _rejected(answers, threshold, None if keep is None else round(keep * len(reasons))):
        reasons[lines[place]] = BY_SCORE
    scores = np.full(len(reasons), np.nan, dtype=np.float32)
    scores[lines] = answers
    return reasons, scores


def _by_rules(recipe: Recipe, prepared: PreparedData) -> tuple[list[str], Indices, Indices]:
    """What needs no classifier.

    Returns:
        Why each pair of the text is dropped, empty where it is not; of those that are not, the places in the
        text and in the prepared data.
    """
    codes = verdicts(recipe.data, prepared.tokenizers)
    if int((codes == KEPT).sum()) != len(prepared.train):
        raise DataError("the training text has changed while it was read; start again")
    reasons = [REASONS[code] if code != KEPT else "" for code in codes]
    usual, lines, examples, example = prepared.trained_on(), list[int](), list[int](), 0
    # Copies may be usual in noisy text, and are no better for it, unless both sides are one language.
    ignored = set(usual.usual) - ({"copy"} if recipe.data.src_lang != recipe.data.tgt_lang else set())
    for line, pair in enumerate(training_text(recipe.data)):
        if reasons[line]:
            continue
        signs = oddities(*pair, usual.proportion)
        reasons[line] = ", ".join(sign for sign in signs if sign not in ignored)
        if not reasons[line]:
            lines.append(line)
            examples.append(example)
        example += 1
    return reasons, np.array(lines, dtype=np.int64), np.array(examples, dtype=np.int64)


def _answers(
    recipe: Recipe, prepared: PreparedData, examples: Indices, updates: int, device: torch.device
) -> Answers:
    """Log-odds of all that the rules have left, with a bar on stderr where that is a terminal."""
    with tqdm(total=2 * updates, unit=" updates", disable=None, file=sys.stderr) as bar:
        answers, told = cross_fitted(
            recipe,
            prepared.train,
            examples,
            prepared.tokenizers,
            updates=updates,
            device=device,
            after_update=bar.update,
        )
    shares = ", ".join(f"{share:.1%} {kind}" for kind, share in told.items())
    say(f"of made-up targets told from true ones, half by chance: {shares}")
    if told.get("shuffled", 0.0) < _POOR:
        say(
            f"warning: scores mean little where less than {_POOR:.0%} of shuffled targets are told; "
            "raise --updates, or give more text"
        )
    return answers


def _rejected(answers: Answers, threshold: float, fewest: int | None) -> Indices:
    """Places of the judged pairs that do not stay; see `judge`."""
    if fewest is None:
        return np.flatnonzero(answers.astype(np.float64) <= threshold)
    return np.argsort(-answers, kind="stable")[fewest:]


def write_cleaned(folder: Path, recipe: Recipe, reasons: Sequence[str], scores: Answers) -> None:
    """All files in a folder beside the final one, which then takes its name."""

    def kept(side: int) -> Iterator[str]:
        pairs = zip(training_text(recipe.data), reasons, strict=True)
        return (pair[side] for pair, reason in pairs if not reason)

    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
    try:
        for side, language in enumerate((recipe.data.src_lang, recipe.data.tgt_lang)):
            write_lines(temporary / f"clean.{language}", kept(side))
        write_lines(temporary / "scores.tsv", map(_row, itertools.count(1), scores, reasons))
        temporary.chmod(0o755)
        if folder.is_dir():
            folder.rmdir()
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _row(line: int, score: np.float32, reason: str) -> str:
    shown = "" if np.isnan(score) else f"{score:.4f}"
    return f"{line}\t{shown}\t{'dropped' if reason else 'kept'}\t{reason}"


def say(message: str) -> None:
    """One line for people."""
    print(f"transformer-mt: {message}", file=sys.stderr)
