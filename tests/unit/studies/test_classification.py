"""What the measure of classifiers tells: all kinds and buckets, and nothing of a training that diverged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.small_pairs import invented, small_recipe
from transformer_mt.config import Recipe
from transformer_mt.data.negatives import KINDS
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import DivergenceError
from transformer_mt.studies import classification
from transformer_mt.studies.classification import Classification, measure
from transformer_mt.studies.values import Measured

CPU = torch.device("cpu")


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """60 training pairs; of three to six words like the 40 that are examined."""
    return small_recipe(tmp_path, invented(60, 1))


def found(recipe: Recipe, **settings: Any) -> list[Measured]:
    return list(measure(recipe, Classification.model_validate({"updates": 2, **settings}), CPU))


def test_every_kind_and_bucket_is_measured(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins pairs in the wrong bucket: a classifier that is right in one half of the lengths alone."""
    valid = prepare(recipe, log=lambda message: None).valid
    longer = np.maximum(valid.src_lengths, valid.tgt_lengths)
    middle = int(np.sort(longer)[len(longer) // 2])

    def right_of_short_ones(model: Any, rows: Any, device: Any) -> Any:
        right = np.where(np.array(rows.kinds) == "translation", 1.0, -1.0)
        return np.where(longer[rows.indices] <= middle, right, -right)

    monkeypatch.setattr(classification, "log_odds", right_of_short_ones)
    values = found(recipe, lengths=[99, middle, middle - 1, 100])
    by_length = {
        (one.at["length"], one.at["negatives"]): one.value
        for one in values
        if one.metric == "accuracy_by_length"
    }
    assert by_length == {
        (length, kind): value
        for length, value in ((middle - 1, 1.0), (middle, 1.0), (99, 0.0), (100, None))
        for kind in KINDS
    }
    overall = {one.at["negatives"]: one.value for one in values if one.metric == "accuracy"}
    assert set(overall) == set(KINDS)
    short = float((longer <= middle).mean())
    assert overall["shuffled"] == pytest.approx(short, abs=1e-6) and 0 < short < 1
    (seconds,) = [one.value for one in values if one.metric == "seconds"]
    (peak,) = [one.value for one in values if one.metric == "peak_mib"]
    assert seconds is not None and 0 < seconds < 60 and (peak is None or peak >= 0)


def test_a_training_that_diverged_is_told_by_no_accuracy(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins a crash of the study, and the accuracy of broken weights; what it took is told all the same."""

    def diverge(*args: Any, **more: Any) -> Any:
        raise DivergenceError("update 20")

    monkeypatch.setattr(classification, "train_classifier", diverge)
    values = found(recipe, lengths=[99])
    told = [one for one in values if one.metric.startswith("accuracy")]
    assert len(told) == 2 * len(KINDS) and {one.value for one in told} == {None}
    assert [one.metric for one in values if one.value is not None][:1] == ["seconds"]


def test_the_recipe_is_what_is_trained(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins variants that are all the same model."""
    built = []
    build = classification.train_classifier

    def noted(*args: Any, **more: Any) -> Any:
        model = build(*args, **more)
        built.append(model.encoder.layers[0].self_attention.num_heads)
        return model

    monkeypatch.setattr(classification, "train_classifier", noted)
    for heads in (2, 8):
        model = recipe.model.model_copy(update={"num_heads": heads})
        found(recipe.model_copy(update={"model": model}))
    assert built == [2, 8]
