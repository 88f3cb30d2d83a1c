"""Halves judge each other: nobody judges what it has learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.small_pairs import invented, small_recipe
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import DataError
from transformer_mt.training import cross_fitting
from transformer_mt.training.cross_fitting import cross_fitted

CPU = torch.device("cpu")


def test_no_pair_is_judged_by_what_has_learned_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins halves that overlap, pairs without an answer, and answers in another order."""
    recipe = small_recipe(tmp_path, invented(31, 1))
    model = recipe.model.model_copy(update={"num_encoder_layers": 3})
    recipe = recipe.model_copy(update={"model": model})
    prepared = prepare(recipe, log=lambda message: None)
    learned: list[set[int]] = []

    def train(recipe: Any, data: Any, indices: npt.NDArray[np.int64], *rest: Any, **more: Any) -> int:
        assert recipe.model.num_encoder_layers == 1
        learned.append(set(indices.tolist()))
        return len(learned) - 1

    def answer(model: Any, rows: Any, device: Any) -> npt.NDArray[np.float32]:
        assert not learned[model] & set(rows.indices.tolist())
        return rows.indices.astype(np.float32)

    monkeypatch.setattr(cross_fitting, "train_classifier", train)
    monkeypatch.setattr(cross_fitting, "log_odds", answer)
    indices = np.arange(2, 31)
    answers, told = cross_fitted(recipe, prepared.train, indices, prepared.tokenizers, updates=1, device=CPU)
    assert answers.tolist() == indices.tolist()
    assert learned[0] | learned[1] == set(indices.tolist()) and len(learned) == 2
    assert abs(len(learned[0]) - len(learned[1])) == 1
    assert set(told) == {"shuffled", "truncated", "reordered", "replaced"}


def test_a_few_pairs_are_refused(tmp_path: Path) -> None:
    """Pins a classifier that learns from one pair, which has no other target to be shuffled with."""
    recipe = small_recipe(tmp_path, invented(31, 1))
    prepared = prepare(recipe, log=lambda message: None)
    with pytest.raises(DataError, match=r"too few pairs that can be used \(3\): .* give at least 4"):
        cross_fitted(recipe, prepared.train, np.arange(3), prepared.tokenizers, updates=1, device=CPU)
