"""The report of a corpus: what was read, dropped and noticed, as JSON and as one table.

Knows nothing of how the checks are made.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from transformer_mt.data.tokenizer_report import (
    TokenizerReport,
    as_plain,
    tokenizer_rows,
    tokenizer_warnings,
)
from transformer_mt.text.corpus_check import Finding
from transformer_mt.text.tokenizer import NUM_BYTES, NUM_SPECIAL

_SIDES = (("src", "source"), ("tgt", "target"))
# Far above what rare characters need: such a vocabulary was learned from other text, or is much too small.
_BYTE_SHARE_LIMIT = 0.1


@dataclass
class TokenCounts:
    """Tokens of one side of a split, eos included."""

    tokens: int = 0
    longest: int = 0
    byte_tokens: int = 0
    """Tokens that spell one byte of a character outside the vocabulary."""

    def add(self, ids: npt.NDArray[np.integer], lengths: npt.NDArray[np.integer]) -> None:
        """Count the ids of more examples, one after the other, and the length of each."""
        self.tokens += len(ids)
        self.longest = max(self.longest, int(lengths.max(initial=0)))
        self.byte_tokens += int(((ids >= NUM_SPECIAL) & (ids < NUM_SPECIAL + NUM_BYTES)).sum())


@dataclass
class SplitReport:
    """What is known of one split."""

    read: int
    kept: int
    dropped: dict[str, Finding] = field(default_factory=dict)
    """Reason -> how many pairs, and where first."""
    noted: dict[str, Finding] = field(default_factory=dict)
    """The same for what is kept all the same."""
    src: TokenCounts = field(default_factory=TokenCounts)
    tgt: TokenCounts = field(default_factory=TokenCounts)
    """Zero where a split is not turned into tokens (test sets)."""


def as_report(
    train: SplitReport,
    valid: SplitReport,
    test: dict[str, SplitReport],
    vocab_sizes: tuple[int, int],
    trust: tuple[TokenizerReport, TokenizerReport],
) -> dict[str, Any]:
    """The report as plain values: what `report.json` holds."""
    return {
        "train": asdict(train),
        "valid": asdict(valid),
        "test": {name: asdict(split) for name, split in test.items()},
        "vocab_size": {"src": vocab_sizes[0], "tgt": vocab_sizes[1]},
        "tokenizer": as_plain(trust),
    }


def format_report(report: dict[str, Any]) -> str:
    """The report as one table of plain text."""
    splits = {"train": report["train"], "valid": report["valid"]}
    splits |= {f"test {name}": split for name, split in report["test"].items()}
    rows: list[tuple[str, str, str]] = []
    for title, split in splits.items():
        rows.append((title, f"{split['read']:,}", "pairs read"))
        for reason, found in split["dropped"].items():
            rows.append(("", f"-{found['count']:,}", f"{reason} (first: {found['first']})"))
        if split["dropped"]:
            rows.append(("", f"{split['kept']:,}", "pairs kept"))
        for what, found in split["noted"].items():
            rows.append(("", f"{found['count']:,}", f"noted: {what} (first: {found['first']})"))
        rows += _token_rows(split)
    sizes = report["vocab_size"]
    rows.append(("vocabulary", f"{sizes['src']:,}", f"source pieces; {sizes['tgt']:,} target pieces"))
    if "tokenizer" in report:  # data prepared by an earlier version have none
        rows += tokenizer_rows(report["tokenizer"])
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c}" for a, b, c in rows)


def vocabulary_warnings(report: dict[str, Any]) -> list[str]:
    """One line for each side of the training text that the vocabulary does not fit, or that is not raw."""
    warnings = tokenizer_warnings(report["tokenizer"]) if "tokenizer" in report else []
    for side, title in _SIDES:
        counts = report["train"][side]
        if counts["byte_tokens"] > _BYTE_SHARE_LIMIT * counts["tokens"]:
            warnings.append(
                f"warning: {counts['byte_tokens'] / counts['tokens']:.0%} of the {title} tokens spell single "
                "bytes; the vocabulary does not fit this text: enlarge tokenizer.vocab_size or learn it anew"
            )
    return warnings


def _token_rows(split: dict[str, Any]) -> list[tuple[str, str, str]]:
    rows = []
    for side, title in _SIDES:
        counts = split[side]
        if counts["tokens"]:
            share = counts["byte_tokens"] / counts["tokens"]
            rows.append(
                (
                    "",
                    f"{counts['tokens']:,}",
                    f"{title} tokens, longest {counts['longest']:,}, {share:.2%} of them bytes",
                )
            )
    return rows
