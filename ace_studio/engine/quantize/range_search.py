"""Dynamic ranges written out as plain operators, so that the range always contains 0."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ace_studio.engine.torch_private.operators import Operator

_aten = torch.ops.aten


def write_out_range_searches(graph_module: fx.GraphModule) -> int:
    """Replace every ``choose_qparams`` by plain operators that compute the same grid as eager does, in place.

    Inductor (torch 2.11 to 2.13) decomposes it without widening the range to 0: an input that is positive throughout
    is then clipped (measured: 59 dB in eager, 22 dB compiled). The grid is that of `affine.affine_grid`, unsigned.

    Returns: How many were replaced.
    """
    searches = [node for node in graph_module.graph.nodes if "choose_qparams.tensor" in str(node.target)]
    for node in searches:
        x, first, last, smallest_scale = node.args[:4]
        low = _call(node, _aten.clamp_max.default, _call(node, _aten.amin.default, x), 0.0)
        high = _call(node, _aten.clamp_min.default, _call(node, _aten.amax.default, x), 0.0)
        width = _call(node, _aten.sub.Tensor, high, low)
        scale = _call(node, _aten.div.Tensor, width, float(last - first))
        scale = _call(node, _aten.clamp_min.default, scale, smallest_scale)
        lowest = _call(node, _aten.round.default, _call(node, _aten.div.Tensor, low, scale))
        zero = _call(node, _aten.clamp.default, _call(node, _aten.rsub.Scalar, lowest, first), first, last)
        parts = (_call(node, _aten.to.dtype, scale, torch.float64), _call(node, _aten.to.dtype, zero, torch.int64))
        for user in list(node.users):  # each takes one of the two parts
            user.replace_all_uses_with(parts[user.args[1]])
            graph_module.graph.erase_node(user)
        graph_module.graph.erase_node(node)
    graph_module.recompile()
    return len(searches)


def _call(before: fx.Node, target: Operator, *arguments: Any) -> fx.Node:
    with before.graph.inserting_before(before):
        return before.graph.call_function(target, arguments)
