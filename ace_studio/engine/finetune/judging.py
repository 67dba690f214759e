"""How trained weights are judged: by the user's metric, or by fidelity or loss on held-out batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example, pooled_outputs, tensor_leaves
from ace_studio.engine.metrics.loss import scalar_loss
from ace_studio.engine.quantize.fidelity import measured_sqnr_db
from ace_studio.records.results.finetuning import HELD_OUT_SQNR

Batch = tuple[Example, Any]
"""Inputs and label; the label is None where there is none."""
Loss = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class Scorer:
    """Gives a model its score."""

    name: str
    higher_is_better: bool
    score: Callable[[nn.Module], float]

    def is_better(self, one: float, other: float) -> bool:
        """Whether ``one`` beats ``other``; NaN beats nothing."""
        return one > other if self.higher_is_better else one < other


def metric_scorer(metric: Callable[[Callable[..., Any]], float], *, higher_is_better: bool) -> Scorer:
    """By the user's own metric."""
    return Scorer("metric", higher_is_better, metric)


def fidelity_scorer(batches: Sequence[Batch], teacher: nn.Module) -> Scorer:
    """By SQNR against the teacher over held-out batches, the worst output's, dB."""
    references = [tensor_leaves(teacher_outputs(teacher, example)) for example, _ in batches]

    def score(module: nn.Module) -> float:
        given = [tensor_leaves(teacher_outputs(module, example)) for example, _ in batches]
        return measured_sqnr_db(pooled_outputs(references), pooled_outputs(given))

    return Scorer(HELD_OUT_SQNR, True, score)


def loss_scorer(batches: Sequence[Batch], loss: Loss) -> Scorer:
    """By the user's loss over held-out batches."""

    def score(module: nn.Module) -> float:
        values = [loss(teacher_outputs(module, example), label) for example, label in batches]
        return sum(float(scalar_loss(value)) for value in values) / len(values)

    return Scorer("held-out loss", False, score)


def teacher_outputs(module: nn.Module, example: Example) -> Any:
    """Outputs of the module, without gradients."""
    with torch.no_grad():
        return example.copied().call(module)


def relative_error(outputs: object, wanted: object) -> Tensor:
    """Energy of the error over the energy of what is wanted, summed over the floating-point outputs.

    What training lowers is what SQNR counts: ``-10 log10`` of it is the SQNR of a single output, dB.
    """
    total = torch.zeros(())
    for one, other in zip(tensor_leaves(outputs), tensor_leaves(wanted), strict=True):
        if one.is_floating_point():
            scale = other.float().square().sum().clamp(min=1e-12)
            total = total.to(one.device) + (one.float() - other.float()).square().sum() / scale
    return total
