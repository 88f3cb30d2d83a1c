"""ModelConfig -> model. The only module of this stage that sees the config object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from transformer_mt.errors import ConfigError
from transformer_mt.model.attention import MultiHeadAttention
from transformer_mt.model.classifier import PairClassifier
from transformer_mt.model.embedding import TokenEmbedding
from transformer_mt.model.feed_forward import FeedForward
from transformer_mt.model.layers import DecoderLayer, EncoderLayer, make_norm
from transformer_mt.model.lstm import AttentionalLstm
from transformer_mt.model.positional_encoding import LearnedPositions, RotaryPositions, SinusoidalPositions
from transformer_mt.model.transformer import AddedPositions, Decoder, Encoder, Transformer, initialise

if TYPE_CHECKING:
    from transformer_mt.config import ModelConfig

Model = Transformer | AttentionalLstm

KNOWN_HEADS: dict[int, tuple[int, ...]] = {128: (4,), 256: (4,), 512: (8, 16), 1024: (16,)}
"""d_model -> numbers of heads that are known to train well."""


def build_model(
    config: ModelConfig,
    src_vocab_size: int,
    tgt_vocab_size: int,
    *,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    activation_dropout: float = 0.0,
    gradient_checkpointing: bool = False,
) -> Model:
    """A model with initial weights drawn from torch's default generator, in training mode.

    Args:
        config: architecture and sizes.
        src_vocab_size: rows of the source embedding.
        tgt_vocab_size: rows of the target embedding and output projection.
        dropout: rate on embeddings and block outputs.
        attention_dropout: rate on attention weights.
        activation_dropout: rate inside the feed-forward block, of a Transformer.
        gradient_checkpointing: recompute layers backwards instead of keeping their activations.

    Raises:
        ConfigError: one matrix is wanted for vocabularies of different size.
    """
    embeddings = _embeddings(config, src_vocab_size, tgt_vocab_size)
    if config.architecture == "lstm":
        return AttentionalLstm(
            *embeddings,
            num_encoder_layers=config.num_encoder_layers,
            num_decoder_layers=config.num_decoder_layers,
            attention=config.attention,
            input_feeding=config.input_feeding,
            dropout=dropout,
            attention_dropout=attention_dropout,
            gradient_checkpointing=gradient_checkpointing,
        )
    rates = dropout, attention_dropout, activation_dropout
    model = Transformer(
        Encoder(
            _encoder_layers(config, *rates),
            _positions(config),
            _final_norm(config),
            dropout=dropout,
            gradient_checkpointing=gradient_checkpointing,
        ),
        Decoder(
            _decoder_layers(config, *rates),
            _positions(config),
            _final_norm(config),
            dropout=dropout,
            gradient_checkpointing=gradient_checkpointing,
        ),
        *embeddings,
    )
    initialise(model)
    return model


def build_classifier(
    config: ModelConfig,
    vocab_size: int,
    *,
    compares_sides: bool,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    activation_dropout: float = 0.0,
) -> PairClassifier:
    """The encoder of a recipe as a classifier of pairs, with initial weights, in training mode.

    Args:
        config: architecture and sizes; what it says of the decoder is not looked at.
        vocab_size: rows of the embedding, which holds the pieces of both sides.
        compares_sides: see `PairClassifier`.
        dropout: rates as in `build_model`.

    Raises:
        ConfigError: an architecture without self-attention.
    """
    if config.architecture != "transformer":
        raise ConfigError(
            f"model.architecture: pairs are classified by self-attention, which {config.architecture} has "
            "none of; set model.architecture=transformer"
        )
    encoder = Encoder(
        _encoder_layers(config, dropout, attention_dropout, activation_dropout),
        _positions(config),
        _final_norm(config),
        dropout=dropout,
        gradient_checkpointing=False,
    )
    model = PairClassifier(encoder, TokenEmbedding(vocab_size, config.d_model), compares_sides=compares_sides)
    initialise(model)
    return model


def _embeddings(
    config: ModelConfig, src_vocab_size: int, tgt_vocab_size: int
) -> tuple[TokenEmbedding, TokenEmbedding | None, nn.Linear | None]:
    """Of the target, of the source where it has its own, and an output projection where it is untied."""
    if config.tied_embeddings == "three_way" and src_vocab_size != tgt_vocab_size:
        raise ConfigError(
            f"model.tied_embeddings: three_way needs one joint vocabulary, but the source has "
            f"{src_vocab_size} pieces and the target {tgt_vocab_size}; use `decoder` or `none`, "
            f"or share the vocabulary"
        )
    tied_source = config.tied_embeddings == "three_way"
    untied_output = config.tied_embeddings == "none"
    return (
        TokenEmbedding(tgt_vocab_size, config.d_model),
        None if tied_source else TokenEmbedding(src_vocab_size, config.d_model),
        nn.Linear(config.d_model, tgt_vocab_size, bias=False) if untied_output else None,
    )


def head_warning(config: ModelConfig) -> str | None:
    """Why the number of heads may be a bad choice for this width, or None when it is known good."""
    if config.architecture == "lstm":
        return None
    d_model, heads = config.d_model, config.num_heads
    head_dim = d_model // heads
    known = KNOWN_HEADS.get(d_model, ())
    if heads in known:
        return None
    advice = " or ".join(f"num_heads={n}" for n in known) or "128:4, 256:4, 512:8, 512:16 or 1024:16"
    if head_dim < 32:
        return (
            f"model.num_heads: {heads} heads of {head_dim} dimensions each: below 32 a head tells "
            f"few tokens apart, and products that small are slow; known good for d_model={d_model}: {advice}"
        )
    if heads >= 32 and d_model <= 1024:
        return (
            f"model.num_heads: {heads} heads pay only above d_model=1024; "
            f"known good for d_model={d_model}: {advice}"
        )
    if d_model > 1024:
        return None
    return f"model.num_heads: d_model={d_model} with {heads} heads is untried here; known good: {advice}"


def _encoder_layers(
    config: ModelConfig, dropout: float, attention_dropout: float, activation_dropout: float
) -> list[EncoderLayer]:
    return [
        EncoderLayer(
            _attention(config, attention_dropout),
            _feed_forward(config, activation_dropout),
            d_model=config.d_model,
            norm=config.norm,
            norm_first=config.norm_first,
            dropout=dropout,
        )
        for _ in range(config.num_encoder_layers)
    ]


def _decoder_layers(
    config: ModelConfig, dropout: float, attention_dropout: float, activation_dropout: float
) -> list[DecoderLayer]:
    return [
        DecoderLayer(
            _attention(config, attention_dropout, causal=True),
            _attention(config, attention_dropout, cross=True),
            _feed_forward(config, activation_dropout),
            d_model=config.d_model,
            norm=config.norm,
            norm_first=config.norm_first,
            dropout=dropout,
        )
        for _ in range(config.num_decoder_layers)
    ]


def _attention(
    config: ModelConfig, dropout: float, *, cross: bool = False, causal: bool = False
) -> MultiHeadAttention:
    rotary = config.positions == "rotary" and not cross
    return MultiHeadAttention(
        config.d_model,
        config.num_heads,
        config.num_kv_heads,
        cross=cross,
        causal=causal,
        window=None if cross else config.attention_window,
        rotary=RotaryPositions(config.d_model // config.num_heads) if rotary else None,
        dropout=dropout,
        scale=config.ablation.scale,
        output_projection=config.ablation.output_projection,
    )


def _feed_forward(config: ModelConfig, dropout: float) -> FeedForward:
    return FeedForward(config.d_model, config.d_ff, activation=config.activation, dropout=dropout)


def _positions(config: ModelConfig) -> AddedPositions | None:
    if config.positions in ("rotary", "none"):
        return None
    if config.positions == "learned":
        return LearnedPositions(config.d_model, config.max_positions)
    return SinusoidalPositions(config.d_model)


def _final_norm(config: ModelConfig) -> nn.Module | None:
    return make_norm(config.norm, config.d_model) if config.norm_first else None
