"""Label-smoothed cross-entropy fused with the output projection, and the unsmoothed nll beside it.

The logits of all target tokens at once would be the largest tensor of a training step (tokens x vocabulary).
Here they exist for a few rows at a time: each chunk's gradient is made right after its logits, in the forward
pass, and added up in fp32. `plain_loss` is the same in three obvious lines; tests hold the two together.
This module knows nothing of models: it takes hidden states, the projection's weight and labels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

IGNORE = -100
# Logits held at once, in elements: fewer chunks sum the weight gradient less often (measured on CPUs);
# on a card few launches count more still, and this many cost less than 1 GiB.
_CHUNK_ELEMENTS = 1 << 22
_CHUNK_ELEMENTS_ON_CARDS = 1 << 26


def smoothing_mass(label_smoothing: float, vocab_size: int) -> float:
    """Probability that smoothing gives to each token other than the target and pad."""
    return label_smoothing / max(vocab_size - 2, 1)


def plain_loss(
    hidden: Tensor, weight: Tensor, labels: Tensor, label_smoothing: float, pad_id: int
) -> tuple[Tensor, Tensor]:
    """The definition, with all logits in memory. Arguments and results as in `fused_loss`."""
    keep = labels != IGNORE
    labels = labels[keep]
    log_probs = torch.log_softmax(hidden[keep] @ weight.T, dim=-1, dtype=torch.float32)
    nll = -log_probs.gather(-1, labels[:, None]).squeeze(-1)
    others = -(log_probs.sum(-1) - log_probs[:, pad_id]) - nll
    mass = smoothing_mass(label_smoothing, weight.size(0))
    return ((1.0 - label_smoothing) * nll + mass * others).sum(), nll.sum()


def fused_loss(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    label_smoothing: float,
    pad_id: int,
    *,
    padded: bool = True,
) -> tuple[Tensor, Tensor]:
    """Smoothed loss and unsmoothed nll, both summed over the labelled tokens.

    The smoothed target keeps 1 - label_smoothing on the label and spreads the rest evenly over the other
    tokens, pad excepted (Szegedy et al. 2016, with no mass on a class that never occurs).

    Args:
        hidden: (N, D) decoder states, in any dtype; products run in the autocast dtype when that is on.
        weight: (V, D) output projection.
        labels: (N,) int64, -100 where there is no token.
        label_smoothing: in [0, 1).
        pad_id: the class that gets no mass.
        padded: False where every label is a token: looking for the others makes the host wait for a card.

    Returns:
        loss_sum, with gradients to hidden and weight, and nll_sum, without; fp32 scalars in nats.
    """
    if padded:
        keep = (labels != IGNORE).nonzero().squeeze(-1)
        if keep.numel() != labels.numel():
            hidden, labels = hidden.index_select(0, keep), labels.index_select(0, keep)
    device_type = hidden.device.type
    dtype = torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else weight.dtype
    with_grad = torch.is_grad_enabled()
    loss, nll = _FusedLoss.apply(  # type: ignore[no-untyped-call]
        hidden, weight, labels, label_smoothing, pad_id, dtype, with_grad
    )
    return loss, nll


class _FusedLoss(torch.autograd.Function):
    """Per chunk of rows one softmax and three products; no other pass over (rows, V) but two maxima.

    With p the probabilities, t the target, e the smoothing and m its mass on each other token,
    d loss / d logits = p - m (not on pad) - (1 - e - m) (on t alone). Only p needs products with V columns;
    the other terms are sums of rows of the weight and of the states, added in fp32. p of the target is taken
    out of the products too: rounded to 16 bits it would drown the small slope of a well-predicted target.
    """

    @staticmethod
    def forward(  # noqa: PLR0917 (autograd passes by position)
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        labels: Tensor,
        label_smoothing: float,
        pad_id: int,
        dtype: torch.dtype,
        with_grad: bool,
    ) -> tuple[Tensor, Tensor]:
        with torch.autocast(hidden.device.type, enabled=False):
            vocab_size, d_model = weight.shape
            mass = smoothing_mass(label_smoothing, vocab_size)
            device = hidden.device
            states, matrix = hidden.to(dtype), weight.to(dtype)  # (N, D), (V, D)
            nll = torch.empty(len(labels), dtype=torch.float32, device=device)
            normalisers = torch.empty_like(nll)
            grad_hidden = torch.empty(hidden.shape, dtype=torch.float32, device=device)
            grad_weight = torch.zeros((vocab_size, d_model), dtype=torch.float32, device=device)
            elements = _CHUNK_ELEMENTS if device.type == "cpu" else _CHUNK_ELEMENTS_ON_CARDS
            rows = min(max(elements // vocab_size, 16), max(len(labels), 1))
            row_numbers = torch.arange(rows, device=device)
            for start in range(0, len(labels), rows):
                here = slice(start, start + rows)
                chunk, target = states[here], labels[here]  # (R, D), (R,)
                row = row_numbers[: len(target)]
                logits = chunk @ matrix.T  # (R, V)
                probs = torch.softmax(logits, dim=-1)
                # The largest probability is at least 1 / V, so its logarithm is well conditioned.
                normaliser = logits.amax(-1).float() - probs.amax(-1).float().log()
                normalisers[here] = normaliser
                nll[here] = normaliser - logits[row, target].float()
                if with_grad:
                    probs[row, target] = 0.0
                    grad_hidden[here] = probs @ matrix
                    grad_weight += probs.T @ chunk
            nll_sum = nll.sum()
            loss = (1.0 - label_smoothing) * nll_sum
            states, matrix = hidden.float(), weight.float()
            if mass:
                # The sum of a row's logits over all tokens but pad is one product with one vector.
                summed = matrix.sum(0) - matrix[pad_id]  # (D,)
                others = (vocab_size - 1) * normalisers.sum() - (states @ summed).sum() - nll_sum
                loss += mass * others
            if with_grad:
                slopes = torch.exp(-nll)[:, None] - (1.0 - label_smoothing - mass)  # (N, 1)
                grad_hidden.addcmul_(matrix.index_select(0, labels), slopes)
                grad_weight.index_add_(0, labels, states * slopes)
                if mass:
                    grad_hidden -= mass * summed
                    total = mass * states.sum(0)  # (D,)
                    grad_weight -= total
                    grad_weight[pad_id] += total
        ctx.save_for_backward(grad_hidden, grad_weight)
        ctx.dtypes = hidden.dtype, weight.dtype
        ctx.mark_non_differentiable(nll_sum)
        return loss, nll_sum

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        hidden_dtype, weight_dtype = ctx.dtypes
        # In place: these were made for this one backward pass. The scale (1 / tokens, times the fp16 loss
        # scale) meets the fp32 sums, so that nothing underflows before it.
        scaled_hidden = grad_hidden.mul_(grads[0]).to(hidden_dtype)
        scaled_weight = grad_weight.mul_(grads[0]).to(weight_dtype)
        return scaled_hidden, scaled_weight, None, None, None, None, None
