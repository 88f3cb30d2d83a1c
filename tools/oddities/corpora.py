"""What the watch is measured on: pairs to learn proportions from, and good pairs of test sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from transformer_mt.text.corpus import read_pairs
from transformer_mt.text.trained_on import SAMPLE

Pairs = list[tuple[str, str]]


def sampled(pairs: Pairs) -> Pairs:
    """Pairs from all over, as many as training looks at."""
    return pairs[:: -(-len(pairs) // SAMPLE)]


def with_text(pairs: Iterable[tuple[str, str]]) -> Pairs:
    """Those that have text on both sides."""
    return [pair for pair in pairs if all(map(str.strip, pair))]


@dataclass(frozen=True)
class Corpus:
    """A folder of test data, its languages, and the sets that are translated."""

    folder: str
    src: str
    tgt: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """As it stands in a table."""
        return f"{self.folder} {self.src}-{self.tgt}"

    def training_sample(self, data: Path) -> Pairs:
        """Pairs from all over the training set."""
        return sampled(list(read_pairs("train", data / self.folder, self.src, self.tgt)))

    def test_pairs(self, data: Path) -> Pairs:
        """All pairs of the test sets with text on both sides."""
        folder = data / self.folder
        return with_text(pair for test in self.tests for pair in read_pairs(test, folder, self.src, self.tgt))


CORPORA = (
    Corpus("multi30k", "de", "en", ("test2016", "test2017")),
    Corpus("multi30k", "en", "de", ("test2016", "test2017")),
    Corpus("tatoeba-zh-en", "zh", "en", ("test",)),
    Corpus("tatoeba-zh-en", "en", "zh", ("test",)),
    Corpus("3am-zh-en", "zh", "en", ("test",)),
    Corpus("kftt", "ja", "en", ("tune", "test")),
    Corpus("kftt", "en", "ja", ("tune", "test")),
)
