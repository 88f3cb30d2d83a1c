"""Where an update left the finite numbers: it is done again, and every module is looked at.

The weights must still be those the update was made with, as they are where it was not applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor, nn

from transformer_mt.data.batch import Batch
from transformer_mt.training.step import Updater

FINITE = "done again, the update was finite"


def where_not_finite(updater: Updater, step: int, batches: Sequence[Batch]) -> str:
    """The first module whose output is not finite, else the last parameter whose gradient is not.

    Args:
        updater: with the weights that the update began with; its gradients are cleared.
        step: of the update, which says what dropout draws.
        batches: the micro-batches of this process.
    """
    names = {module: name or "the loss" for name, module in updater.loss_module.named_modules()}
    found: list[str] = []

    def look(module: nn.Module, args: Any, output: Any) -> None:
        # Hooks run when a module is done: the first to report is the innermost.
        if not found and not all(bool(tensor.isfinite().all()) for tensor in _tensors(output)):
            found.append(names[module])

    hooks = [module.register_forward_hook(look) for module in names]
    try:
        updater.replay(step, batches)
    finally:
        for hook in hooks:
            hook.remove()
    gradients = [
        name
        for name, weight in updater.loss_module.named_parameters()
        if weight.grad is not None and not bool(weight.grad.isfinite().all())
    ]
    updater.optimizer.zero_grad(set_to_none=True)
    if found:
        return f"{found[0]} is the first module whose output is not finite"
    if gradients:
        return f"every output is finite, but not the gradient of {gradients[-1]}"
    return FINITE


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, tuple | list):
        for part in output:
            yield from _tensors(part)
