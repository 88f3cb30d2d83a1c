"""What studies can measure of a trial: the names and settings of all measures, and who makes each.

A measure yields numbers of one recipe; this module knows which there are and no more of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from pydantic import BaseModel

from transformer_mt.config import Recipe
from transformer_mt.studies import (
    attention_cost,
    classification,
    decoding_cost,
    reach,
    test_scores,
    training_record,
    update_cost,
)
from transformer_mt.studies.attention_cost import AttentionCost
from transformer_mt.studies.classification import Classification
from transformer_mt.studies.decoding_cost import DecodingCost
from transformer_mt.studies.reach import Reach
from transformer_mt.studies.test_scores import TestScores
from transformer_mt.studies.training_record import TrainingRecord
from transformer_mt.studies.update_cost import UpdateCost
from transformer_mt.studies.values import Measured


class MeasureSection(BaseModel):
    """The measures of a study, each with its settings."""

    model_config = Recipe.model_config

    update_cost: UpdateCost | None = None
    """Seconds and memory of a training update, by length."""
    attention_cost: AttentionCost | None = None
    """Seconds and memory of attention alone, by length, and how fast they grow."""
    decoding_cost: DecodingCost | None = None
    """Speed of decoding by beam and length, and bytes of the cache."""
    classification: Classification | None = None
    """How well the encoder, trained by this measure, tells pairs that are translations of each other."""
    training_record: TrainingRecord | None = None
    """Curves and probes of a training, its best score, what it took, where it broke."""
    test_scores: TestScores | None = None
    """Scores of the test sets, also by the length of their sentences."""
    reach: Reach | None = None
    """How gradient reaches a source word from a target word some positions away."""

    @property
    def names(self) -> list[str]:
        """Those that are asked for."""
        return [name for name in type(self).model_fields if getattr(self, name) is not None]


def check(recipe: Recipe, section: MeasureSection) -> None:
    """Find out before anything is trained that something cannot be measured of a recipe's model.

    Raises:
        ConfigError: the first such measure.
    """
    if section.update_cost is not None:
        update_cost.check(recipe, section.update_cost)
    if section.attention_cost is not None:
        attention_cost.check(recipe)


def measure(
    recipe: Recipe, section: MeasureSection, device: torch.device, *, finished: bool
) -> Iterator[Measured]:
    """All numbers that a study asks for, of one trial, in this process.

    Args:
        recipe: of the trial; where the study trains, its run_dir holds what training left.
        section: what is asked for.
        device: where models run.
        finished: False where training came to no good end: then nothing is asked of its weights.
    """
    # What something costs does not depend on what was learned.
    if section.update_cost is not None:
        yield from update_cost.measure(recipe, section.update_cost, device)
    if section.attention_cost is not None:
        yield from attention_cost.measure(recipe, section.attention_cost, device)
    if section.decoding_cost is not None:
        yield from decoding_cost.measure(recipe, section.decoding_cost, device)
    if section.classification is not None:
        yield from classification.measure(recipe, section.classification, device)
    if section.training_record is not None:
        yield from training_record.measure(recipe, section.training_record, device)
    if finished and section.test_scores is not None:
        yield from test_scores.measure(recipe, section.test_scores, device)
    if finished and section.reach is not None:
        yield from reach.measure(recipe, section.reach, device)
