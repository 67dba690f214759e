"""Gives the packing of weights the input sizes of the traced example, on which oneDNN's layout of a weight depends.

Where a size is dynamic, Inductor (torch 2.11 to 2.13) packs without sizes. oneDNN then reorders the weight at every
call: an int8 ResNet50 at a dynamic batch takes 245 ms instead of 26. Most other sizes have the same layout as the
traced ones; for the rest the kernel reorders as before, and the result is the same.
"""

from collections.abc import Callable
from typing import cast

import torch
from torch import fx

from ace_studio.engine.torch_private.operators import argument_names
from ace_studio.engine.torch_private.sizes import size_hint

_QCONV, _QLINEAR = "onednn.qconv_prepack", "onednn.qlinear_prepack"
_CONV, _PACK_CONV = "mkldnn._convolution_pointwise", "_reorder_convolution_weight"


def pack_for_traced_sizes(graph_module: fx.GraphModule) -> int:
    """Write the traced sizes of the input into every packing of a weight, in place.

    Args:
        graph_module: The graph between Inductor's freezing passes and the folding of constants.

    Returns: How many packings got sizes. A release of torch whose operators look different gets none.
    """
    packed = 0
    for node in list(graph_module.graph.nodes):
        for name, give in _GIVERS.items():
            if str(node.target).startswith(name):
                packed += give(node)
    if packed:
        graph_module.recompile()
    return packed


def _give_quantized(node: fx.Node) -> bool:
    """Set the ``x_shape`` of an int8 packing, the last argument of both operators."""
    names = argument_names(getattr(node.target, "default", node.target))
    if len(node.args) != len(names) or names[-1] != "x_shape" or node.args[-1] is not None or not node.users:
        return False
    sizes = _traced_sizes(next(iter(node.users)).args[0])
    if sizes:
        node.args = (*node.args[:-1], sizes)
    return bool(sizes)


def _give_convolution(node: fx.Node) -> bool:
    """Pack the stored weight of a float convolution, which Inductor leaves to every call at dynamic sizes."""
    pack = getattr(torch.ops.mkldnn, _PACK_CONV, None)
    weight = node.args[1]
    if pack is None or not isinstance(weight, fx.Node) or weight.op != "get_attr":
        return False
    sizes = _traced_sizes(node.args[0])
    padding, stride, dilation, groups = node.args[3:7]
    is_padded = set(cast("list[int]", padding)) != {0}
    # With a packed weight the kernel writes channels last; Inductor expects that only of inputs which clearly are.
    if len(sizes) < 4 or sizes[1] == 1 or (max(sizes[2:]) == 1 and is_padded):
        return False
    with node.graph.inserting_before(node):
        arguments = (weight, padding, stride, dilation, groups, sizes)
        node.replace_input_with(weight, node.graph.call_function(pack.default, arguments))
    return True


def _traced_sizes(x: object) -> list[int]:
    """The sizes of a value in the traced example; empty if one of them is not known."""
    value = x.meta.get("val") if isinstance(x, fx.Node) else None
    sizes = [size_hint(size) for size in value.shape] if isinstance(value, torch.Tensor) else []
    return sizes if all(size > 0 for size in sizes) else []


_GIVERS: dict[str, Callable[[fx.Node], bool]] = {
    _QCONV: _give_quantized,
    _QLINEAR: _give_quantized,
    _CONV: _give_convolution,
}
"""Prefix of an operator's name -> function that sets the sizes of its packing."""
