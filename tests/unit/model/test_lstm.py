"""The LSTM baseline by itself. What every model promises is in tests/properties, parity in tests/parity."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from small_models import small_config
from torch import Tensor

from transformer_mt.model import lstm
from transformer_mt.model.build import build_model
from transformer_mt.model.lstm import AttentionalLstm, LstmState, Recurrence, mirrored
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.narrow_linear import take_up_weights, with_narrow_products
from transformer_mt.runtime.device import int8_features
from transformer_mt.training.loss import plain_loss
from transformer_mt.training.precision import autocast

V, S, T = 31, 7, 5
SRC = torch.tensor([[5, 6, 7, 8, 9, 10, 3], [11, 12, 13, 3, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0]])
MASK = padding_mask(SRC, 0)
TGT = torch.randint(4, V, (3, T), generator=torch.Generator().manual_seed(0))
VARIANTS: list[dict[str, Any]] = [
    {"attention": attention, "input_feeding": feeding}
    for attention, feeding in itertools.product(["general", "additive"], [False, True])
]


def model(seed: int = 0, *, config: dict[str, Any] | None = None, **rates: Any) -> AttentionalLstm:
    torch.manual_seed(seed)
    built = build_model(small_config("lstm", **(config or {})), V, V, **rates)
    assert isinstance(built, AttentionalLstm)
    return built


def gradients(network: AttentionalLstm) -> dict[str, Tensor]:
    """Of a loss that every real position takes part in; parameter name -> gradient."""
    torch.manual_seed(1)
    hidden = network.hidden(SRC, MASK, TGT)
    loss, _ = plain_loss(hidden.flatten(0, 1), network.output_weight, TGT.flatten(), 0.1, 0)
    loss.backward()
    return {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}


def test_reading_mirrored_places_twice_gives_the_sentences_back() -> None:
    """By hand for lengths 4, 1 and 3; padding stays where it is."""
    places = mirrored(torch.tensor([4, 1, 3]), 4)
    assert places.tolist() == [3, 2, 1, 0, 4, 5, 6, 7, 10, 9, 8, 11]
    assert torch.equal(places[places], torch.arange(12))


@pytest.mark.parametrize("config", VARIANTS)
def test_every_parameter_learns(config: dict[str, Any]) -> None:
    """Pins a part whose result goes nowhere; with three matrices none hides behind another's gradient."""
    network = model(config={**config, "tied_embeddings": "none"})
    found = gradients(network)
    idle = {name for name, _ in network.named_parameters() if name not in found or found[name].norm() < 1e-4}
    assert idle == set()


def test_what_padding_holds_reaches_no_state() -> None:
    """Bit for bit, even where it is not a number: padding stands behind the last real token both ways."""
    network = model(config={"tied_embeddings": "none"})
    real = SRC != 0
    before = network.encode(SRC, MASK)
    assert network.src_embedding is not None
    network.src_embedding.weight.data[0] = float("nan")
    after = network.encode(SRC, MASK)
    assert after.memory[~real].isnan().all()
    assert torch.equal(after.memory[real], before.memory[real])
    assert after.final_state is not None and before.final_state is not None
    assert torch.equal(after.final_state, before.final_state)


@torch.no_grad()
def test_initial_weights() -> None:
    """Forget gates begin open, all other biases at 0; each gate of the recurrent matrix is orthogonal."""
    network = model(config={"d_model": 96, "attention": "additive"})
    recurrences = [module for module in network.modules() if isinstance(module, Recurrence)]
    assert len(recurrences) == 2 * 2 + 2
    for recurrence in recurrences:
        enter, forget, new, leave = recurrence.inputs.bias.chunk(4)
        assert torch.equal(forget, torch.ones_like(forget))
        assert not torch.cat((enter, new, leave)).any()
        for gate in recurrence.recurrent.weight.chunk(4):
            torch.testing.assert_close(gate @ gate.T, torch.eye(len(gate)), rtol=0.0, atol=1e-5)
        for gate in recurrence.inputs.weight.chunk(4):
            bound = math.sqrt(6 / sum(gate.shape))
            assert 0.97 * bound < float(gate.abs().max()) <= bound
    others = {name: weight for name, weight in network.named_parameters() if ".inputs." not in name}
    assert not any(weight.any() for name, weight in others.items() if name.endswith("bias"))
    assert all((weight == 1.0).all() for name, weight in others.items() if name.endswith("norm.weight"))
    assert float(network.tgt_embedding.weight.std()) == pytest.approx(96**-0.5, rel=0.05)
    assert float(network.decoder_layers[0].attention.vector.std()) == pytest.approx(96**-0.5, rel=0.3)


@pytest.mark.parametrize("config", VARIANTS)
@torch.no_grad()
def test_the_first_loss_is_that_of_guessing(config: dict[str, Any]) -> None:
    """Logits of unit variance add half a nat to log V; more would cost the first updates.

    With an output matrix of its own: a tied one begins by favouring the token it was given.
    """
    torch.manual_seed(0)
    wanted = small_config("lstm", d_model=64, tied_embeddings="none", **config)
    network = build_model(wanted, 500, 500)
    src, tgt = torch.randint(4, 500, (8, 11)), torch.randint(4, 500, (8, 9))
    hidden = network.hidden(src, padding_mask(src, 0), tgt)
    _, nll = plain_loss(hidden.flatten(0, 1), network.output_weight, tgt.roll(1, 1).flatten(), 0.0, 0)
    assert math.log(500) - 0.2 < float(nll) / tgt.numel() < math.log(500) + 0.8


@pytest.mark.parametrize("kept", [1, 2])
def test_additive_scores_in_parts_are_those_in_one(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """To fp32 rounding, gradients too: parts of `kept` positions, the last one shorter."""
    whole = gradients(model(config={"attention": "additive"}))
    with torch.no_grad():
        expected = model(config={"attention": "additive"}).hidden(SRC, MASK, TGT)
    monkeypatch.setattr(lstm, "_ADDITIVE_ELEMENTS", kept * SRC.numel() * 24)
    calls = []
    tanh = torch.tanh
    monkeypatch.setattr(torch, "tanh", lambda states: calls.append(states.shape) or tanh(states))
    parts = gradients(model(config={"attention": "additive"}))
    assert sum(shape == (3, kept, S, 24) for shape in calls) >= 2 * 2 * (T // kept)  # again backwards
    for name, gradient in whole.items():
        torch.testing.assert_close(parts[name], gradient, rtol=1e-4, atol=1e-6)
    with torch.no_grad():
        found = model(config={"attention": "additive"}).hidden(SRC, MASK, TGT)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("config", VARIANTS)
def test_recomputed_layers_draw_the_same_masks(config: dict[str, Any]) -> None:
    """Bit for bit, with every kind of dropout."""
    rates = {"dropout": 0.3, "attention_dropout": 0.2}
    kept = gradients(model(config=config, **rates))
    recomputed = gradients(model(config=config, **rates, gradient_checkpointing=True))
    assert all(torch.equal(recomputed[name], gradient) for name, gradient in kept.items())
    without = gradients(model(config=config))
    assert any(not torch.equal(without[name], gradient) for name, gradient in kept.items())


def test_rates_reach_their_places() -> None:
    """Pins a rate that is read nowhere, and dropout in evaluation."""
    for rates in ({"dropout": 0.5}, {"attention_dropout": 0.5}):
        network = model(**rates)
        first, second = (network.hidden(SRC, MASK, TGT) for _ in range(2))
        assert not torch.equal(first, second)
        network.eval()
        assert torch.equal(network.hidden(SRC, MASK, TGT), model().hidden(SRC, MASK, TGT))
    network = model(dropout=0.25, attention_dropout=0.5)
    assert network.dropout == 0.25
    assert {layer.dropout for layer in (*network.encoder_layers, *network.decoder_layers)} == {0.25}
    assert {layer.attention.dropout for layer in network.decoder_layers} == {0.5}


@pytest.mark.parametrize("config", VARIANTS)
@torch.no_grad()
def test_attention_that_is_shown_is_what_is_used(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows sum to 1, padding has none, and each layer's weights are those used in decoding step by step."""
    network = model(config=config).eval()
    used: list[Tensor] = []
    plain = lstm.Attention.weights

    def watched(self: lstm.Attention, *given: Tensor) -> Tensor:
        used.append(plain(self, *given))
        return used[-1]

    monkeypatch.setattr(lstm.Attention, "weights", watched)
    state = network.start(network.encode(SRC, MASK), 1)
    for position in range(T):
        _, state = network.decode_step(TGT[:, position : position + 1], state)
    monkeypatch.undo()
    for layer in (0, 1):
        shown = network.cross_attention(SRC, MASK, TGT, layer)
        assert shown.shape == (3, T, S)
        assert not shown[(SRC == 0)[:, None].expand(-1, T, -1)].any()
        torch.testing.assert_close(shown.sum(-1), torch.ones(3, T))
        torch.testing.assert_close(shown, torch.cat(used[layer::2], dim=1), rtol=1e-4, atol=1e-5)
    assert torch.equal(network.cross_attention(SRC, MASK, TGT), shown)
    mean = (network.cross_attention(SRC, MASK, TGT, 0) + shown) / 2
    torch.testing.assert_close(network.cross_attention(SRC, MASK, TGT, "mean"), mean)


@pytest.mark.parametrize("feeding", [False, True])
@torch.no_grad()
def test_a_state_may_be_stepped_twice(feeding: bool) -> None:
    """Nothing is written in place: both followers see the same past, and moving one moves no other."""
    network = model(config={"input_feeding": feeding}).eval()
    state = network.start(network.encode(SRC, MASK), 2)
    _, state = network.decode_step(TGT[:, :1], state)
    state = state.reorder(torch.tensor([[0, 0]] * 3))
    tokens, others = TGT[:, 1:3], TGT[:, 3:5]
    first, after = network.decode_step(tokens, state)
    network.decode_step(others, state.reorder(torch.tensor([[1, 0]] * 3)).keep(torch.tensor([2, 0, 1])))
    network.decode_step(others, state)
    again, same = network.decode_step(tokens, state)
    assert torch.equal(first, again)
    assert isinstance(after, LstmState) and isinstance(same, LstmState)
    assert torch.equal(after.hidden, same.hidden) and torch.equal(after.cells, same.cells)
    assert (after.feed is not None) == feeding


@pytest.mark.parametrize("config", VARIANTS)
@torch.no_grad()
def test_bf16_is_near_fp32(config: dict[str, Any]) -> None:
    """Under autocast, all at once and step by step."""
    network = model(config=config).eval()
    exact = network.hidden(SRC, MASK, TGT)
    with autocast("bf16", torch.device("cpu")):
        rounded = network.hidden(SRC, MASK, TGT)
        state, steps = network.start(network.encode(SRC, MASK), 1), []
        for position in range(T):
            hidden, state = network.decode_step(TGT[:, position : position + 1], state)
            steps.append(hidden.float())
    for found in (rounded.float(), torch.cat(steps, dim=1)):
        assert 1e-5 < float((found - exact).norm() / exact.norm()) < 0.02


@pytest.mark.parametrize(
    "dtype",
    [
        torch.bfloat16,
        pytest.param(
            torch.int8, marks=pytest.mark.skipif(not int8_features(), reason="this processor has no int8")
        ),
    ],
)
@pytest.mark.parametrize("config", VARIANTS)
@torch.no_grad()
def test_a_narrow_twin_is_near_and_follows_its_model(config: dict[str, Any], dtype: torch.dtype) -> None:
    """The kernel cannot be narrowed: the twin's encoder and teacher-forced decoder loop over positions."""
    network = model(config=config).eval()
    twin = with_narrow_products(network, dtype, network.output_weight)
    for seed in (0, 1):
        if seed:
            network.load_state_dict(model(seed, config=config).state_dict())
            take_up_weights(twin, network)
        exact, narrow = (one.hidden(SRC, MASK, TGT) for one in (network, twin))
        assert narrow.dtype == torch.float32
        assert 1e-5 < float((narrow - exact).norm() / exact.norm()) < 0.05
        state, steps = twin.start(twin.encode(SRC, MASK), 1), []
        for position in range(T):
            hidden, state = twin.decode_step(TGT[:, position : position + 1], state)
            steps.append(hidden)
        torch.testing.assert_close(torch.cat(steps, dim=1), narrow, rtol=1e-3, atol=0.03)
