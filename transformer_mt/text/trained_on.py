"""What a run remembers of the text it was trained on: how long its sources were, and what is usual in it.

Knows nothing of how a translation is searched, or of what is done with a line that is longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from transformer_mt.text.oddities import oddities
from transformer_mt.text.proportion import Proportion
from transformer_mt.text.split import sentences

SAMPLE = 10_000
"""So many pairs tell what is usual."""
# All but one in a hundred sources have at most the tokens, and all but one in twenty the sentences.
_TOKENS, _SENTENCES = 0.99, 0.95
# A sign that more pairs show than this is no sign of anything.
_USUAL = 0.1


@dataclass(frozen=True)
class TrainedOn:
    """Facts of a run's training text.

    src_tokens is the longest source, in tokens with eos, but for one in a hundred; sentences how many a
    source has at most, but for one in twenty; None is not known. What `usual` names of `oddities` is seen in
    the training text itself, and so means nothing.
    """

    src_tokens: int
    sentences: int | None = None
    proportion: Proportion | None = None
    usual: tuple[str, ...] = ()

    @classmethod
    def learn(cls, src_lengths: npt.NDArray[np.integer], pairs: Sequence[tuple[str, str]]) -> TrainedOn:
        """Look at the training text.

        Args:
            src_lengths: (N,) source tokens with eos of all pairs.
            pairs: raw text of at most `SAMPLE` of them, at least one.
        """
        sources, targets = zip(*pairs, strict=True)
        proportion = Proportion.learn(sources, targets)
        seen = Counter(sign for source, target in pairs for sign in oddities(source, target, proportion))
        return cls(
            int(np.quantile(src_lengths, _TOKENS, method="higher")),
            int(np.quantile([len(sentences(source)) for source in sources], _SENTENCES, method="higher")),
            proportion,
            tuple(sign for sign, number in sorted(seen.items()) if number > _USUAL * len(pairs)),
        )

    def oddities(self, source: str, target: str) -> tuple[str, ...]:
        """What looks wrong in a translation and is not usual; see `oddities.py`."""
        return tuple(sign for sign in oddities(source, target, self.proportion) if sign not in self.usual)

    def as_json(self) -> dict[str, Any]:
        """As it is stored in a checkpoint."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> TrainedOn:
        """What `as_json` has written.

        Raises:
            ValueError, TypeError, KeyError: something else.
        """
        proportion = stored["proportion"]
        return cls(
            int(stored["src_tokens"]),
            None if stored["sentences"] is None else int(stored["sentences"]),
            None if proportion is None else Proportion(*map(float, proportion)),
            tuple(map(str, stored["usual"])),
        )
