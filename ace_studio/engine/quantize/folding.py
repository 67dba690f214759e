"""Batch norms folded into the convolutions and linear layers before them, in fp32, before anything is quantized."""

from collections.abc import Container

import torch
from torch import Tensor, fx

from ace_studio.engine.quantize.flat_graph import OP_ID, add_constant, constant_of, tidy
from ace_studio.records.ops import operator_name

_FORWARD_CONVOLUTIONS = frozenset({"conv1d", "conv2d", "conv3d"})
"""Those with one output channel per row of the weight: transposed ones have it on another axis."""
_LINEAR_DIMS = 2
"""A linear layer's outputs are the channels of the norm behind it in two dimensions only."""


def fold_batch_norms(graph_module: fx.GraphModule, layers: Container[str]) -> dict[str, str]:
    """Fold every batch norm in eval mode that directly follows one of ``layers`` into its weight and bias.

    ``w' = w g / sqrt(v + eps)``, ``b' = (b - m) g / sqrt(v + eps) + beta`` per output channel: the same function up
    to rounding. The graph is changed in place.

    Args:
        graph_module: A `flat_graph`.
        layers: Op ids of the convolutions and linear layers that may be changed.

    Returns: Op id of each folded norm -> op id of the layer that it went into.
    """
    folded: dict[str, str] = {}
    for norm in list(graph_module.graph.find_nodes(op="call_function", target=torch.ops.aten.batch_norm.default)):
        layer = norm.args[0]
        if _can_fold(norm, layer, layers) and _fold(graph_module, norm, layer):
            folded[norm.meta[OP_ID]] = layer.meta[OP_ID]
            norm.replace_all_uses_with(layer)
    tidy(graph_module)
    return folded


def _can_fold(norm: fx.Node, layer: object, allowed: Container[str]) -> bool:
    is_training = bool(norm.args[5])
    if is_training or not isinstance(layer, fx.Node) or len(layer.users) != 1 or layer.meta.get(OP_ID) not in allowed:
        return False
    name, value = operator_name(str(layer.target)), layer.meta.get("val")
    is_linear = name == "linear" and isinstance(value, Tensor) and value.dim() == _LINEAR_DIMS
    return is_linear or name in _FORWARD_CONVOLUTIONS


def _fold(graph_module: fx.GraphModule, norm: fx.Node, layer: fx.Node) -> bool:
    weight = constant_of(graph_module, layer.args[1])
    given_bias = layer.args[2] if len(layer.args) > 2 else None
    bias = constant_of(graph_module, given_bias)
    gain, shift, mean, variance = (constant_of(graph_module, argument) for argument in norm.args[1:5])
    if weight is None or mean is None or variance is None or (given_bias is not None and bias is None):
        return False
    factor, offset = _norm_terms(gain, shift, mean, variance, epsilon=float(norm.args[7]))  # type: ignore[arg-type]
    new_weight = weight * factor.reshape([-1] + [1] * (weight.dim() - 1))
    new_bias = offset if bias is None else bias * factor + offset
    name = str(layer.args[1].target)  # type: ignore[union-attr]
    arguments = [*layer.args, None][: max(3, len(layer.args))]
    arguments[1] = add_constant(graph_module, f"{name}_folded", new_weight, before=layer)
    arguments[2] = add_constant(graph_module, f"{name}_bias_folded", new_bias, before=layer)
    layer.args = tuple(arguments)
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
