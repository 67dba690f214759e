"""Dynamic int8: linear layers with int8 weights whose activations get a fresh int8 grid at every call, row by row.

Written into the captured graph, so that it holds for every linear of the graph, not only for modules of one class.
The pattern is the one that Inductor turns into oneDNN's int8 linear; in eager the same integer product exists but has
no fast kernel on x86 (measured: more than a hundred times slower than float).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.quantize.affine import weight_grid
from ace_studio.engine.quantize.flat_graph import OP_ID, add_constant, constant_of, tidy

LINEAR = torch.ops.aten.linear.default
SMALLEST_PEAK = 1e-5
"""A row whose largest value is smaller gets this peak: it becomes zeros instead of dividing by 0."""
_aten = torch.ops.aten


def quantize_linears_dynamically(graph_module: fx.GraphModule, linears: Container[str]) -> dict[str, str]:
    """Replace the linear ops named by ``linears`` by their dynamic int8 form, in place.

    Per row of the input the scale is ``max|x| / 127``, symmetric; weights are symmetric per output channel. The
    product is int8 x int8 -> int32. Error: at most half a step per factor.
    Source: Yao et al. 2022 (ZeroQuant), arXiv:2206.01861, section 3, token-wise activations.

    Returns: Op id -> why it was left as it is, for those that could not be replaced.
    """
    refused: dict[str, str] = {}
    for node in list(graph_module.graph.nodes):
        op_id = node.meta.get(OP_ID, "")
        if op_id not in linears:
            continue
        weight = constant_of(graph_module, node.args[1]) if node.target is LINEAR else None
        problem = "" if weight is not None else "only a linear op with stored weights can be int8-dynamic"
        if weight is not None and weight.dtype is not torch.float32:
            problem = f"its weight is {weight.dtype}".replace("torch.", "")
        if problem or weight is None:
            refused[op_id] = problem
            continue
        _replace(graph_module, node, weight)
    tidy(graph_module)
    return refused


def _replace(graph_module: fx.GraphModule, node: fx.Node, weight: Tensor) -> None:
    grid = weight_grid(weight)
    name = str(node.args[1].target)  # type: ignore[union-attr]
    # The product wants [in, out]; the copy is contiguous, and Inductor packs it anew anyway.
    stored = add_constant(graph_module, f"{name}_int8", grid.quantize(weight).t().contiguous(), before=node)
    scale = add_constant(graph_module, f"{name}_scale", grid.scale, before=node)
    builder = _Builder(graph_module.graph, node)
    x, bias = node.args[0], node.args[2] if len(node.args) > 2 else None
    peak = builder.call(_aten.amax.default, builder.call(_aten.abs.default, x), [-1], True)
    step = builder.call(_aten.div.Tensor, builder.call(_aten.clamp_min.default, peak, SMALLEST_PEAK), 127.0)
    rounded = builder.call(_aten.round.default, builder.call(_aten.div.Tensor, x, step))
    integers = builder.call(_aten.to.dtype, builder.call(_aten.clamp.default, rounded, -127, 127), torch.int8)
    assert isinstance(x, fx.Node)
    is_flat = x.meta["val"].dim() == 2  # Inductor's pattern has no reshapes around a product of matrices
    rows = integers if is_flat else builder.call(_aten.reshape.default, integers, [-1, weight.shape[1]])
    product = builder.call(_aten.to.dtype, builder.call(_aten._int_mm.default, rows, stored), torch.float32)
    steps = step if is_flat else builder.call(_aten.reshape.default, step, [-1, 1])
    scaled = builder.call(_aten.mul.Tensor, builder.call(_aten.mul.Tensor, product, steps), scale)
    result = builder.restore_shape(scaled, node, weight.shape[0])
    if isinstance(bias, fx.Node):
        result = builder.call(_aten.add.Tensor, result, bias)
    node.replace_all_uses_with(result)
    graph_module.graph.erase_node(node)


class _Builder:
    """Adds calls in front of a node; each computes its example value and belongs to the node's op."""

    def __init__(self, graph: fx.Graph, node: fx.Node) -> None:
        self._graph, self._node = graph, node

    def call(self, target: torch._ops.OpOverload, *arguments: object) -> fx.Node:
        with self._graph.inserting_before(self._node):
            made = self._graph.call_function(target, arguments)  # type: ignore[arg-type]
        values: tuple[Any, ...] = fx.map_arg(arguments, lambda node: node.meta["val"])
        made.meta["val"] = target(*values)
        made.meta[OP_ID] = self._node.meta[OP_ID]
        return made

    def restore_shape(self, rows: fx.Node, like: fx.Node, width: int) -> fx.Node:
        """Give ``rows`` [n, width] the leading dimensions of the input of ``like``."""
        x = like.args[0]
        assert isinstance(x, fx.Node)
        leading = x.meta["val"].dim() - 1
        if leading == 1:
            return rows
        sizes: list[object] = []
        for dim in range(leading):
            size = x.meta["val"].shape[dim]
            sizes.append(size if isinstance(size, int) else self.call(_aten.sym_size.int, x, dim))
        return self.call(_aten.reshape.default, rows, [*sizes, width])
