"""Positions: values of the paper, no limit for sines, a clear limit for learned vectors."""

from __future__ import annotations

import math

import pytest
import torch

from transformer_mt.errors import DataError
from transformer_mt.model.positional_encoding import (
    FIRST_ROWS,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
)


@pytest.mark.parametrize("position", [0, 1, 57, FIRST_ROWS + 3000])
def test_sinusoid_values(position: int) -> None:
    """Pins exchanged sine and cosine, a wrong exponent, and a table that ends."""
    d_model = 10
    row = SinusoidalPositions(d_model)(1, position)[0]
    for i in range(d_model // 2):
        angle = position / 10000 ** (2 * i / d_model)
        assert row[2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
        assert row[2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_odd_width() -> None:
    """Pins a table that needs an even width."""
    assert SinusoidalPositions(7)(4).shape == (4, 7)


def test_growing_leaves_earlier_rows_and_the_state_dict_alone() -> None:
    """Pins a table whose rows depend on its size, or that is saved with the weights."""
    positions = SinusoidalPositions(8)
    before = positions(FIRST_ROWS).clone()
    positions(3 * FIRST_ROWS)
    assert torch.equal(positions(FIRST_ROWS), before)
    assert positions.state_dict() == {}


def test_a_table_grown_in_inference_mode_can_still_be_trained_with() -> None:
    """Pins "Inference tensors cannot be saved for backward" after a long validation sentence."""
    rotary = RotaryPositions(4)
    with torch.inference_mode():
        rotary(torch.randn(1, 1, FIRST_ROWS + 1, 4))
    states = torch.randn(1, 1, FIRST_ROWS + 1, 4, requires_grad=True)
    rotary(states).sum().backward()
    assert states.grad is not None


def test_learned_positions_say_when_a_sentence_is_too_long() -> None:
    """Pins an index error without advice."""
    positions = LearnedPositions(4, max_positions=6)
    assert positions(4, offset=2).shape == (4, 4)
    with pytest.raises(DataError, match=r"a sentence of 7 tokens is too long .*max_positions is 6; shorten"):
        positions(4, offset=3)


def test_rotary_products_depend_on_distance_alone() -> None:
    """Pins a rotation by the wrong angle or of the wrong pairs."""
    torch.manual_seed(0)
    rotary = RotaryPositions(6).double()
    query, key = torch.randn(1, 1, 1, 6).double(), torch.randn(1, 1, 1, 6).double()

    def product(query_position: int, key_position: int) -> float:
        return (rotary(query, query_position) * rotary(key, key_position)).sum().item()

    assert product(9, 4) == pytest.approx(product(205, 200), abs=1e-5)
    assert product(9, 4) != pytest.approx(product(9, 5), abs=1e-3)
    assert product(3, 3) == pytest.approx((query * key).sum().item(), abs=1e-5)


def test_rotary_first_pair_turns_by_one_radian_per_position() -> None:
    """Pins another base or pairing: dimension 0 pairs with E / 2."""
    states = torch.zeros(1, 1, 2, 4)
    states[..., 0] = 1.0
    turned = RotaryPositions(4)(states)
    expected = [math.cos(1), 0.0, math.sin(1), 0.0]
    assert turned[0, 0, 1].tolist() == pytest.approx(expected, abs=1e-6)
    at_one_position = RotaryPositions(4)(states, 1, step=True)
    assert at_one_position[0, 0, 0].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "rotary"])
def test_places_of_packed_sentences(kind: str) -> None:
    """Each token gets what it would get in a sentence of its own, also where the table must grow first."""
    longest = 12 if kind == "learned" else FIRST_ROWS + 5
    places = torch.tensor([0, 1, longest - 1, 0, 3])
    torch.manual_seed(0)
    if kind == "rotary":
        states = torch.randn(1, 3, 5, 8)
        turned = RotaryPositions(8).at(states, places, longest)
        alone = [RotaryPositions(8)(states[:, :, [i]], int(place)) for i, place in enumerate(places)]
        torch.testing.assert_close(turned, torch.cat(alone, 2))
        return
    positions = SinusoidalPositions(6) if kind == "sinusoidal" else LearnedPositions(6, longest)
    if isinstance(positions, LearnedPositions):
        torch.nn.init.normal_(positions.weight)
        with pytest.raises(DataError, match="a sentence of 13 tokens is too long for learned positions"):
            positions.at(places, longest + 1)
    alone = [positions(1, int(place)) for place in places]
    torch.testing.assert_close(positions.at(places, longest), torch.cat(alone))
