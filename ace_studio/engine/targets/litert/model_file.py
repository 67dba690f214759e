"""Reads a ``.tflite`` file: its ops, what each computes in, and the sizes that it was proven at."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.litert.names import ids_in, kind_names, type_names
from ace_studio.engine.targets.shared.kernels import GraphStep, Kernel, adopt_orphans, heavy_ops
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.tensors import SizeLimit

PRODUCTS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL"})
MOVING = frozenset({"RESHAPE", "TRANSPOSE", "PAD"})
"""Ops that give the values that they read, and 0."""
_WEIGHT = 1
"""Position of the weight among the inputs of a product; of a transposed convolution too, whose first are sizes."""
_CONVERSIONS = frozenset({"QUANTIZE", "DEQUANTIZE", "CAST"})
_SIZES_KEY = b"ace_studio.sizes"
"""Entry of the file's metadata: the sizes that it was proven at."""


@dataclass(frozen=True)
class FileTensor:
    """A tensor of the file."""

    name: str
    dtype: str
    """``FLOAT32``, ``INT8``, ... as the format names it."""
    is_constant: bool


@dataclass(frozen=True)
class FileOp:
    """An op of the file, in the order of execution."""

    index: int
    kind: str
    """``CONV_2D``, ... as the format names it."""
    inputs: tuple[FileTensor, ...]
    """Without those that are left out."""
    outputs: tuple[FileTensor, ...]
    op_ids: tuple[str, ...] = ()
    """Ops of the captured graph that it computes, the main one first."""


def file_ops(content: bytes, order: Mapping[str, int], heavy: frozenset[str]) -> list[FileOp]:
    """The ops of a model, each with the ops of the captured graph that it computes.

    Args:
        content: Of the file.
        order: Op id -> row of the graph table.
        heavy: Ids of the weighted ops, which come first among those of one op.
    """
    found = _bare_ops(content)
    owners: dict[str, tuple[str, ...]] = {}
    for op in found:
        stored = op.inputs[_WEIGHT:] if op.kind in PRODUCTS else ()  # an output of the model names its last op only
        named = (*op.outputs, *(tensor for tensor in stored if tensor.is_constant))
        ids = {one for tensor in named for one in ids_in(tensor.name) if one in order}
        owners[str(op.index)] = tuple(sorted(ids, key=lambda one: (one not in heavy, order[one])))
    steps = [
        GraphStep(str(op.index), tuple(one.name for one in op.inputs), tuple(one.name for one in op.outputs))
        for op in found
    ]
    adopt_orphans(steps, owners)
    return [dataclasses.replace(op, op_ids=owners[str(op.index)]) for op in found]


def _bare_ops(content: bytes) -> list[FileOp]:
    model = _model(content)
    graph = model.Subgraphs(0)
    tensors = [_tensor(model, graph.Tensors(at)) for at in range(graph.TensorsLength())]
    names = kind_names()
    found = []
    for at in range(graph.OperatorsLength()):
        op = graph.Operators(at)
        code = model.OperatorCodes(op.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        inputs, outputs = (
            tuple(tensors[index] for index in places if index >= 0)
            for places in (
                [op.Inputs(place) for place in range(op.InputsLength())],
                [op.Outputs(place) for place in range(op.OutputsLength())],
            )
        )
        found.append(FileOp(at, names.get(number, f"op {number}"), inputs, outputs))
    return found


def _tensor(model: Any, tensor: Any) -> FileTensor:
    buffer = model.Buffers(tensor.Buffer())
    is_constant = buffer.DataLength() > 0 or buffer.Size() > 0
    return FileTensor((tensor.Name() or b"").decode(), type_names().get(tensor.Type(), "?"), is_constant)


def _model(content: bytes) -> Any:
    from ai_edge_litert import schema_py_generated

    return schema_py_generated.Model.GetRootAs(content, 0)


def kernels_of_file(content: bytes, delegated: frozenset[int], job: LoweringJob) -> list[Kernel]:
    """What the runtime runs for each op of the file, with the precision that the types of its tensors mean.

    Args:
        content: Of the file.
        delegated: Indices of the ops that XNNPACK runs.
        job: What the file was built for.
    """
    table = job.captured.table
    heavy = heavy_ops(table)
    ops = file_ops(content, {table.op_id[row]: row for row in table.op_rows()}, heavy)
    makers = {tensor.name: op for op in ops for tensor in op.outputs}
    fused = {op_id for op in ops if op.kind not in MOVING for op_id in op.op_ids[1:]}
    return [
        Kernel(
            name=str(op.index),
            kind=f"{'XNNPACK' if op.index in delegated else 'its own kernel'}: {op.kind}",
            precision=computed_in(op, makers),
            op_ids=op.op_ids,
            is_arithmetic=op.kind in PRODUCTS and op.op_ids[0] in heavy,
            is_conversion=op.kind in _CONVERSIONS or op.outputs[0].dtype not in ("FLOAT32", "INT8"),
        )
        for op in ops
        if op.op_ids
        and op.kind not in ("QUANTIZE", "DEQUANTIZE")
        # A transposition behind a fused activation is named after the activation.
        and not (op.kind in MOVING and op.op_ids[0] in fused)
    ]


def computed_in(op: FileOp, makers: Mapping[str, FileOp]) -> str:
    """The `Precision` word that an op computes in; ``unknown`` for one without floats or 8-bit values.

    Args:
        op: The op.
        makers: Name of a tensor -> the op that makes it.
    """
    if op.outputs[0].dtype == "INT8":
        return Precision.INT8_STATIC
    if op.outputs[0].dtype != "FLOAT32":
        return "unknown"
    if op.kind in PRODUCTS and len(op.inputs) > _WEIGHT:
        weight = op.inputs[_WEIGHT]
        if weight.dtype == "INT8":
            return Precision.INT8_DYNAMIC
        maker = makers.get(weight.name)
        if maker is not None and maker.kind == "DEQUANTIZE" and maker.inputs[0].is_constant:
            return Precision.INT8_WEIGHT
    return Precision.FP32


def with_limits(content: bytes, limits: Sequence[SizeLimit]) -> bytes:
    """The file with the sizes that it was proven at in its metadata; unchanged if it holds for all."""
    if not limits:
        return content
    from ai_edge_litert.tools import flatbuffer_utils

    schema = flatbuffer_utils.schema_fb
    model = flatbuffer_utils.read_model_from_bytearray(bytearray(content))
    buffer = schema.BufferT()
    buffer.data = list(msgspec.json.encode(limits))
    entry = schema.MetadataT()
    entry.name, entry.buffer = _SIZES_KEY, len(model.buffers)
    model.buffers.append(buffer)
    model.metadata = [*(model.metadata or []), entry]
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def limits_in(content: bytes) -> list[SizeLimit]:
    """The sizes that a file says it was proven at; none in a file of somebody else."""
    model = _model(content)
    for at in range(model.MetadataLength()):
        entry = model.Metadata(at)
        if entry.Name() == _SIZES_KEY:
            data = model.Buffers(entry.Buffer()).DataAsNumpy().tobytes()
            return msgspec.json.decode(data, type=list[SizeLimit])
    return []


def delegated_ops(details: Iterable[Mapping[str, Any]]) -> frozenset[int]:
    """Indices of the ops that delegates run, from the interpreter's list of ops: delegates follow the file's ops."""
    listed = list(details)
    own = [one for one in listed if one["op_name"] != "DELEGATE"]
    makers = {tensor: one for one in own for tensor in one["outputs"]}
    found: set[int] = set()
    for delegate in (one for one in listed if one["op_name"] == "DELEGATE"):
        given, waiting = set(delegate["inputs"]), list(delegate["outputs"])
        while waiting:
            tensor = waiting.pop()
            maker = makers.get(tensor)
            if tensor in given or maker is None or maker["index"] in found:
                continue
            found.add(maker["index"])
            waiting.extend(maker["inputs"])
    return frozenset(found)
