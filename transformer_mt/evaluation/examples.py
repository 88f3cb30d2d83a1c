"""Lines worth reading: where one system is far better than the other, and some at random.

How good a line is says its sentence chrF2++, which unlike sentence BLEU is never 0 for a nearly right line.
Knows texts only.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from transformer_mt.evaluation.comparison import Example, ExampleGroup
from transformer_mt.evaluation.scores import scorer

_MOST, _RANDOM = 10, 5
_SEED = 12345


def sentence_scores(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """Sentence chrF2++ of every line, 0 to 100.

    Args:
        references: streams.
    """
    chrf = scorer("chrf", "")
    rows = zip(hypotheses, *references, strict=True)
    return [float(chrf.sentence_score(text, list(answers)).score) for text, *answers in rows]


def wins_ties_losses(scores: Sequence[float], first: Sequence[float]) -> tuple[int, int, int]:
    """Lines that score more than those of the first system, as much, and less."""
    wins = sum(a > b for a, b in zip(scores, first, strict=True))
    losses = sum(a < b for a, b in zip(scores, first, strict=True))
    return wins, len(scores) - wins - losses, losses


def example_groups(
    names: Sequence[str],
    outputs: Sequence[Sequence[str]],
    scores: Sequence[Sequence[float]],
    references: Sequence[str],
    sources: Sequence[str] | None,
) -> tuple[ExampleGroup, ...]:
    """For every system against the first the lines where each wins most, then some lines at random.

    Args:
        names: of the systems.
        outputs: texts of each.
        scores: sentence scores of each.
        references: the first stream.
        sources: None where they are not known.
    """

    def example(line: int) -> Example:
        return Example(
            number=line + 1,
            source=None if sources is None else sources[line],
            reference=references[line],
            hypotheses=tuple(texts[line] for texts in outputs),
            scores=tuple(column[line] for column in scores),
        )

    def ahead(better: int, worse: int) -> ExampleGroup:
        gains = [a - b for a, b in zip(scores[better], scores[worse], strict=True)]
        lines = sorted((line for line, gain in enumerate(gains) if gain > 0), key=lambda line: -gains[line])
        title = f"{names[better]} is furthest ahead of {names[worse]}"
        return ExampleGroup(title, (names[better], names[worse]), tuple(map(example, lines[:_MOST])))

    groups = [ahead(*pair) for other in range(1, len(names)) for pair in ((other, 0), (0, other))]
    drawn = random.Random(_SEED).sample(range(len(references)), min(_RANDOM, len(references)))
    groups.append(ExampleGroup("lines at random", (), tuple(map(example, sorted(drawn)))))
    return tuple(group for group in groups if group.examples)
