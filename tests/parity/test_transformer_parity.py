"""Layers and the whole model against torch.nn.Transformer with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from transformer_mt.config import ModelConfig
from transformer_mt.model.attention import MultiHeadAttention
from transformer_mt.model.build import build_model
from transformer_mt.model.layers import DecoderLayer, EncoderLayer
from transformer_mt.model.masks import padding_mask
from transformer_mt.model.positional_encoding import sinusoid_table
from transformer_mt.model.transformer import Transformer

D, HEADS, D_FF, VOCAB = 24, 3, 40, 31
SRC = torch.tensor([[5, 6, 7, 8, 9, 10, 3], [11, 12, 13, 3, 0, 0, 0]])
TGT = torch.tensor([[2, 14, 15, 16, 17], [2, 18, 19, 0, 0]])


@torch.no_grad()
def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    parts = [ours.query, ours.key_value] if ours.cross else [ours.query_key_value]
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_layer(ours: EncoderLayer | DecoderLayer, theirs: nn.Module) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    residuals = [ours.around_self, ours.around_feed_forward]
    if isinstance(ours, DecoderLayer):
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        residuals.insert(1, ours.around_cross)
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    for number, residual in enumerate(residuals, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(residual.norm.state_dict())


def models(norm_first: bool, activation: str) -> tuple[Transformer, nn.Transformer]:
    """Ours with random norms and biases, and torch's with the same weights."""
    torch.manual_seed(0)
    values = {
        "d_model": D,
        "num_heads": HEADS,
        "d_ff": D_FF,
        "norm_first": norm_first,
        "activation": activation,
    }
    config = ModelConfig.model_validate({**values, "num_encoder_layers": 2, "num_decoder_layers": 3})
    ours = build_model(config, VOCAB, VOCAB).eval()
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter.add_(0.3 * torch.randn_like(parameter))
    theirs = nn.Transformer(
        D, HEADS, 2, 3, D_FF, 0.0, activation, batch_first=True, norm_first=norm_first
    ).eval()
    # torch puts a last norm behind post-norm stacks too, ours ends with the layer's own.
    for stack, torch_stack in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        if stack.final_norm is None:
            torch_stack.norm = None
        else:
            torch_stack.norm.load_state_dict(stack.final_norm.state_dict())
        for layer, torch_layer in zip(stack.layers, torch_stack.layers, strict=True):
            copy_layer(layer, torch_layer)
    return ours, theirs


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers(norm_first: bool, activation: str) -> None:
    """Pins a norm, bypass or block out of place in one layer."""
    ours, theirs = models(norm_first, activation)
    memory, states = torch.randn(2, 7, D), torch.randn(2, 5, D)
    mask = padding_mask(SRC, 0)
    # Gradients keep torch away from its own fast path, which writes zeros at padding.
    encoded = theirs.encoder.layers[0](memory, src_key_padding_mask=SRC == 0)
    torch.testing.assert_close(ours.encoder.layers[0](memory, mask), encoded, rtol=1e-5, atol=1e-5)
    future = torch.ones(5, 5).triu(1).bool()
    decoded = theirs.decoder.layers[0](states, memory, tgt_mask=future, memory_key_padding_mask=SRC == 0)
    torch.testing.assert_close(ours.decoder.layers[0](states, memory, mask), decoded, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm_first", [True, False])
def test_whole_model_and_its_gradients(norm_first: bool) -> None:
    """Pins positions, scale, masks, stacks or final norms that differ from the paper's model."""
    ours, theirs = models(norm_first, "relu")
    mask = padding_mask(SRC, 0)
    table = nn.Parameter(ours.tgt_embedding.weight.detach().clone())

    def embed(ids: torch.Tensor) -> torch.Tensor:
        return table[ids] * D**0.5 + sinusoid_table(ids.size(1), D)

    expected = theirs(
        embed(SRC),
        embed(TGT),
        tgt_mask=torch.ones(5, 5).triu(1).bool(),
        src_key_padding_mask=SRC == 0,
        memory_key_padding_mask=SRC == 0,
    )
    result = ours.hidden(SRC, mask, TGT)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.project(result), expected @ table.t(), rtol=1e-5, atol=1e-4)
    result.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(ours.tgt_embedding.weight.grad, table.grad, rtol=1e-4, atol=1e-4)


def test_cross_attention_for_pictures() -> None:
    """Pins the weights of another layer, of padding, or of heads summed instead of averaged."""
    ours, theirs = models(True, "relu")
    mask = padding_mask(SRC, 0)
    seen: list[torch.Tensor] = []
    for layer in theirs.decoder.layers:
        attention, forward = layer.multihead_attn, layer.multihead_attn.forward

        def with_weights(*inputs, forward=forward, **options):  # type: ignore[no-untyped-def]
            result, weights = forward(*inputs, **{**options, "need_weights": True})
            seen.append(weights)
            return result, weights

        attention.forward = with_weights

    def embed(ids: torch.Tensor) -> torch.Tensor:
        return ours.tgt_embedding(ids) + sinusoid_table(ids.size(1), D)

    future = torch.ones(5, 5).triu(1).bool()
    padding = SRC == 0
    theirs(embed(SRC), embed(TGT), None, future, None, padding, None, padding)
    for number in range(3):
        weights = ours.cross_attention(SRC, mask, TGT, layer=number)
        assert weights.shape == (2, 5, 7)
        torch.testing.assert_close(weights, seen[number], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours.cross_attention(SRC, mask, TGT), seen[2], rtol=1e-5, atol=1e-6)
    mean = torch.stack(seen).mean(0)
    torch.testing.assert_close(ours.cross_attention(SRC, mask, TGT, "mean"), mean, rtol=1e-5, atol=1e-6)
