"""Leaves sizes of a LiteRT model open, which two conversions at different sizes show.

A tensor's shape in the file says where the interpreter may resize it. All shapes behind the inputs follow from them,
but for those that an op stores: -1 stands in a reshape for one size that follows from the others, and in a slice for
all that is left.
"""

from collections.abc import Mapping, Sequence
from typing import Any

_RESHAPE, _SLICE = "RESHAPE", "SLICE"
_STORED_SIZES = {_RESHAPE: 1, _SLICE: 2}
"""Kind of op -> position among its inputs of the sizes that it stores."""


class OpenSizesError(ValueError):
    """Why a size of the model cannot stay open."""


def with_open_sizes(model: Any, other: Any, names: Mapping[int, str]) -> None:
    """Open the sizes of ``model`` that differ in ``other``, the same model at other sizes; both as mutable objects.

    Args:
        model: Is changed.
        other: The same model at other sizes.
        names: Number of an operator in the format -> its name.

    Raises: OpenSizesError if the sizes are stored where LiteRT has no way to leave them open.
    """
    if _kinds(model, names) != _kinds(other, names):
        raise OpenSizesError("the converter writes other ops for another size")
    for graph, changed, kinds in zip(model.subgraphs, other.subgraphs, _kinds(model, names), strict=True):
        if len(graph.tensors) != len(changed.tensors):
            raise OpenSizesError("the converter writes other tensors for another size")
        for tensor, twin in zip(graph.tensors, changed.tensors, strict=True):
            if model.buffers[tensor.buffer].data is None:
                _open_tensor(tensor, twin)
        for op, twin, kind in zip(graph.operators, changed.operators, kinds, strict=True):
            stored = [
                (model.buffers[graph.tensors[at].buffer], other.buffers[changed.tensors[twin_at].buffer])
                for at, twin_at in zip(op.inputs, twin.inputs, strict=True)
                if at >= 0
            ]
            _open_op(kind, op, twin, stored, shape=graph.tensors[op.inputs[0]].shape if len(op.inputs) else ())


def _open_tensor(tensor: Any, twin: Any) -> None:
    shape, others = list(tensor.shape), list(twin.shape)
    if len(shape) != len(others):
        raise OpenSizesError("the converter gives a tensor another number of dimensions for another size")
    if shape != others:
        tensor.shapeSignature = [size if size == changed else -1 for size, changed in zip(shape, others, strict=True)]


def _open_op(kind: str, op: Any, twin: Any, stored: Sequence[tuple[Any, Any]], *, shape: Sequence[int]) -> None:
    """Open what an op stores: the sizes of a reshape or a slice; of others nothing may differ.

    Args:
        kind: Of the op.
        op: The op, which is changed.
        twin: The op in the other model.
        stored: The buffer of each of its inputs in both models.
        shape: Of its first input.
    """
    for place, (buffer, other) in enumerate(stored):
        if buffer.data is None or bytes(buffer.data) == bytes(other.data):
            continue
        if _STORED_SIZES.get(kind) != place:
            raise OpenSizesError(f"a {kind} of the file stores a size, which cannot stay open there")
        sizes, changed = _integers(buffer), _integers(other)
        differing = sizes != changed
        if kind == _RESHAPE and differing.sum() > 1:
            raise OpenSizesError("a reshape of the model keeps two dynamic sizes apart, and LiteRT leaves one open")
        # Several ops may store their sizes in one buffer, which is then open already.
        is_whole = (_integers(stored[1][0]) == 0) & ((sizes == shape) | (sizes == -1)) if kind == _SLICE else differing
        if not all(is_whole[differing]):
            raise OpenSizesError("a slice of the model takes a part of a dynamic size, which LiteRT cannot leave open")
        sizes[differing] = -1
        buffer.data = sizes.view("uint8")
    if kind == _RESHAPE:
        op.builtinOptions, op.builtinOptionsType = None, 0  # the second input says the shape
    elif op.builtinOptions is not None and vars(op.builtinOptions) != vars(twin.builtinOptions):
        raise OpenSizesError(f"a {kind} of the file stores a size, which cannot stay open there")


def _integers(buffer: Any) -> Any:
    """The 32-bit integers of a buffer, as an array of its own."""
    import numpy

    return numpy.frombuffer(bytes(buffer.data), numpy.int32).copy()


def _kinds(model: Any, names: Mapping[int, str]) -> list[list[str]]:
    codes = [max(code.builtinCode, code.deprecatedBuiltinCode) for code in model.operatorCodes]
    return [[names.get(codes[op.opcodeIndex], "?") for op in graph.operators] for graph in model.subgraphs]
