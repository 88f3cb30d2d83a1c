"""A classifier learns a small language, does so twice alike, and says when it cannot."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.small_pairs import invented, small_recipe
from transformer_mt.config import Recipe
from transformer_mt.data.negatives import KINDS
from transformer_mt.data.pair_batches import TRANSLATION, PairRows, every_row
from transformer_mt.data.prepare import PreparedData, prepare
from transformer_mt.errors import DivergenceError
from transformer_mt.model.classifier import PairClassifier
from transformer_mt.training import pair_classifier
from transformer_mt.training.pair_classifier import accuracies, log_odds, train_classifier

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """400 training pairs and 40 others."""
    return small_recipe(tmp_path_factory.mktemp("pairs"), invented(400, 1))


@pytest.fixture(scope="module")
def prepared(recipe: Recipe) -> PreparedData:
    return prepare(recipe, log=lambda message: None)


def trained(
    recipe: Recipe, prepared: PreparedData, *, updates: int, compares_sides: bool = False, **training: Any
) -> PairClassifier:
    changed = recipe.model_copy(update={"training": recipe.training.model_copy(update=training)})
    return train_classifier(
        changed,
        prepared.train,
        np.arange(len(prepared.train)),
        prepared.tokenizers,
        compares_sides=compares_sides,
        updates=updates,
        device=CPU,
    )


def held_out(prepared: PreparedData) -> PairRows:
    return every_row(prepared.valid, np.arange(len(prepared.valid)), prepared.tokenizers, seed=1)


@pytest.mark.parametrize("compares_sides", [False, True])
def test_pairs_that_it_has_not_seen_are_told(
    recipe: Recipe, prepared: PreparedData, monkeypatch: pytest.MonkeyPatch, compares_sides: bool
) -> None:
    """Pins labels, sides or targets that are mixed up: three of four shuffled targets are told."""
    monkeypatch.setattr(pair_classifier, "MAX_TOKENS", 256)
    rows = held_out(prepared)
    model = trained(recipe, prepared, updates=300, compares_sides=compares_sides)
    told = accuracies(rows.kinds, log_odds(model, rows, CPU))
    assert told["shuffled"] > 0.75
    assert set(told) == set(KINDS)


def test_the_same_seed_learns_the_same(recipe: Recipe, prepared: PreparedData) -> None:
    """Pins anything drawn from elsewhere: the weights are equal bit for bit."""
    one, same, other = (trained(recipe, prepared, updates=7, dropout=0.2, seed=seed) for seed in (5, 5, 6))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not torch.equal(one.head.weight, other.head.weight)


def test_so_many_updates_and_no_more(recipe: Recipe, prepared: PreparedData) -> None:
    """Pins a phase that begins anew, or an epoch that is finished beyond the end."""
    counted = []
    train_classifier(
        recipe,
        prepared.train,
        np.arange(len(prepared.train)),
        prepared.tokenizers,
        compares_sides=True,
        updates=31,
        device=CPU,
        after_update=lambda: counted.append(1),
    )
    assert len(counted) == 31


def test_every_example_comes_once_before_any_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins a large text of which the same part is learned from again and again."""
    monkeypatch.setattr(pair_classifier, "_PART", 4)
    parts = list(itertools.islice(pair_classifier._parts(np.arange(10, 20), seed=1), 6))
    assert [len(part) for part in parts] == [4, 4, 2, 4, 4, 2]
    for epoch in (parts[:3], parts[3:]):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(10, 20))
    assert np.concatenate(parts[:3]).tolist() != np.concatenate(parts[3:]).tolist()


def test_shuffled_targets_come_first(
    recipe: Recipe, prepared: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pins kinds that drown the slow one from the start."""
    asked = []
    rows = pair_classifier.training_rows

    def noted(data: Any, indices: Any, tokenizers: Any, kinds: tuple[str, ...], **place: int) -> PairRows:
        asked.append((set(kinds), place["epoch"]))
        return rows(data, indices, tokenizers, kinds, **place)

    monkeypatch.setattr(pair_classifier, "training_rows", noted)
    trained(recipe, prepared, updates=9)
    assert asked == [({"shuffled"}, 0), (set(KINDS), 1)]


def test_a_classifier_that_learns_nothing_finite_is_said(recipe: Recipe, prepared: PreparedData) -> None:
    """Pins NaN that goes on and on; and no update may have touched the weights."""
    model = pair_classifier.build_classifier(recipe.model, 400, compares_sides=False)
    with torch.no_grad():
        model.head.weight.fill_(math.nan)
    config = pair_classifier._schedule(recipe.training, 40, CPU)
    update = pair_classifier._Update(model, config, CPU)
    batch = next(held_out(prepared).batches(100))
    before = model.embedding.weight.detach().clone()
    for step in range(1, 20):
        update.run(step, batch)
    with pytest.raises(DivergenceError, match=r"update 20: .* 20 updates in a row; lower"):
        update.run(20, batch)
    assert torch.equal(model.embedding.weight, before)


def test_accuracies_by_hand() -> None:
    """Translations count half, whatever their number."""
    kinds = [TRANSLATION] * 4 + ["shuffled"] * 2 + ["replaced"] * 5
    answers = np.array([1.0, 2.0, -1.0, 0.5, -3.0, 0.1, *[-1.0] * 4, 7.0], dtype=np.float32)
    assert accuracies(kinds, answers) == {"shuffled": (0.75 + 0.5) / 2, "replaced": (0.75 + 0.8) / 2}
