"""Statistics of attention against values computed by hand, and what a probe leaves behind: nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_mt.config import ModelConfig
from transformer_mt.data.batch import Batch, make_batch
from transformer_mt.model.attention import MultiHeadAttention, attention_weights
from transformer_mt.model.build import Model, build_model
from transformer_mt.training.probes import AttentionSums, probe

V = 23
CPU = torch.device("cpu")
TRANSFORMER = {"d_model": 16, "num_heads": 4, "d_ff": 24, "num_encoder_layers": 2, "num_decoder_layers": 1}
LSTM = {"architecture": "lstm", "d_model": 16, "num_encoder_layers": 1, "num_decoder_layers": 2}


def batch() -> Batch:
    """Three pairs of uneven length."""
    return make_batch([([5, 6, 7, 8, 3], [8, 3]), ([9, 3], [4, 5, 6, 7, 3]), ([10, 11, 3], [9, 9, 3])])


def model(**values: Any) -> Model:
    torch.manual_seed(0)
    return build_model(ModelConfig.model_validate(values), V, V, dropout=0.3)


def attention(scale: bool = True) -> MultiHeadAttention:
    return MultiHeadAttention(4, 1, scale=scale)


def test_two_rows_are_hand_computed() -> None:
    """Query (2, 0) with keys (1, 0), (3, 0) and one that is masked: products 2 and 6, variance 4.

    Divided by sqrt(2) they are 4 / sqrt(2) apart. The second query is padding, the third has one key.
    """
    query = torch.tensor([[2.0, 0.0], [100.0, 7.0], [1.0, 0.0]])[None, None]  # (1, 1, 3, 2)
    key = torch.tensor([[1.0, 0.0], [3.0, 0.0], [50.0, 0.0]])[None, None]
    mask = torch.tensor([[[[True, True, False], [True, True, True], [True, False, False]]]])
    found = {}
    for scale in (True, False):
        sums = AttentionSums(torch.tensor([[True, False, True]]))
        sums.see(attention(scale), query, key, mask)
        found[scale] = sums.results()
    # The third query's only product, 1, is one of the three: mean 3, squares 4 + 36 + 1.
    assert found[True]["score_variance"] == pytest.approx(41 / 3 - 9)
    odds = math.exp(4 / math.sqrt(2))
    large, small = odds / (1 + odds), 1 / (1 + odds)
    entropy = -large * math.log(large) - small * math.log(small)
    assert found[True]["entropy"] == pytest.approx(entropy, rel=1e-5)
    assert found[True]["entropy_share"] == pytest.approx(entropy / math.log(2), rel=1e-5)
    assert found[True]["saturated"] == 0.0  # 0.944
    assert found[False]["score_variance"] == found[True]["score_variance"]
    sharp = 1 / (1 + math.exp(-4.0))
    assert found[False]["saturated"] == 0.0 and sharp == pytest.approx(0.982, abs=1e-3)


@pytest.mark.parametrize(("distance", "saturated"), [(4.5, 0.0), (4.7, 1.0)])
def test_a_row_is_saturated_above_99_hundredths(distance: float, saturated: float) -> None:
    """Products 0 and `distance`, not divided: weights of 0.989 and 0.991."""
    sums = AttentionSums(torch.ones(1, 1).bool())
    sums.see(attention(scale=False), torch.ones(1, 1, 1, 1), torch.tensor([[[[0.0], [distance]]]]), None)
    assert sums.results()["saturated"] == saturated


def test_causal_rows_see_their_past_alone() -> None:
    """Equal keys: even weights over 1, 2 and 3 keys; the first row has no choice and does not count."""
    sums = AttentionSums(torch.ones(1, 3).bool())
    causal = torch.ones(3, 3).tril().bool()[None, None]
    sums.see(attention(), torch.ones(1, 1, 3, 2), torch.ones(1, 1, 3, 2), causal)
    assert sums.results() == {
        "score_variance": pytest.approx(0.0),
        "saturated": 0.0,
        "entropy": pytest.approx((math.log(2) + math.log(3)) / 2, rel=1e-6),
        "entropy_share": pytest.approx(1.0, rel=1e-6),
    }


def test_grouped_heads_look_at_their_own_key_head() -> None:
    """Four query heads of ones, two key heads with products -1, 1 and -5, 5: variances 1 and 25."""
    sums = AttentionSums(torch.ones(1, 1).bool())
    key = torch.tensor([[[[-1.0], [1.0]], [[-5.0], [5.0]]]])  # (1, 2, 2, 1)
    sums.see(attention(scale=False), torch.tensor([1.0, 1.0, 1.0, 2.0]).view(1, 4, 1, 1), key, None)
    found = sums.results()
    # Products of the four heads: 1 and 1 twice, 5 and 10.
    assert found["score_variance"] == pytest.approx((1 + 1 + 25 + 100) / 4)
    assert found["saturated"] == 0.5  # the last two, at distances of 10 and 20


def test_what_is_not_finite_is_none() -> None:
    """Pins a NaN in a record, and a diverged model that looks well because no NaN is above 0.99."""
    sums = AttentionSums(torch.ones(1, 1).bool())
    sums.see(attention(), torch.full((1, 1, 1, 2), math.nan), torch.ones(1, 1, 2, 2), None)
    assert set(sums.results().values()) == {None}
    unseen = AttentionSums(torch.zeros(1, 1).bool())
    unseen.see(attention(), torch.ones(1, 1, 1, 2), torch.ones(1, 1, 2, 2), None)
    assert set(unseen.results().values()) == {None}


@pytest.mark.parametrize(
    "values", [{}, {"num_kv_heads": 2, "positions": "rotary"}, {"attention_window": 1}], ids=str
)
def test_padding_changes_nothing(values: dict[str, Any]) -> None:
    """Pins padded queries that count: the sums of a batch are those of its sentences one by one.

    With a window of 1, sentences of four tokens and more are attended block by block.
    """
    built = model(**TRANSFORMER, **values)
    pairs = [([5, 6, 7, 8, 3], [8, 3]), ([9, 3], [4, 5, 6, 7, 3]), ([10, 11, 3], [9, 9, 3])]
    together = probe(built, make_batch(pairs), "fp32", CPU)
    name = "entropy/decoder.layers.0.cross_attention"
    alone = [probe(built, make_batch([pair]), "fp32", CPU)[name] for pair in pairs]
    weighted = [len(pair[1]) * float(value or 0) for pair, value in zip(pairs, alone, strict=True)]
    assert together[name] == pytest.approx(sum(weighted) / 10, rel=1e-5)
    products: list[Tensor] = []

    def note(query: Tensor, key: Tensor, mask: Tensor | None) -> None:
        scores = query @ key.repeat_interleave(query.size(1) // key.size(1), dim=1).mT
        products.append(scores if mask is None else scores[mask.expand_as(scores)])

    built.eval().encoder.layers[0].self_attention.watch = note
    for pair in pairs:
        one = make_batch([pair])
        built.hidden(one.src_ids, one.src_mask, one.decoder_input_ids)
    found = torch.cat([part.flatten() for part in products])
    assert found.numel() == 4 * (5 + 2 + 3 if "attention_window" in values else 25 + 4 + 9)
    variance = together["score_variance/encoder.layers.0.self_attention"]
    assert variance == pytest.approx(found.var(correction=0).item(), rel=1e-4)


def test_every_attention_has_its_numbers() -> None:
    """Pins a layer that nobody watches, and names that say nothing."""
    found = probe(model(**TRANSFORMER), batch(), "fp32", CPU)
    layers = [
        "encoder.layers.0.self_attention",
        "encoder.layers.1.self_attention",
        "decoder.layers.0.self_attention",
        "decoder.layers.0.cross_attention",
    ]
    metrics = ["score_variance", "saturated", "entropy", "entropy_share"]
    assert list(found) == [f"{metric}/{layer}" for metric in metrics for layer in layers]
    assert all(value is not None for value in found.values())


@pytest.mark.parametrize("more", [{}, {"attention": "additive"}, {"input_feeding": True}], ids=str)
def test_the_lstm_has_entropy_and_saturation(more: dict[str, Any]) -> None:
    """Its weights are those that `cross_attention` gives; with input feeding they come row by row."""
    built, shown = model(**LSTM, **more), batch()
    found = probe(built, shown, "fp32", CPU)
    layers = ["decoder_layers.0.attention", "decoder_layers.1.attention"]
    metrics = ["saturated", "entropy", "entropy_share"]
    assert list(found) == [f"{metric}/{layer}" for metric in metrics for layer in layers]
    built.eval()
    weights = built.cross_attention(shown.src_ids, shown.src_mask, shown.decoder_input_ids, 0)  # (B, T, S)
    rows = torch.special.entr(weights).sum(-1)[shown.labels != -100]
    assert found[f"entropy/{layers[0]}"] == pytest.approx(rows.mean().item(), rel=1e-5)


@pytest.mark.parametrize("values", [TRANSFORMER, LSTM], ids=["transformer", "lstm"])
def test_a_probe_leaves_no_trace(values: dict[str, Any]) -> None:
    """Pins a hook that stays, a mode that changes, a gradient, a random number that is drawn."""
    built = model(**values)
    before, state = {name: value.clone() for name, value in built.state_dict().items()}, torch.get_rng_state()
    probe(built, batch(), "bf16", CPU)
    assert built.training and all(module.training for module in built.modules())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in built.state_dict().items())
    for module in built.modules():
        assert getattr(module, "watch", None) is None and not module._forward_pre_hooks
    assert all(weight.grad is None for weight in built.parameters())


def test_the_scale_is_the_models_own() -> None:
    """Pins entropies of a model without the scale that are computed with it."""
    query, key = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 4, 8)
    for scale in (True, False):
        sums = AttentionSums(torch.ones(1, 3).bool())
        sums.see(attention(scale), query, key, None)
        rows = torch.special.entr(attention_weights(query, key, None, scale)).sum(-1)
        assert sums.results()["entropy"] == pytest.approx(rows.mean().item(), rel=1e-5)
