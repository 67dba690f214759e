"""Batch norms folded into the convolutions before them, in fp32, before anything is quantized or cast."""

from __future__ import annotations

from collections.abc import Container

import torch
from torch import Tensor, fx

from ace_studio.engine.quantize.flat_graph import OP_ID, add_constant, constant_of, tidy
from ace_studio.records.ops import operator_name

_FORWARD_CONVOLUTIONS = frozenset({"conv1d", "conv2d", "conv3d"})
"""Those with one output channel per row of the weight: transposed ones have it on another axis."""


def fold_batch_norms(graph_module: fx.GraphModule, convolutions: Container[str]) -> dict[str, str]:
    """Fold every batch norm in eval mode that directly follows one of ``convolutions`` into its weight and bias.

    ``w' = w g / sqrt(v + eps)``, ``b' = (b - m) g / sqrt(v + eps) + beta`` per output channel: the same function up
    to rounding. The graph is changed in place.

    Args:
        graph_module: A `flat_graph`.
        convolutions: Op ids of the convolutions that may be changed.

    Returns: Op id of each folded norm -> op id of the convolution that it went into.
    """
    folded: dict[str, str] = {}
    for norm in list(graph_module.graph.find_nodes(op="call_function", target=torch.ops.aten.batch_norm.default)):
        convolution = norm.args[0]
        if _can_fold(norm, convolution, convolutions) and _fold(graph_module, norm, convolution):
            folded[norm.meta[OP_ID]] = convolution.meta[OP_ID]
            norm.replace_all_uses_with(convolution)
    tidy(graph_module)
    return folded


def _can_fold(norm: fx.Node, convolution: object, allowed: Container[str]) -> bool:
    is_training = bool(norm.args[5])
    return (
        not is_training
        and isinstance(convolution, fx.Node)
        and operator_name(str(convolution.target)) in _FORWARD_CONVOLUTIONS
        and len(convolution.users) == 1
        and convolution.meta.get(OP_ID) in allowed
    )


def _fold(graph_module: fx.GraphModule, norm: fx.Node, convolution: fx.Node) -> bool:
    weight = constant_of(graph_module, convolution.args[1])
    given_bias = convolution.args[2] if len(convolution.args) > 2 else None
    bias = constant_of(graph_module, given_bias)
    gain, shift, mean, variance = (constant_of(graph_module, argument) for argument in norm.args[1:5])
    if weight is None or mean is None or variance is None or (given_bias is not None and bias is None):
        return False
    factor, offset = _norm_terms(gain, shift, mean, variance, epsilon=float(norm.args[7]))  # type: ignore[arg-type]
    new_weight = weight * factor.reshape([-1] + [1] * (weight.dim() - 1))
    new_bias = offset if bias is None else bias * factor + offset
    name = str(convolution.args[1].target)  # type: ignore[union-attr]
    arguments = [*convolution.args, None][: max(3, len(convolution.args))]
    arguments[1] = add_constant(graph_module, f"{name}_folded", new_weight, before=convolution)
    arguments[2] = add_constant(graph_module, f"{name}_bias_folded", new_bias, before=convolution)
    convolution.args = tuple(arguments)
    return True


def _norm_terms(
    gain: Tensor | None, shift: Tensor | None, mean: Tensor, variance: Tensor, *, epsilon: float
) -> tuple[Tensor, Tensor]:
    """The factor and the offset [C] that a batch norm in eval mode amounts to."""
    factor = (variance.double() + epsilon).rsqrt()
    if gain is not None:
        factor = factor * gain.double()
    offset = -mean.double() * factor
    if shift is not None:
        offset = offset + shift.double()
    return factor.to(mean.dtype), offset.to(mean.dtype)
