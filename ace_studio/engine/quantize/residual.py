"""Which additions behind int8 convolutions the convolution's kernel can do on int8 values."""

from __future__ import annotations

from collections.abc import Collection

from torch import Tensor, fx

from ace_studio.engine.torch_private.sizes import size_text

_CONVOLUTION = "aten.conv2d.default"


def added_value(node: fx.Node, chosen: Collection[fx.Node]) -> fx.Node | None:
    """The value that an addition adds to the result of an int8 convolution, None if the kernel cannot do it.

    The kernel adds in place, into the memory of that value, which must have a grid and no reader left. So the value
    must be quantized for convolutions that run earlier anyway, or come from an int8 convolution.

    Args:
        node: One of `ADDING_OPS`.
        chosen: The ops that get int8 inputs.
    """
    inputs = [one for one in node.args if isinstance(one, fx.Node)]
    if len(inputs) != 2 or inputs[0] is inputs[1] or node.kwargs.get("alpha", 1) != 1 or not _are_alike(*inputs):
        return None
    for convolution, other in (inputs, inputs[::-1]):
        if _is_convolution(convolution, chosen) and len(convolution.users) == 1:
            before = _ancestors(convolution)
            readers = [user for user in other.users if user is not node and user in chosen]
            if all(reader in before for reader in readers) and (readers or _is_convolution(other, chosen)):
                return other
    return None


def _is_convolution(node: fx.Node, chosen: Collection[fx.Node]) -> bool:
    return node in chosen and str(node.target) == _CONVOLUTION


def _are_alike(one: fx.Node, other: fx.Node) -> bool:
    """Whether both are tensors of the same type and, for every size of their symbols, the same shape."""
    first, second = one.meta.get("val"), other.meta.get("val")
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)) or first.dtype is not second.dtype:
        return False
    return [size_text(size) for size in first.shape] == [size_text(size) for size in second.shape]


def _ancestors(node: fx.Node) -> set[fx.Node]:
    """The node and all that it is computed from."""
    found, waiting = {node}, [node]
    while waiting:
        fresh = [one for one in waiting.pop().all_input_nodes if one not in found]
        found.update(fresh)
        waiting += fresh
    return found
