"""How far a tokenizer can be trusted with a text: what becomes unknown, what is spelled in bytes, what does
not come back, and how finely words are cut.

Tokens, characters, and lines with U+2581 are counted in all of the text. Decoding and words are looked at in
some 1,000 lines, evenly spread: all lines would cost a tenth of the time that preparing takes. Knows nothing
of how the tokenizer was learned.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transformer_mt.text.presplit import SPACE_MARK, count_presplit, presplit_note
from transformer_mt.text.scripts import script_of
from transformer_mt.text.tokenizer import NUM_BYTES, NUM_SPECIAL, UNK_ID, Tokenizer
from transformer_mt.text.words import counts_characters, units

_CHECKED_LINES = 1_000
_SIDES = (("src", "source"), ("tgt", "target"))


@dataclass
class TokenizerReport:
    """What is known of one side of the training text that is kept."""

    lines: int = 0
    characters: int = 0
    unknown: int = 0
    """Tokens that stand for no text at all; with byte fallback there is none."""
    byte_characters: int = 0
    """Characters spelled in bytes, as the vocabulary has no piece for them."""
    scripts: dict[str, int] = field(default_factory=dict)
    """Script -> how many of them, the most frequent first."""
    space_lines: int = 0
    """Lines that hold U+2581 and so do not come back."""
    checked: int = 0
    """Lines that were decoded again and whose words were counted."""
    changed: int = 0
    """Those of them that did not come back, U+2581 aside."""
    presplit: int = 0
    """Those of them with marks of text that was cut into pieces before."""
    pieces: int = 0
    """Their tokens, without eos."""
    units: int = 0
    """Their words, or their characters where words are written without spaces."""
    unit: str = "word"

    @property
    def lost(self) -> int:
        """Lines that do not come back from tokens as they were."""
        return self.space_lines + self.changed


class TokenizerCheck:
    """Fills the report of one side, chunk by chunk."""

    def __init__(self, tokenizer: Tokenizer, lines: int) -> None:
        """lines: about how many there will be, to choose those that are decoded."""
        self.report = TokenizerReport()
        self._tokenizer = tokenizer
        self._every = max(lines // _CHECKED_LINES, 1)
        self._byte_characters: Counter[str] = Counter()
        self._by_characters: bool | None = None

    def add(self, ids: pa.ListArray, texts: pa.StringArray) -> None:
        """Look at more lines.

        Args:
            ids: of each line, ending in eos.
            texts: the same lines.
        """
        if not len(texts):
            return
        report = self.report
        self._count_tokens(ids.flatten().to_numpy())
        report.characters += pc.sum(pc.utf8_length(texts)).as_py()
        if SPACE_MARK.encode() in texts.buffers()[2].to_pybytes():
            report.space_lines += pc.sum(pc.match_substring(texts, SPACE_MARK)).as_py()
        rows = pa.array(np.arange(-report.lines % self._every, len(texts), self._every))
        self._check(ids.take(rows).to_pylist(), texts.take(rows).to_pylist())
        report.lines += len(texts)

    def finished(self) -> TokenizerReport:
        """The report, complete."""
        scripts: Counter[str] = Counter()
        for character, count in self._byte_characters.items():
            scripts[script_of(character)] += count
        self.report.byte_characters = scripts.total()
        self.report.scripts = dict(scripts.most_common())
        return self.report

    def _count_tokens(self, ids: npt.NDArray[np.int32]) -> None:
        self.report.unknown += int((ids == UNK_ID).sum())
        spelled = ids[(ids >= NUM_SPECIAL) & (ids < NUM_SPECIAL + NUM_BYTES)] - NUM_SPECIAL
        # The bytes of a character stand together, so those of all characters are text again.
        self._byte_characters.update(spelled.astype(np.uint8).tobytes().decode("utf-8"))

    def _check(self, ids: list[list[int]], texts: list[str]) -> None:
        report = self.report
        if self._by_characters is None:
            self._by_characters = counts_characters(texts)
            report.unit = "character" if self._by_characters else "word"
        for row, text in zip(ids, texts, strict=True):
            report.changed += SPACE_MARK not in text and self._tokenizer.decode(row) != text
            report.pieces += len(row) - 1
            report.units += len(units(text, characters=self._by_characters))
        report.presplit += count_presplit(texts)
        report.checked += len(texts)


def as_plain(reports: tuple[TokenizerReport, TokenizerReport]) -> dict[str, Any]:
    """Both sides as plain values: what stands under `tokenizer` in report.json."""
    return {side: asdict(report) for (side, _), report in zip(_SIDES, reports, strict=True)}


def tokenizer_rows(plain: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(title, number, what it counts): rows of the table that `prepare` prints."""
    rows = []
    for side, title in _SIDES:
        report = TokenizerReport(**plain[side])
        scripts = ", ".join(f"{count:,} {script}" for script, count in report.scripts.items())
        named = f" ({scripts})" if scripts else ""
        ratio = report.pieces / max(report.units, 1)
        rows += [
            (f"tokenizer {title}", f"{report.unknown:,}", "unknown tokens"),
            ("", f"{report.byte_characters:,}", f"of {report.characters:,} characters fell to bytes{named}"),
            (
                "",
                f"{report.lost:,}",
                f"of {report.lines:,} lines do not come back as they were{_why(report)}",
            ),
            ("", f"{ratio:.2f}", f"pieces a {report.unit}, in {report.checked:,} lines"),
        ]
    return rows


def tokenizer_warnings(plain: dict[str, Any]) -> list[str]:
    """One line for each side that seems to be cut into pieces already, or that does not come back."""
    warnings = []
    for side, title in _SIDES:
        report = TokenizerReport(**plain[side])
        note = presplit_note(report.presplit, report.checked, f"{title} lines")
        if note:
            warnings.append(f"warning: {note}")
        if report.changed:
            warnings.append(
                f"warning: {report.changed} of {report.checked} {title} lines do not come back from the "
                "tokenizer as they were; learn it anew with this program"
            )
    return warnings


def _why(report: TokenizerReport) -> str:
    if not report.lost:
        return f" ({report.checked:,} decoded)"
    holds = f"{report.space_lines:,} hold U+2581, which becomes a space"
    return f" ({holds}; {report.changed:,} others of {report.checked:,} decoded)"
