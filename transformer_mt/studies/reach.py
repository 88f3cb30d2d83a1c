"""How gradient reaches a source word from a target word that stands some positions away.

Of each reference token, given the words before it, the gradient of its log-probability with respect to the
embedding of each source position: the Jacobian of that number, whole and exact. The log-probability rather
than the last hidden state, because it is what training differentiates, and because models of other widths
scale their states as they like, but all give nats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor, nn

from transformer_mt.checkpoint import load_run
from transformer_mt.config import Count, Recipe
from transformer_mt.data.batch import IGNORED_LABEL, Batch, make_batch
from transformer_mt.errors import ConfigError
from transformer_mt.model.build import Model
from transformer_mt.run_evaluation import open_run, read_sets
from transformer_mt.studies.values import Measured
from transformer_mt.text.tokenizer import EOS_ID, Tokenizers

_VALID = "valid"


class Reach(BaseModel):
    """Which sentences are looked at: the first of the validation set that fit."""

    model_config = Recipe.model_config

    sentences: Count = 20
    """How many, at most."""
    shortest: Annotated[int, Field(ge=2)] = 20
    """Fewest tokens of either side, eos counted; smaller distances than that are measured."""
    longest: Count = 30
    """Most tokens of either side."""

    @model_validator(mode="after")
    def _check_lengths(self) -> Reach:
        if self.longest < self.shortest:
            raise ValueError(f"longest: must not be below `shortest`, but {self.longest} < {self.shortest}")
        return self


def measure(recipe: Recipe, settings: Reach, device: torch.device) -> Iterator[Measured]:
    """`gradient_norm` and `gradient_share` by distance.

    Target position t of T has its place at t (S - 1) / (T - 1) among S source positions, on the straight
    line from the first to the first and from the last, eos, to the last. Distance is what is between that
    place and a source position, rounded, to either side. gradient_norm: Euclidean, in nats for a step of 1,
    mean over all pairs of positions at that distance; gradient_share: the same of each norm's share in all
    norms of its target position, by which models can be compared.

    Raises:
        ConfigError: no sentence fits.
    """
    run = open_run(recipe.run_dir, data_root=recipe.data.root)
    loaded = load_run(run.folder, device=device)
    pairs = _fitting(read_sets(run, [_VALID])[_VALID], loaded.tokenizers, settings)
    if not pairs:
        raise ConfigError(
            f"measure.reach: no validation pair of {run.path} has {settings.shortest} to {settings.longest} "
            "tokens on both sides; widen `shortest` and `longest`"
        )
    # Training mode is what torch's LSTM kernels differentiate on a card; a loaded model has no dropout.
    batch = make_batch(pairs).to(device)
    norms = gradient_norms(loaded.model.train(), batch)
    real, distances = _places(batch)
    # Of a padded row the sum may be 0, and is not looked at.
    shares = norms / norms.sum(-1, keepdim=True).clamp(min=torch.finfo(norms.dtype).tiny)
    for distance in range(settings.shortest):
        there = real & (distances == distance)
        yield Measured("gradient_norm", float(norms[there].mean()), {"distance": distance})
        yield Measured("gradient_share", float(shares[there].mean()), {"distance": distance})


def gradient_norms(model: Model, batch: Batch) -> Tensor:
    """Norm of the gradient of each reference token's log-probability at each source embedding, (B, T, S).

    Args:
        model: without dropout.
        batch: on its device; what comes of padded places means nothing.
    """
    sources: list[Tensor] = []

    def catch(module: nn.Module, inputs: Any, output: Tensor) -> Tensor | None:
        if sources:  # the target, by a matrix that both sides share
            return None
        sources.append(output.detach().requires_grad_())
        return sources[0]

    embedding = model.tgt_embedding if model.src_embedding is None else model.src_embedding
    hook = embedding.register_forward_hook(catch)
    try:
        hidden = model.hidden(batch.src_ids, batch.src_mask, batch.decoder_input_ids)
    finally:
        hook.remove()
    tokens = batch.labels.clamp(min=0)[..., None]  # (B, T, 1)
    chosen = model.project(hidden).log_softmax(-1).gather(-1, tokens)[..., 0]  # (B, T)
    norms = []
    for position in range(chosen.size(1)):
        # No sentence of a batch depends on another: the gradient of the sum is that of each by itself.
        (gradient,) = torch.autograd.grad(chosen[:, position].sum(), sources[0], retain_graph=True)
        norms.append(gradient.norm(dim=-1))  # (B, S)
    return torch.stack(norms, dim=1)


def _fitting(
    pairs: Sequence[tuple[str, str]], tokenizers: Tokenizers, settings: Reach
) -> list[tuple[list[int], list[int]]]:
    """The first pairs, as ids, that are neither too short nor too long."""
    sides = zip(
        tokenizers.src.encode_batch([source for source, _ in pairs]),
        tokenizers.tgt.encode_batch([target for _, target in pairs]),
        strict=True,
    )
    allowed = range(settings.shortest, settings.longest + 1)
    encoded = (([*src_ids, EOS_ID], [*tgt_ids, EOS_ID]) for src_ids, tgt_ids in sides)
    fitting = (pair for pair in encoded if all(len(side) in allowed for side in pair))
    return list(islice(fitting, settings.sentences))


def _places(batch: Batch) -> tuple[Tensor, Tensor]:
    """(B, T, S): where neither position is padding, and how far apart they are, see `measure`."""
    src_real, tgt_real = batch.src_mask[:, 0, 0], batch.labels != IGNORED_LABEL  # (B, S), (B, T)
    slope = (src_real.sum(1) - 1) / (tgt_real.sum(1) - 1)  # (B,)
    places = torch.arange(tgt_real.size(1), device=slope.device) * slope[:, None]  # (B, T)
    positions = torch.arange(src_real.size(1), device=slope.device)  # (S,)
    distances = (places[..., None] - positions).abs().round().long()
    return tgt_real[..., None] & src_real[:, None], distances
