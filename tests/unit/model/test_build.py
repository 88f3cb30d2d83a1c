"""build_model: what the config asks for is what the model does."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import torch
from torch import nn

from transformer_mt.config import ModelConfig
from transformer_mt.errors import ConfigError
from transformer_mt.model.attention import MultiHeadAttention
from transformer_mt.model.build import build_model, head_warning


def config(**values: Any) -> ModelConfig:
    small = {"d_model": 24, "num_heads": 4, "d_ff": 40, "num_encoder_layers": 2, "num_decoder_layers": 1}
    return ModelConfig.model_validate({**small, **values})


def test_parameter_count_of_the_small_preset() -> None:
    """Pins a part that is missing or built twice; the sum by hand: D 256, F 1024, V 8000, 3 + 3 layers."""
    d, f, v = 256, 1024, 8000
    attention, feed_forward, norm = 4 * (d * d + d), 2 * d * f + f + d, 2 * d
    encoder = 3 * (attention + feed_forward + 2 * norm) + norm
    decoder = 3 * (2 * attention + feed_forward + 3 * norm) + norm
    model = build_model(ModelConfig.model_validate({"preset": "small"}), v, v)
    assert sum(p.numel() for p in model.parameters()) == encoder + decoder + v * d


@pytest.mark.parametrize(("tied", "matrices"), [("three_way", 1), ("decoder", 2), ("none", 3)])
def test_tied_matrices_are_one_parameter_with_one_name(tied: str, matrices: int) -> None:
    """Pins ties that come apart in copying, loading or moving: the state holds each matrix once."""
    vocab = 31
    model = build_model(config(tied_embeddings=tied), vocab, vocab)
    assert sum(value.shape == (vocab, 24) for value in model.state_dict().values()) == matrices
    other = build_model(config(tied_embeddings=tied), vocab, vocab)
    other.load_state_dict(copy.deepcopy(model.state_dict()))
    for moved in (other, copy.deepcopy(model), model.to(torch.float64), model.to("cpu", torch.float32)):
        assert (moved.output_weight is moved.tgt_embedding.weight) == (tied != "none")
        assert (moved.src_embedding is None) == (tied == "three_way")
    source, mask, target = torch.tensor([[5, 6, 3]]), torch.ones(1, 1, 1, 3).bool(), torch.tensor([[2, 7]])
    torch.testing.assert_close(other.hidden(source, mask, target), model.hidden(source, mask, target))


def test_all_three_uses_train_a_three_way_matrix() -> None:
    """Pins a tie that feeds gradients from some of its uses only."""
    model = build_model(config(), 31, 31)
    mask = torch.ones(1, 1, 1, 3).bool()
    hidden = model.hidden(torch.tensor([[5, 6, 3]]), mask, torch.tensor([[2, 7]]))
    model.project(hidden, torch.tensor([9, 10])).sum().backward()
    grad = model.tgt_embedding.weight.grad
    assert grad is not None
    assert (grad.abs().sum(1) > 0).nonzero().flatten().tolist() == [2, 3, 5, 6, 7, 9, 10]


def test_three_way_needs_one_vocabulary() -> None:
    """Pins a shape error far from its cause."""
    with pytest.raises(ConfigError, match=r"three_way needs one joint vocabulary.* 31 pieces .* 37"):
        build_model(config(), 31, 37)
    model = build_model(config(tied_embeddings="decoder"), 31, 37)
    assert model.output_weight.shape == (37, 24)


def test_output_projection_has_no_bias() -> None:
    """Pins a bias that a tied matrix could not bring along."""
    model = build_model(config(tied_embeddings="none"), 31, 37)
    assert torch.equal(model.project(torch.zeros(2, 24)), torch.zeros(2, 37))
    assert model.output is not None and model.output.bias is None


def test_rates_reach_their_places() -> None:
    """Pins a dropout rate that is read nowhere."""
    model = build_model(config(), 31, 31, dropout=0.1, attention_dropout=0.2, activation_dropout=0.3)
    rates = {
        name: {module.dropout for module in model.modules() if type(module).__name__ == name}
        for name in ("Residual", "Encoder", "Decoder", "MultiHeadAttention", "FeedForward")
    }
    assert rates["Residual"] == rates["Encoder"] == rates["Decoder"] == {0.1}
    assert rates["MultiHeadAttention"] == {0.2}
    assert rates["FeedForward"] == {0.3}


def test_norms_bends_and_positions_follow_the_config() -> None:
    """Pins a config key that changes nothing."""
    wanted = {"norm": "rms_norm", "activation": "swiglu", "positions": "rotary"}
    model = build_model(config(**wanted, attention_window=9, num_kv_heads=2), 31, 31)
    kinds = [type(module) for module in model.modules()]
    assert nn.RMSNorm in kinds and nn.LayerNorm not in kinds
    layer = model.encoder.layers[0]
    assert layer.feed_forward.inner.weight.shape == (80, 24)
    assert model.encoder.positions is None and layer.self_attention.rotary is not None
    cross = model.decoder.layers[0].cross_attention
    assert (layer.self_attention.window, cross.window, cross.rotary) == (9, None, None)
    assert cross.key_value.weight.shape == (2 * 2 * 6, 24)
    assert model.decoder.layers[0].self_attention.causal and not layer.self_attention.causal
    assert model.max_length is None
    assert build_model(config(positions="learned", max_positions=50), 31, 31).max_length == 50
    assert build_model(config(norm_first=False), 31, 31).encoder.final_norm is None
    ablated = build_model(config(ablation={"scale": False, "output_projection": False}), 31, 31)
    attentions = [module for module in ablated.modules() if isinstance(module, MultiHeadAttention)]
    assert len(attentions) == 4
    assert all(not x.scale and isinstance(x.output, nn.Identity) for x in attentions)


def test_initial_weights() -> None:
    """Pins Xavier bounds of the packed matrix instead of its parts, and weights that nobody initialised."""
    torch.manual_seed(0)
    wanted = config(d_model=96, num_kv_heads=2, activation="swiglu", positions="learned")
    model = build_model(wanted, 500, 500)
    packed = model.encoder.layers[0].self_attention.query_key_value
    query, key, value = torch.split(packed.weight, [96, 48, 48])
    for matrix, rows in ((query, 96), (key, 48), (value, 48)):
        bound = (6 / (96 + rows)) ** 0.5
        assert 0.97 * bound < matrix.abs().max().item() <= bound
    gate = model.encoder.layers[0].feed_forward.inner.weight[:40]
    assert gate.abs().max().item() > 0.97 * (6 / (96 + 40)) ** 0.5
    assert model.tgt_embedding.weight.std().item() == pytest.approx(96**-0.5, rel=0.02)
    assert model.encoder.positions.weight.std().item() == pytest.approx(96**-0.5, rel=0.02)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert torch.equal(parameter, torch.zeros_like(parameter)), name
        elif "norm" in name:
            assert torch.equal(parameter, torch.ones_like(parameter)), name


def test_same_seed_same_weights() -> None:
    """Pins initial values from another generator than torch's default."""
    states = []
    for _ in range(2):
        torch.manual_seed(7)
        states.append(build_model(config(tied_embeddings="none"), 31, 37).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


GOOD = [(128, 4), (256, 4), (512, 8), (512, 16), (1024, 16), (2048, 32)]


@pytest.mark.parametrize(("d_model", "heads"), GOOD)
def test_no_warning_for_known_good_heads(d_model: int, heads: int) -> None:
    """Pins a warning about every preset."""
    assert head_warning(config(d_model=d_model, num_heads=heads)) is None


@pytest.mark.parametrize(
    ("d_model", "heads", "reason"),
    [
        (256, 16, r"16 heads of 16 dimensions each: below 32 .*num_heads=4"),
        (1024, 32, r"32 heads pay only above d_model=1024.*num_heads=16"),
        (512, 4, r"d_model=512 with 4 heads is untried here.*num_heads=8 or num_heads=16"),
        (384, 6, r"d_model=384 with 6 heads is untried here.*256:4"),
        (2048, 128, r"128 heads of 16 dimensions"),
    ],
)
def test_warning_with_its_reason(d_model: int, heads: int, reason: str) -> None:
    """Pins heads too small to be useful going by unseen."""
    warning = head_warning(config(d_model=d_model, num_heads=heads))
    assert warning is not None
    assert re.search(reason, warning)


def test_without_positions_an_encoder_sees_a_set_of_words() -> None:
    """Pins position information that comes in all the same: words in another order have the same states."""
    torch.manual_seed(3)
    source, order = torch.tensor([[5, 9, 7, 11, 3]]), torch.tensor([3, 0, 4, 2, 1])
    mask = torch.ones(1, 1, 1, 5).bool()
    for positions in ("none", "sinusoidal", "learned", "rotary"):
        model = build_model(config(positions=positions), 31, 31).eval()
        states = model.encode(source, mask).memory[:, order]
        moved = model.encode(source[:, order], mask).memory
        assert torch.allclose(states, moved, atol=1e-5) == (positions == "none")
        # A causal decoder tells places apart without help: each sees another set.
        target = torch.tensor([[2, 7, 7]])
        assert not torch.allclose(*model.hidden(source, mask, target)[0, 1:], atol=1e-3)
    assert build_model(config(positions="none"), 31, 31).max_length is None
