"""The memory layout of inputs of int8 ops, where Inductor cannot handle it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, fx

from ace_studio.engine.torch_private.sizes import size_text


def lay_out_inputs(nodes: Sequence[fx.Node]) -> int:
    """Make the inputs of linear ops contiguous where they are views in another order (a transpose), in place.

    Inductor writes a linear op of such an input as a batched product, and at dynamic sizes its search for int8 forms
    of that raises TypeError (torch 2.11 to 2.13), or leaves the op in float. The copy is made while the values are
    quantized; the compiler removes it where it changes nothing.

    Args:
        nodes: The ops that are to be quantized; others than linear ones are left alone.

    Returns: How many values are copied. Ops that read the same one share its copy.
    """
    copies: dict[fx.Node, fx.Node] = {}
    linears = [node for node in nodes if node.target is torch.ops.aten.linear.default]
    # At run time inputs are contiguous: if the traced ones were not, the traced strides are wrong.
    is_known = bool(linears) and _has_inputs_in_order(linears[0].graph)
    for node in linears:
        x = node.args[0]
        if not isinstance(x, fx.Node) or x.meta["val"].dim() < 3 or (is_known and _is_in_order(x.meta["val"])):
            continue
        if x not in copies:
            with node.graph.inserting_before(node):
                copies[x] = node.graph.call_function(torch.ops.aten.contiguous.default, (x,))
            copies[x].meta["val"] = x.meta["val"].new_empty(x.meta["val"].shape)
        node.args = (copies[x], *node.args[1:])
    return len(copies)


def _has_inputs_in_order(graph: fx.Graph) -> bool:
    values = [node.meta.get("val") for node in graph.find_nodes(op="placeholder")]
    return all(_is_in_order(value) for value in values if isinstance(value, Tensor))


def _is_in_order(value: Tensor) -> bool:
    """Whether the strides are those of a contiguous tensor. Compared as text: comparing would specialize free sizes."""
    wanted = value.new_empty(value.shape).stride()
    return [size_text(one) for one in value.stride()] == [size_text(one) for one in wanted]
