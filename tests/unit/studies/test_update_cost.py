"""What an update costs: every number where it belongs, and none where the memory ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from transformer_mt.config import Recipe
from transformer_mt.errors import ConfigError
from transformer_mt.studies import update_cost
from transformer_mt.studies.update_cost import UpdateCost, measure
from transformer_mt.training.step import Update, Updater

CPU = torch.device("cpu")
VOCAB, WIDTH = 300, 24


@pytest.fixture
def recipe() -> Recipe:
    return Recipe.model_validate(
        {
            "run_dir": "runs/none",
            "data": {"train": "train", "valid": "valid", "src_lang": "de", "tgt_lang": "en"},
            "tokenizer": {"vocab_size": VOCAB},
            "model": {
                "d_model": WIDTH,
                "d_ff": 40,
                "num_heads": 3,
                "num_encoder_layers": 2,
                "num_decoder_layers": 1,
            },
            "training": {"precision": "fp32"},
        }
    )


def with_training(recipe: Recipe, **keys: object) -> Recipe:
    return recipe.model_copy(update={"training": recipe.training.model_copy(update=keys)})


def found(recipe: Recipe, **settings: object) -> dict[tuple[str, object], float | None]:
    values = measure(recipe, UpdateCost.model_validate(settings), CPU)
    return {(one.metric, one.at.get("length")): one.value for one in values}


def test_every_length_has_its_numbers(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows make up for length; speed is target tokens by the median of the timed updates."""
    shapes, times = [], iter([9.0, 1.0, 2.0, 6.0] * 3)
    run = Updater.run

    def watched(self: Updater, step: int, batches: list) -> Update:  # type: ignore[type-arg]
        shapes.append(tuple(batches[0].src_ids.shape))
        return run(self, step, batches)

    monkeypatch.setattr(Updater, "run", watched)
    monkeypatch.setattr(update_cost, "timed", lambda work, device: (work(), next(times)))
    values = found(recipe, lengths=[40, 10, 100], tokens=60, updates=3)
    assert shapes == [(1, 2)] + [(6, 10)] * 4 + [(2, 40)] * 4 + [(1, 100)] * 4
    assert [values["update_seconds", length] for length in (10, 40, 100)] == [2.0, 2.0, 2.0]
    assert [values["update_tokens_per_second", length] for length in (10, 40, 100)] == [30.0, 40.0, 50.0]
    saved = [values["saved_mib", length] for length in (10, 40, 100)]
    assert all(saved)
    assert len(set(saved)) == 3
    assert all(("peak_mib", length) in values for length in (10, 40, 100))


@pytest.mark.parametrize(("ema", "copies"), [(0.0, 4), (0.99, 5)])
def test_the_model_is_weights_gradients_and_optimizer(recipe: Recipe, ema: float, copies: int) -> None:
    """By hand: weights, gradients, two moments, and a moving average where there is one."""
    attention = 4 * WIDTH * WIDTH + 4 * WIDTH
    feed_forward = 2 * WIDTH * 40 + 40 + WIDTH
    norm = 2 * WIDTH
    encoder_layer, decoder_layer = (
        attention + feed_forward + 2 * norm,
        2 * attention + feed_forward + 3 * norm,
    )
    weights = VOCAB * WIDTH + 2 * encoder_layer + decoder_layer + 2 * norm
    mib = found(with_training(recipe, ema=ema), lengths=[5], tokens=5, updates=1)["model_mib", None]
    assert mib is not None
    # Beside them the optimizer counts the updates of each of at most 60 weights.
    assert copies * 4 * weights <= mib * 2**20 <= copies * 4 * weights + 60 * 4


def test_checkpointing_keeps_the_input_of_every_layer(recipe: Recipe) -> None:
    """By hand: two encoder layers keep what they are given, 6 x 8 states, and the decoder layer its own and
    the memory; besides there is what the embeddings, the last norms and the loss keep."""
    plain = found(recipe, lengths=[8], tokens=48, updates=1)["saved_mib", 8]
    lean = found(with_training(recipe, gradient_checkpointing=True), lengths=[8], tokens=48, updates=1)
    kept = lean["saved_mib", 8]
    assert plain is not None
    assert kept is not None
    states = 6 * 8 * WIDTH * 4
    loss = states + VOCAB * WIDTH * 4
    assert 4 * states + loss < kept * 2**20 < 16 * states + loss
    assert kept < plain / 2


def lacks_memory(*_: object) -> None:
    raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")


def too_much(*_: object) -> None:
    raise ConfigError("step 1: does not fit")


def halved(self: Updater, step: int, batches: list) -> Update:  # type: ignore[type-arg]
    return Update(0.0, 0.0, 1, 1, 1, 0.0, 0.0, applied=True, pieces=2)


@pytest.mark.parametrize("fault", [lacks_memory, too_much, halved])
def test_what_does_not_fit_is_none_and_so_is_what_is_longer(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch, fault: Callable[..., object]
) -> None:
    run = Updater.run
    tried = []

    def limited(self: Updater, step: int, batches: list) -> object:  # type: ignore[type-arg]
        tried.append(batches[0].src_ids.size(1))
        return fault(self, step, batches) if tried[-1] >= 20 else run(self, step, batches)

    monkeypatch.setattr(Updater, "run", limited)
    values = found(recipe, lengths=[10, 20, 30], tokens=10, updates=1)
    metrics = ("update_seconds", "update_tokens_per_second", "peak_mib", "saved_mib")
    assert all(values[metric, 10] for metric in metrics[:2])
    assert [values[metric, length] for length in (20, 30) for metric in metrics] == [None] * 8
    assert tried == [2, 10, 10, 20]


def test_a_model_that_does_not_fit_costs_nothing_that_can_be_told(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update_cost, "new_updater", lacks_memory)
    assert set(found(recipe, lengths=[10]).values()) == {None}


def test_auto_is_what_the_machine_is_good_at(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured is what training would do: in half precision less is kept."""
    monkeypatch.setattr(update_cost, "pick_precision", lambda name, device: {"auto": "bf16"}.get(name, name))
    settings = {"lengths": [32], "tokens": 64, "updates": 1}
    half, full = (found(with_training(recipe, precision=name), **settings) for name in ("auto", "fp32"))
    assert half["saved_mib", 32] < 0.9 * full["saved_mib", 32]  # type: ignore[operator]


def test_lengths_beyond_learned_positions_are_refused(recipe: Recipe) -> None:
    model = recipe.model.model_copy(update={"positions": "learned", "max_positions": 16})
    short = recipe.model_copy(update={"model": model})
    with pytest.raises(ConfigError, match=r"lengths: 17 is beyond .* model\.max_positions 16; raise that"):
        found(short, lengths=[17, 3], updates=1)
    assert found(short, lengths=[16], tokens=16, updates=1)["update_seconds", 16] is not None
