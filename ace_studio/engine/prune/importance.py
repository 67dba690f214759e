"""Importance of weights: their magnitude, or magnitude times gradient (Taylor)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example, tensor_leaves
from ace_studio.engine.metrics.loss import differentiable_loss
from ace_studio.engine.progress import Reporter

OUTPUT_PROBES = 2
"""Without a loss, gradients are taken of so many random projections of the outputs."""
_SEED = 0


@dataclass(frozen=True)
class TaylorData:
    """What gradients are taken over."""

    batches: Callable[[], Iterable[tuple[Example, Any]]]
    """Inputs and label; the label is None where there is no loss."""
    loss: Callable[[Any, Any], Tensor] | None = None


def accumulate_gradients(module: nn.Module, data: TaylorData, *, reporter: Reporter) -> None:
    """Fill ``.grad`` of every parameter with the sum of absolute gradients over the data.

    Absolute, because gradients of different batches would cancel. Without a loss, gradients of random projections of
    the outputs are taken.

    Raises: AceError(USER_CODE) if the loss gives no scalar with a gradient.
    """
    generator = torch.Generator().manual_seed(_SEED)
    module.zero_grad(set_to_none=True)
    with torch.enable_grad():
        parameters: list[Tensor] = [one.requires_grad_(True) for one in module.parameters() if one.is_floating_point()]
        sums = [torch.zeros_like(one) for one in parameters]
        for index, (example, label) in enumerate(data.batches()):
            reporter.advance(None, f"gradients over batch {index + 1}")
            for _ in range(1 if data.loss is not None else OUTPUT_PROBES):
                outputs = example.copied().call(module)
                value = _projected(outputs, generator) if data.loss is None else data.loss(outputs, label)
                _add_gradients(differentiable_loss(value), parameters, sums)
    for parameter, total in zip(parameters, sums, strict=True):
        parameter.grad = total


def _add_gradients(value: Tensor, parameters: list[Tensor], sums: list[Tensor]) -> None:
    for gradient, total in zip(torch.autograd.grad(value, parameters, allow_unused=True), sums, strict=True):
        if gradient is not None:
            total.add_(gradient.abs())


def _projected(outputs: object, generator: torch.Generator) -> Tensor:
    """The sum of all floating-point outputs, each element with a random sign."""
    total = torch.zeros(())
    for leaf in tensor_leaves(outputs):
        if leaf.is_floating_point() and leaf.requires_grad:
            signs = torch.randint(0, 2, leaf.shape, generator=generator).to(leaf) * 2 - 1
            total = total.to(leaf.device) + (leaf * signs).sum()
    return total


def weight_scores(layers: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Score of every weight, float32, the same shape: ``|w|``, or ``|w * gradient|`` where there are gradients."""
    scores = {}
    for path, layer in layers.items():
        weight: Tensor = layer.weight  # type: ignore[assignment]
        size = weight.detach().abs().float()
        scores[path] = size if weight.grad is None else size * weight.grad.detach().abs().float()
    return scores
