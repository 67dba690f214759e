"""8-bit and 4-bit weights in the captured graph, multiplied by torch's packed CPU kernels.

The kernels read a packed weight once and widen it in registers, so a product with few rows (one token of a decoder)
takes about as long as reading a half or a quarter of the bytes. They are fast with bfloat16 activations only: with
float32 ones torch 2.13 falls back to loops that are 10 to 50 times slower. So activations are rounded to bfloat16 on
the way in, which costs far less than the weight's own grid (about 50 dB against 40 and 20).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.ops.families import LINEAR_OPS
from ace_studio.engine.ops.roles import TABLE_NOTE, is_convolution, op_role, stores_table
from ace_studio.engine.quantize.affine import affine_grid, weight_grid
from ace_studio.engine.quantize.flat_graph import OP_ID, add_constant, call_before, constant_of, tidy
from ace_studio.records.recipes.plan import WEIGHT_ONLY, Precision

GROUP_SIZES = (32, 64, 128, 256)
"""Weights that may share a scale in torch's 4-bit kernel."""
_ROW_BLOCK = 16
"""The 4-bit kernel takes multiples of so many output channels; rows of zeros fill them up."""
_COLUMN_BLOCK = 32
"""The 8-bit kernel reads whole vectors: with 40 inputs it ends the process (torch 2.13). Zeros fill them up."""
_ARITHMETIC = torch.bfloat16

_aten = torch.ops.aten


def weight_only_problem(op: str, precision: Precision) -> str:
    """Empty if the operator can keep its weight in 8 or 4 bits in a torch graph, else why not."""
    if op in LINEAR_OPS or stores_table(op, precision):
        return ""
    if is_convolution(op):
        return f"torch has no kernel that multiplies packed weights in {op}; they would be unpacked at every call"
    return f"{op} has no stored weight that torch could keep packed"


def pack_weights(
    graph_module: fx.GraphModule, planned: Mapping[str, Precision], *, group_size: Callable[[str], int]
) -> dict[str, str]:
    """Replace the weights of the ops that ``planned`` puts at a weight-only precision, and tables, in place.

    int8: symmetric, one scale per output channel (per row of a table, at any integer precision). int4: affine,
    one scale per ``group_size`` neighbours of a row. Scales are bfloat16.

    Args:
        graph_module: A `flat_graph`.
        planned: Op id -> precision; others than these two are ignored.
        group_size: Op id -> neighbours that share a 4-bit scale; the nearest size of the kernel is used.

    Returns: Op id -> why it kept its float weight, or has another group than asked for.
    """
    refused: dict[str, str] = {}
    for node in list(graph_module.graph.nodes):
        op_id = node.meta.get(OP_ID, "")
        precision = planned.get(op_id, Precision.FP32)
        is_table = stores_table(str(node.target), precision)
        if precision not in WEIGHT_ONLY and not is_table:
            continue
        problem = weight_only_problem(str(node.target), precision) or _node_problem(graph_module, node)
        if problem:
            refused[op_id] = problem
        elif is_table:
            _pack_table(graph_module, node)
            if precision is not Precision.INT8_WEIGHT:
                refused[op_id] = TABLE_NOTE
        elif precision is Precision.INT8_WEIGHT:
            _replace(graph_module, node, _pack_bytes)
        else:
            asked = group_size(op_id)
            group = kernel_group(asked)
            if group != asked:
                refused[op_id] = (
                    f"its weights are in groups of {group}: the kernel has 32, 64, 128 and 256, not {asked}"
                )
            _replace(graph_module, node, lambda *parts, group=group: _pack_nibbles(*parts, group=group))
    tidy(graph_module)
    return refused


def kernel_group(asked: int) -> int:
    """The largest group size of the kernel that is not above the one asked for, 32 at least; 0 asks for the largest."""
    fitting = [size for size in GROUP_SIZES if size <= asked or asked == 0]
    return max(fitting, default=GROUP_SIZES[0])


def _node_problem(graph_module: fx.GraphModule, node: fx.Node) -> str:
    weight = constant_of(graph_module, node.args[_weight_place(node)])
    value = node.meta.get("val")
    if node.kwargs.get("beta", 1) != 1 or node.kwargs.get("alpha", 1) != 1:
        return "its terms are scaled, which the packed kernels do not do"
    if weight is None:
        return "its weight is computed, not stored"
    if weight.dim() != 2 or weight.dtype is not torch.float32:
        return f"its weight is no float32 matrix ({weight.dim()} dimensions, {weight.dtype})".replace("torch.", "")
    if weight.device.type != "cpu":
        return "the packed kernels that this uses are those of the CPU; torchao-cuda has those of a GPU"
    if not isinstance(value, Tensor) or value.dtype is not torch.float32:
        return "its result is not float32"
    return ""


def _weight_place(node: fx.Node) -> int:
    role = op_role(str(node.target))
    return 0 if role is None else role.weight  # a lookup has its table first


@dataclass(frozen=True)
class _Product:
    """``rows [m, k] @ weight [n, k]^T + bias``, read from one of the operators that compute it."""

    data: fx.Node
    weight: Tensor
    name: str
    bias: fx.Node | None


def _product_of(graph_module: fx.GraphModule, node: fx.Node) -> _Product:
    """The product behind a node without a `_node_problem`."""
    role = op_role(str(node.target))
    assert role is not None  # `_node_problem` checked it, and the rest
    data, source = node.args[role.data], node.args[role.weight]
    stored = constant_of(graph_module, source)
    assert stored is not None and isinstance(source, fx.Node) and isinstance(data, fx.Node)
    weight = stored if role.channel_axis == 0 else stored.t()
    bias = node.args[0] if role.data == 1 else node.args[2] if len(node.args) > 2 else None  # addmm has it first
    return _Product(data, weight.contiguous(), str(source.target), bias if isinstance(bias, fx.Node) else None)


_Pack = Callable[[fx.GraphModule, fx.Node, _Product, fx.Node], fx.Node]
"""Inserts the kernel's call for rows [m, k] in bfloat16 in front of a node; it gives [m, n] in bfloat16."""


def _replace(graph_module: fx.GraphModule, node: fx.Node, pack: _Pack) -> None:
    product = _product_of(graph_module, node)
    op_id, width = node.meta[OP_ID], product.weight.shape[1]
    rows = product.data
    is_flat = rows.meta["val"].dim() == 2
    if not is_flat:
        rows = call_before(node, _aten.reshape.default, rows, [-1, width])
    half = call_before(node, _aten.to.dtype, rows, _ARITHMETIC)
    result = pack(graph_module, node, product, half)
    result = call_before(node, _aten.to.dtype, result, torch.float32)
    if product.bias is not None:
        result = call_before(node, _aten.add.Tensor, result, product.bias)
        result.meta[OP_ID] = op_id
    if not is_flat:
        sizes = [*_leading_sizes(node, product.data), product.weight.shape[0]]
        result = call_before(node, _aten.reshape.default, result, sizes)
    node.replace_all_uses_with(result)
    graph_module.graph.erase_node(node)


def _leading_sizes(node: fx.Node, value: fx.Node) -> list[Any]:
    """The sizes of all dimensions but the last: numbers, or nodes that give them."""
    sizes: list[Any] = []
    for axis, size in enumerate(value.meta["val"].shape[:-1]):
        if not isinstance(size, int):
            with node.graph.inserting_before(node):
                asked = node.graph.call_function(_aten.sym_size.int, (value, axis))
            asked.meta["val"] = size  # evaluating the operator would specialize the size
            size = asked  # noqa: PLW2901 - the same size, as a node
        sizes.append(size)
    return sizes


def _pack_bytes(graph_module: fx.GraphModule, node: fx.Node, product: _Product, half: fx.Node) -> fx.Node:
    channels, width = product.weight.shape
    # Inductor writes one-dimensional constants of up to 8 numbers into its code, where this kernel cannot read them.
    padding = (0, -width % _COLUMN_BLOCK, 0, max(0, _ROW_BLOCK - channels))
    half = _filled_up(node, half, padding[1])
    weight = torch.nn.functional.pad(product.weight.float(), padding)
    grid = weight_grid(weight)
    integers = add_constant(graph_module, f"{product.name}_int8", grid.quantize(weight), before=node)
    scales = add_constant(graph_module, f"{product.name}_scales", grid.scale.to(_ARITHMETIC), before=node)
    result = call_before(node, _aten._weight_int8pack_mm.default, half, integers, scales)
    result.meta[OP_ID] = node.meta[OP_ID]
    return call_before(node, _aten.slice.Tensor, result, 1, 0, channels) if padding[3] else result


def _pack_nibbles(
    graph_module: fx.GraphModule, node: fx.Node, product: _Product, half: fx.Node, *, group: int
) -> fx.Node:
    channels, width = product.weight.shape
    half = _filled_up(node, half, -width % group)
    packed, scales = packed_nibbles(product.weight, group_size=group)
    stored = add_constant(graph_module, f"{product.name}_int4", packed, before=node)
    grids = add_constant(graph_module, f"{product.name}_scales", scales, before=node)
    result = call_before(node, _aten._weight_int4pack_mm_for_cpu.default, half, stored, group, grids)
    result.meta[OP_ID] = node.meta[OP_ID]
    if channels % _ROW_BLOCK:
        result = call_before(node, _aten.slice.Tensor, result, 1, 0, channels)
    return result


def _filled_up(node: fx.Node, rows: fx.Node, missing: int) -> fx.Node:
    """The rows padded with so many zeros, which meet zeros of the packed weight."""
    return call_before(node, _aten.constant_pad_nd.default, rows, [0, missing]) if missing else rows


def packed_nibbles(weight: Tensor, *, group_size: int) -> tuple[Tensor, Tensor]:
    """A matrix as torch's 4-bit kernel reads it: two weights a byte, and the grid of each group.

    The kernel computes ``(code - 8) scale + middle`` with codes 0..15, so the middle of a grid with zero point z is
    ``scale (8 - z)``. Rows are filled up with zeros to multiples of 16, columns to multiples of the group.

    Shapes: weight [n, k] float32 -> bytes [N, K / 2], grids [K / group_size, N, 2] bfloat16.
    Error: half the group's scale, and 2^-9 of a grid's middle for its rounding to bfloat16.
    """
    channels, width = weight.shape
    padded = torch.nn.functional.pad(weight, (0, -width % group_size, 0, -channels % _ROW_BLOCK)).float()
    groups = padded.reshape(-1, group_size)
    grid = affine_grid(groups.amin(1), groups.amax(1), bits=4, axis=0)
    codes = grid.quantize(groups).to(torch.int32).reshape(padded.shape)
    packed = _aten._convert_weight_to_int4pack_for_cpu(codes, 1)
    middle = grid.scale * (8 - grid.zero_point)
    scales = torch.stack([grid.scale, middle], -1).reshape(padded.shape[0], -1, 2).transpose(0, 1)
    return packed, scales.contiguous().to(_ARITHMETIC)


def _pack_table(graph_module: fx.GraphModule, node: fx.Node) -> None:
    """Store the rows of an embedding in 8 bits, each with its scale; a row is widened when it is picked."""
    source = node.args[0]
    weight = constant_of(graph_module, source)
    assert weight is not None  # `_node_problem` checked it
    grid = weight_grid(weight)
    name = str(source.target)  # type: ignore[union-attr]
    table = add_constant(graph_module, f"{name}_int8", grid.quantize(weight.float()), before=node)
    scales = add_constant(graph_module, f"{name}_scales", grid.scale.unsqueeze(1), before=node)
    rows = call_before(node, _aten.embedding.default, table, node.args[1])
    rows.meta[OP_ID] = node.meta[OP_ID]
    wide = call_before(node, _aten.to.dtype, rows, torch.float32)
    result = call_before(node, _aten.mul.Tensor, wide, call_before(node, _aten.embedding.default, scales, node.args[1]))
    node.replace_all_uses_with(result)
    graph_module.graph.erase_node(node)
