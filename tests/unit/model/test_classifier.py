"""The classifier of pairs: what its answer depends on, by hand, and who may attend to whom."""

from __future__ import annotations

import pytest
import torch

from tests.small_models import small_config
from transformer_mt.errors import ConfigError
from transformer_mt.model.build import build_classifier
from transformer_mt.model.classifier import PairClassifier

B, L, V = 3, 7, 50


def classifier(*, compares_sides: bool = False, **values: object) -> PairClassifier:
    """Random weights."""
    torch.manual_seed(1)
    return build_classifier(small_config(**values), V, compares_sides=compares_sides).eval()


def test_the_answer_is_that_of_the_mean_state() -> None:
    """Pins a sum, a maximum, or the state of one place in the place of the mean."""
    model, ids = classifier(), torch.randint(4, V, (B, L))
    src_lengths = torch.tensor([2, 5, 3])
    side = torch.stack([(torch.arange(L) >= start).long() for start in src_lengths])
    states = model.encoder(model.embedding(ids) + model.sides[side], None)
    expected = states.mean(dim=1) @ model.head.weight[0] + model.head.bias
    torch.testing.assert_close(model(ids, src_lengths), expected)
    assert model(ids, src_lengths).shape == (B,)


def test_sides_that_are_compared_are_pooled_by_themselves() -> None:
    """Pins the mean over all in the place of the means of both sides, by a loop over the rows."""
    model, ids = classifier(compares_sides=True), torch.randint(4, V, (B, L))
    src_lengths = torch.tensor([2, 5, 3])
    side = torch.stack([(torch.arange(L) >= start).long() for start in src_lengths])
    states = model.encoder(model.embedding(ids) + model.sides[side], None)
    expected = []
    for row, start in zip(states, src_lengths, strict=True):
        src, tgt = row[:start].mean(dim=0), row[start:].mean(dim=0)
        expected.append(torch.cat([src, tgt, src * tgt]) @ model.head.weight[0] + model.head.bias[0])
    torch.testing.assert_close(model(ids, src_lengths), torch.stack(expected))


def test_every_word_attends_to_those_of_both_sides() -> None:
    """Pins a mask: the gradient of a state reaches every word, before it and after it."""
    model, ids = classifier(num_encoder_layers=1), torch.randint(4, V, (1, L))
    embedded = model.embedding(ids).detach().requires_grad_(True)
    for place in (0, L - 1):
        (gradient,) = torch.autograd.grad(model.encoder(embedded, None)[0, place].square().sum(), embedded)
        assert bool((gradient.abs().sum(dim=-1) > 0).all())


def test_where_the_target_begins_makes_a_difference() -> None:
    """Pins sides that cannot be told apart."""
    model, ids = classifier(), torch.randint(4, V, (1, L))
    one, other = (model(ids, torch.tensor([start])) for start in (2, 4))
    assert not torch.allclose(one, other)


def test_neighbours_do_not_change_an_answer() -> None:
    """Pins anything that is computed over a batch."""
    model = classifier(compares_sides=True)
    ids, src_lengths = torch.randint(4, V, (B, L)), torch.tensor([2, 5, 3])
    alone = torch.cat([model(ids[row : row + 1], src_lengths[row : row + 1]) for row in range(B)])
    torch.testing.assert_close(model(ids, src_lengths), alone)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("scale", [True, False])
def test_parts_of_the_recipe_are_built(positions: str, scale: bool) -> None:
    """Pins settings of the encoder that the classifier passes over."""
    model = classifier(positions=positions, ablation={"scale": scale}, num_encoder_layers=1)
    (layer,) = model.encoder.layers
    assert layer.self_attention.scale is scale
    assert (layer.self_attention.rotary is not None) == (positions == "rotary")
    ids = torch.randint(4, V, (1, L))
    assert not torch.allclose(model(ids, torch.tensor([3])), model(ids.flip(1), torch.tensor([3])))


def test_a_model_without_self_attention_is_refused() -> None:
    """Pins a classifier of half an LSTM."""
    with pytest.raises(ConfigError, match=r"model.architecture: .* set model.architecture=transformer"):
        build_classifier(small_config("lstm"), V, compares_sides=False)
