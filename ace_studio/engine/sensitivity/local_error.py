"""The error of one op at a precision: its operands, and its result, rounded to the grid."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from ace_studio.engine.ops.roles import WeightAxes, op_role, stores_table
from ace_studio.engine.quantize.casts import HALF_DTYPES
from ace_studio.engine.quantize.fake_quantize import round_activation, round_rows, round_weight
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.records.ops import operator_name
from ace_studio.records.recipes.plan import Precision, Scheme

SIMULATED = frozenset(Precision) - {Precision.FP32}
"""Precisions that can be simulated."""


Range = tuple[float, float]
NodeRanges = Mapping[str, Range]
"""Node name -> range of its value over the calibration data."""


@dataclass(frozen=True)
class Operand:
    """One tensor among the flat arguments of an op."""

    index: int
    """Place among the leaves of (args, kwargs)."""
    axis: int | None
    """Axis of the output channels if it is a weight; None for an activation."""
    source: str
    """Name of the node that it comes from."""


@dataclass(frozen=True)
class WatchedOp:
    """What a low precision rounds at one op."""

    operands: tuple[Operand, ...]
    result: str = ""
    """The node whose range the grid of its 8-bit result has; empty: its result is float."""
    follows: bool = False
    """Whether it is no product, and computes in 8 bits only behind one: it differs at int8-static alone."""
    table: str = ""
    """The operator if it picks rows of a table."""

    def precisions(self, asked: Sequence[Precision]) -> list[Precision]:
        """The precisions at which the op differs from fp32."""
        if self.table:
            return [one for one in asked if stores_table(self.table, one)]
        return [one for one in asked if not self.follows or one is Precision.INT8_STATIC]


_ELEMENTWISE_STATE: Mapping[str, int] = {"lstm_cell": 2, "lstm": 2}
"""Argument that a recurrent op only multiplies element by element: the cell state."""


def operands_of(node: fx.Node, constants: frozenset[str]) -> tuple[Operand, ...]:
    """The operands that a precision rounds: matrices that are weights or activations, no biases, no cell states.

    Args:
        node: The op, in a `flat_graph`.
        constants: Names of nodes whose value depends on no input.
    """
    name = operator_name(str(node.target))
    role = op_role(str(node.target))
    axis = role.channel_axis if role is not None else 0
    found = []
    for index, leaf in enumerate(pytree.tree_leaves((node.args, dict(node.kwargs)))):
        value = leaf.meta.get("val") if isinstance(leaf, fx.Node) else None
        if not isinstance(value, Tensor) or not value.is_floating_point() or value.dim() < 2:
            continue
        if index == _ELEMENTWISE_STATE.get(name):
            continue
        found.append(Operand(index, axis if leaf.name in constants else None, leaf.name))
    return tuple(found)


def constant_names(graph_module: fx.GraphModule) -> frozenset[str]:
    """Names of the nodes whose value depends on no input of the graph."""
    names: set[str] = set()
    for node in graph_module.graph.nodes:
        made_of = node.all_input_nodes
        if node.op == "get_attr" or (made_of and node.op == "call_function" and all(n.name in names for n in made_of)):
            names.add(node.name)
    return frozenset(names)


def rounded_call(
    target: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    op: WatchedOp,
    precision: Precision,
    ranges: NodeRanges,
    scheme: Scheme,
) -> Any:
    """The result of the op at a precision: operands rounded, arithmetic exact, result in float32.

    Args:
        target: The operator.
        args: Its arguments.
        kwargs: Its keyword arguments.
        op: What of it is rounded.
        precision: One of `SIMULATED`.
        ranges: For int8-static; a value that is not there stays float.
        scheme: How grids are shared.
    """
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    for operand in op.operands:
        value = leaves[operand.index]
        if isinstance(value, Tensor) and value.is_floating_point() and value.numel():
            leaves[operand.index] = _rounded(value, operand, precision, ranges.get(operand.source), scheme)
    new_args, new_kwargs = pytree.tree_unflatten(leaves, spec)
    return rounded_result(target(*new_args, **new_kwargs), op=op, precision=precision, ranges=ranges, scheme=scheme)


def rounded_result(result: Any, *, op: WatchedOp, precision: Precision, ranges: NodeRanges, scheme: Scheme) -> Any:
    """The result of an op as its readers get it."""
    if op.table:
        return pytree.tree_map_only(Tensor, round_rows, result)
    half = HALF_DTYPES.get(precision)
    if half is not None:
        return pytree.tree_map_only(Tensor, lambda leaf: _through(leaf, half), result)
    seen = ranges.get(op.result)
    if precision is not Precision.INT8_STATIC or seen is None or seen[0] == seen[1]:
        return result
    return round_activation(result, precision=precision, scheme=scheme, known=ValueRange(*seen, examples=1))


def _rounded(value: Tensor, operand: Operand, precision: Precision, seen: Range | None, scheme: Scheme) -> Tensor:
    if precision in HALF_DTYPES:
        return _through(value, HALF_DTYPES[precision])
    if operand.axis is not None:
        axes = WeightAxes(output=operand.axis % value.dim(), is_blocked=value.dim() == 2)
        return round_weight(value, axes, precision=precision, scheme=scheme)
    if precision is not Precision.INT8_STATIC:
        has_grid = bool(value.isfinite().all())
        return round_activation(value, precision=precision, scheme=scheme, known=None) if has_grid else value
    if seen is None or seen[0] == seen[1]:
        return value  # without a range targets leave the op in float
    return round_activation(value, precision=precision, scheme=scheme, known=ValueRange(*seen, examples=1))


def _through(value: Tensor, half: torch.dtype) -> Tensor:
    return value.to(half).to(value.dtype) if value.is_floating_point() else value
