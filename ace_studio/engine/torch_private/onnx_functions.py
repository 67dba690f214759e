"""Operators that torch's ONNX exporter lacks or writes badly, written in ONNX. To import this takes seconds."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from string import ascii_letters
from typing import Any

import torch
from onnxscript import opset18 as op
from onnxscript.ir import DataType
from torch.onnx._internal.exporter._registration import ONNXRegistry

_aten = torch.ops.aten
_END = sys.maxsize
"""The end of a slice that goes to the end."""


def product(source: Any, dims: Sequence[int] | None = None, **options: Any) -> Any:
    """``prims.prod``, which ``cumprod`` is decomposed into."""
    del options
    return op.ReduceProd(source, None if dims is None else list(dims), keepdims=0)


def repeat_interleave(source: Any, repeats: Any, dim: int | None = None, **options: Any) -> Any:
    """Each entry of a dimension several times; the exporter repeats another one if the count is dynamic (0.7)."""
    del options
    any_size = op.Constant(value_ints=[-1])
    rank = 1 if dim is None else len(source.shape)
    if dim is None:
        source, dim = op.Reshape(source, any_size), 0
    place = dim % rank + 1
    one = op.Constant(value_ints=[1])
    counts = [op.Reshape(repeats, any_size) if index == place else one for index in range(rank + 1)]
    wide = op.Expand(op.Unsqueeze(source, [place]), op.Concat(*counts, axis=0))
    sizes = (op.Shape(source, start=0, end=place - 1), any_size, op.Shape(source, start=place))
    return op.Reshape(wide, op.Concat(*sizes, axis=0))


def slice_scatter(source: Any, part: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """A slice of a dimension replaced.

    The exporter transposes twice and scatters: that takes longer, and with steps and dynamic sizes OpenVINO finds wrong
    shapes (2026.4).
    """
    dim = dim % len(source.shape)
    start, end = 0 if start is None else start, _END if end is None else end
    if step == 1 and (_is(start, 0) or _is(end, _END) or _is_in_order(start, end)):
        before = [] if _is(start, 0) else [op.Slice(source, [0], op.Reshape(start, [-1]), [dim])]
        behind = [] if _is(end, _END) else [op.Slice(source, op.Reshape(end, [-1]), [_END], [dim])]
        return op.Concat(*before, part, *behind, axis=dim) if before or behind else op.Identity(part)
    size, count = (op.Gather(op.Shape(one), dim) for one in (source, part))
    own = op.Range(0, size, 1)
    place = op.Sub(own, op.Where(op.Less(start, 0), op.Add(start, size), start))
    index = op.Div(place, step)
    is_written = op.And(op.And(op.Less(index, count), op.GreaterOrEqual(place, 0)), op.Equal(op.Mod(place, step), 0))
    return op.Gather(op.Concat(source, part, axis=dim), op.Where(is_written, op.Add(index, size), own), axis=dim)


def select_scatter(source: Any, part: Any, dim: int, index: Any) -> Any:
    """One entry of a dimension replaced; the exporter's ``ScatterElements`` has wrong sizes if some are dynamic."""
    dim, end = dim % len(source.shape), _END if _is(index, -1) else index + 1
    return slice_scatter(source, op.Unsqueeze(part, [dim]), dim, index, end)


def diagonal(source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A diagonal, looked up; the exporter adds up products with zeros, which an infinity turns into NaN (0.7)."""
    order = _moved_to_the_end(len(source.shape), dim1, dim2)
    rows, columns = (op.Gather(op.Shape(source), dim) for dim in order[-2:])
    moved = op.Transpose(source, perm=order)
    above, below = max(offset, 0), max(-offset, 0)
    count = op.Max(op.Min(op.Sub(rows, below), op.Sub(columns, above)), 0)
    index = op.Add(op.Mul(op.Range(0, count, 1), op.Add(columns, 1)), op.Add(op.Mul(columns, below), above))
    flat = op.Reshape(moved, op.Concat(op.Shape(moved, end=-2), op.Constant(value_ints=[-1]), axis=0))
    return op.Gather(flat, index, axis=-1)


def diagonal_scatter(source: Any, part: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A diagonal replaced, as also writing into one does; torch's decomposition of it cannot be exported (2.13)."""
    order = _moved_to_the_end(len(source.shape), dim1, dim2)
    rows, columns = (op.Range(0, op.Gather(op.Shape(source), dim), 1) for dim in order[-2:])
    is_written = op.Equal(op.Add(op.Unsqueeze(rows, [1]), offset), columns)
    last = op.Sub(op.Gather(op.Shape(part), -1), 1)
    # Entry k of the part belongs to row k, or to column k of a diagonal below the main one.
    part = op.Unsqueeze(op.Gather(part, op.Min(rows if offset >= 0 else columns, last), axis=-1), [-1 - (offset < 0)])
    moved = op.Transpose(source, perm=order)
    if source.dtype == DataType.BOOL:  # ONNX Runtime selects none of these (1.31)
        written = op.Or(op.And(is_written, part), op.And(op.Not(is_written), moved))
    else:
        written = op.Where(is_written, part, moved)
    return op.Transpose(written, perm=[order.index(dim) for dim in range(len(order))])


def as_strided_scatter(
    source: Any, part: Any, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None
) -> Any:
    """Entries at regular steps of a contiguous tensor replaced, which ``fill_diagonal_`` becomes."""
    any_size = op.Constant(value_ints=[-1])
    index = 0 if storage_offset is None else storage_offset
    for count, step in zip(size, stride, strict=True):
        index = op.Add(op.Unsqueeze(index, [-1]), op.Mul(op.Range(0, count, 1), step))
    flat = [op.Reshape(one, any_size) for one in (source, index, part)]
    return op.Reshape(op.ScatterElements(*flat, axis=0), op.Shape(source))


def _moved_to_the_end(rank: int, dim1: int, dim2: int) -> list[int]:
    last = [dim1 % rank, dim2 % rank]
    return [dim for dim in range(rank) if dim not in last] + last


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int) and value == number


def _is_in_order(start: Any, end: Any) -> bool:
    return isinstance(start, int) and isinstance(end, int) and start <= end and (start < 0) == (end < 0)


def reversed_difference(source: Any, other: float | Any, alpha: float = 1) -> Any:
    """A number minus a tensor; the exporter fails at a float number and a tensor of integers (torch 2.13)."""
    if isinstance(other, float) or isinstance(alpha, float):
        source = source if source.dtype.is_floating_point() else op.Cast(source, to=DataType.FLOAT)
    taken = source if _is(alpha, 1) else op.Mul(source, op.CastLike(alpha, source))
    return op.Sub(op.CastLike(other, source), taken)


def circular_pad(source: Any, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Any:
    """A pad that continues on the other side, as slices and joins: OpenVINO does not read ``Pad`` of this mode."""
    if mode != "circular" or not all(isinstance(size, int) and size >= 0 for size in pad):
        return _theirs(_aten.pad.default)(source, pad, mode, value)
    last = len(source.shape) - 1
    for dim, before, behind in zip(range(last, -1, -1), pad[::2], pad[1::2], strict=False):
        left = [op.Slice(source, [-before], [_END], [dim])] if before else []
        right = [op.Slice(source, [0], [behind], [dim])] if behind else []
        source = op.Concat(*left, source, *right, axis=dim) if left or right else source
    return source


def attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Attention of values without a dimension of heads, or with more dimensions before it; the exporter takes four."""
    rank = len(query.shape)
    if rank == 4 or enable_gqa:
        return _theirs(_aten.scaled_dot_product_attention.default)(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    scores = op.MatMul(query, op.Transpose(key, perm=[*range(rank - 2), rank - 1, rank - 2]))
    scores = op.Mul(scores, op.CastLike(1 / math.sqrt(query.shape[-1]) if scale is None else scale, scores))
    if is_causal:
        ones = op.Expand(op.CastLike(1.0, scores), op.Shape(scores, start=rank - 2))
        attn_mask = op.Cast(op.Trilu(ones, upper=0), to=DataType.BOOL)
    if is_causal or (attn_mask is not None and attn_mask.dtype == DataType.BOOL):
        scores = op.Where(attn_mask, scores, op.CastLike(-math.inf, scores))
    elif attn_mask is not None:
        scores = op.Add(scores, attn_mask)
    return op.MatMul(op.Softmax(scores, axis=-1), value)


def matrix_product(first: Any, second: Any) -> Any:
    """Rows times a stack of matrices, as many times as there are matrices: OpenVINO compiles no other (2026.4)."""
    stacked = len(second.shape) - 2
    if len(first.shape) > 1 and stacked > len(first.shape) - 2:
        sizes = op.Concat(op.Shape(second, start=0, end=stacked), op.Constant(value_ints=[1, 1]), axis=0)
        first = op.Expand(first, sizes)
    return op.MatMul(first, second)


def einsum(equation: str, tensors: Sequence[Any], path: Any = None) -> Any:
    """An einsum with a letter for each dimension: the runtimes refuse dots or give other shapes (1.31, 2026.4).

    A dimension of size 1 that the other tensors do not have in that size is left out of its tensor.
    """
    del path
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms, unused = inputs.split(","), [letter for letter in ascii_letters if letter not in equation]
    pairs = list(zip(terms, tensors, strict=True))
    ranks = [len(one.shape) - len(term) + 3 if "..." in term else 0 for term, one in pairs]
    dots = "".join(unused[: max(ranks)])
    terms = [term.replace("...", dots[len(dots) - rank :]) for term, rank in zip(terms, ranks, strict=True)]
    if not arrow:
        output = "..." + "".join(sorted(letter for letter in {*inputs} - {*",."} if inputs.count(letter) == 1))
    pairs = list(zip(terms, tensors, strict=True))
    wide = {letter for term, one in pairs for letter, size in zip(term, one.shape, strict=True) if size != 1}
    kept, parts = [], []
    for term, one in pairs:
        ones = [dim for dim, letter in enumerate(term) if letter in wide and one.shape[dim] == 1]
        kept.append("".join(letter for dim, letter in enumerate(term) if dim not in ones))
        parts.append(op.Squeeze(one, ones) if ones else one)
    return op.Einsum(*parts, equation=f"{','.join(kept)}->{output.replace('...', dots)}")


def antialiased(operator: Any, weights: Callable[[Any], Any]) -> Callable[..., Any]:
    """A resize with a filter, by products where factors or corners decide, which the exporter ignores (0.7)."""

    def matrix(own: Any, wanted: Any, factor: Any, is_corner: bool) -> Any:
        """The weight of each entry in each new one."""
        places, centres = (op.Add(op.Cast(op.Range(0, one, 1), to=DataType.FLOAT), 0.5) for one in (own, wanted))
        own, wanted = (op.Cast(op.Sub(one, int(is_corner)), to=DataType.FLOAT) for one in (own, wanted))
        step = op.Div(own, op.Max(wanted, 1.0)) if is_corner or factor is None else op.Constant(value_float=1 / factor)
        distances = op.Sub(places, op.Unsqueeze(op.Mul(centres, step), [1]))
        found = weights(op.Abs(op.Div(distances, op.Max(step, 1.0))))
        return op.Div(found, op.ReduceSum(found, [1]))

    def resized(source: Any, size: Any, align_corners: bool, *factors: Any) -> Any:
        if not align_corners and all(factor is None for factor in factors):
            return _theirs(operator)(source, size, align_corners)
        own = (op.Gather(op.Shape(source), dim) for dim in (2, 3))
        rows, columns = (
            matrix(*parts, align_corners) for parts in zip(own, size, factors or (None, None), strict=True)
        )
        found = op.MatMul(rows, op.MatMul(op.Cast(source, to=DataType.FLOAT), op.Transpose(columns, perm=[1, 0])))
        found = op.Clip(op.Round(found), 0.0, 255.0) if source.dtype == DataType.UINT8 else found
        return op.CastLike(found, source)

    return resized


def _triangle(distance: Any) -> Any:
    return op.Max(op.Sub(1.0, distance), 0.0)


def _cubic(distance: Any) -> Any:
    """Keys's kernel with -0.5."""
    near = op.Add(op.Mul(op.Mul(op.Sub(op.Mul(distance, 1.5), 2.5), distance), distance), 1.0)
    far = op.Add(op.Mul(op.Sub(op.Mul(op.Sub(2.5, op.Mul(distance, 0.5)), distance), 4.0), distance), 2.0)
    return op.Where(op.Less(distance, 1.0), near, op.Where(op.Less(distance, 2.0), far, 0.0))


@cache
def _theirs(operator: Any) -> Callable[..., Any]:
    """The exporter's own translation."""
    function: Callable[..., Any] = ONNXRegistry.from_torchlib().get_decomps(operator)[0].onnx_function
    return function


ONNX_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    torch.ops.prims.prod.default: product,
    _aten.repeat_interleave.self_int: repeat_interleave,
    _aten.slice_scatter.default: slice_scatter,
    _aten.select_scatter.default: select_scatter,
    _aten.diagonal.default: diagonal,
    _aten.diagonal_scatter.default: diagonal_scatter,
    _aten.as_strided_scatter.default: as_strided_scatter,
    _aten.rsub.Scalar: reversed_difference,
    _aten.pad.default: circular_pad,
    _aten.scaled_dot_product_attention.default: attention,
    _aten.matmul.default: matrix_product,
    _aten.einsum.default: einsum,
    (_bilinear := _aten._upsample_bilinear2d_aa.default): antialiased(_bilinear, _triangle),
    (_bicubic := _aten._upsample_bicubic2d_aa.default): antialiased(_bicubic, _cubic),
}
"""Operator -> its translation, which comes before the exporter's."""
