"""Makes a graph table, the form in which every graph is shown, from an ONNX file."""

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ace_studio.engine.load.onnx.model import TENSOR_TYPES, OnnxModule
from ace_studio.engine.ops.onnx_order import values_read
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.tensors import bytes_per_element

PREFIX = "onnx."
"""Prefix of an operator's name, as in ``onnx.Conv``; operators of other domains have their domain."""
_SCOPES, _CLASSES = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"
"""Metadata in which torch's exporter stores the modules of a node."""
_MOVES = frozenset(
    {"Reshape", "Transpose", "Concat", "Flatten", "Squeeze", "Unsqueeze", "Split", "Identity", "Slice", "Gather",
     "Shape", "Expand", "Cast", "Constant", "ConstantOfShape", "Pad", "Range", "Tile", "DequantizeLinear",
     "QuantizeLinear"}
)  # fmt: skip
"""Operators without arithmetic."""


@dataclass(frozen=True)
class _Value:
    shape: tuple[Any, ...]
    dtype: str

    @property
    def elements(self) -> int:
        return math.prod(size if isinstance(size, int) else 1 for size in self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * bytes_per_element(self.dtype)


@dataclass
class _Columns:
    rows: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, **row: Any) -> int:
        """Add a row; returns its index."""
        for name, value in row.items():
            self.rows.setdefault(name, []).append(value)
        return len(self.rows["op_id"]) - 1

    def get(self, name: str) -> tuple[Any, ...]:
        return tuple(self.rows.get(name, ()))


def onnx_table(module: OnnxModule, tensors: Sequence[Tensor]) -> GraphTable:
    """The table of the main graph: sizes with the file's names, costs at the sizes of these inputs.

    Constants and weights have no rows; their bytes count at the nodes that read them.
    """
    model = module.model
    named = _values(model, {})
    sized = _values(model, {value.name: tuple(one.shape) for value, one in zip(module.inputs, tensors, strict=True)})
    weights = _constants(model)
    columns, makers = _Columns(), dict[str, int]()
    edges: dict[tuple[int, int], None] = {}
    for value, name in zip(module.inputs, module.names, strict=True):
        makers[value.name] = columns.add(
            **_row(name, OpKind.INPUT, "input", "", named.get(value.name), sized.get(value.name))
        )
    for node, op_id in zip(model.graph.node, node_ids(model), strict=True):
        if node.op_type == "Constant":
            continue
        reads = list(dict.fromkeys(values_read(node)))
        first = node.output[0] if node.output else ""
        row = _row(op_id, OpKind.OP, operator(node), _module_path(node), named.get(first), sized.get(first))
        row["flops"] = _flops(node, sized)
        row["weight_bytes"] = sum(weights[name].bytes for name in reads if name in weights)
        row["attributes"] = "\n".join(_attributes(node))
        row["weights"] = "\n".join(_weight_words(name, weights[name]) for name in reads if name in weights)
        row["output_bytes"] = sum(sized[name].bytes for name in node.output if name in sized)
        index = columns.add(**row)
        edges |= {(makers[name], index): None for name in reads if name in makers}
        makers |= dict.fromkeys(filter(None, node.output), index)
    end = columns.add(**_row("output", OpKind.OUTPUT, "output", "", None, None))
    edges |= {(makers[value.name], end): None for value in model.graph.output if value.name in makers}
    paths = _module_paths(model, columns.get("module"))
    return GraphTable(
        **{name: columns.get(name) for name in columns.rows},
        edge_source=tuple(source for source, _ in edges),
        edge_target=tuple(target for _, target in edges),
        module_paths=tuple(paths),
        module_types=tuple(paths.values()),
        name=model.graph.name or module.path.stem,
    )


def node_ids(model: Any) -> list[str]:
    """The unique id of every node: its name with characters that an id cannot have replaced."""
    taken: dict[str, None] = {"output": None}
    ids = []
    for index, node in enumerate(model.graph.node):
        plain = re.sub(r"[^\w.]+", "_", node.name).strip("_") or f"{node.op_type}_{index}"
        while plain in taken:
            plain += f"_{index}"
        taken[plain] = None
        ids.append(plain)
    return ids


def operator(node: Any) -> str:
    """``onnx.Conv``; ``com.microsoft.FusedConv`` for what another domain defines."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else PREFIX + node.op_type


def _row(op_id: str, kind: OpKind, op: str, module: str, named: _Value | None, sized: _Value | None) -> dict[str, Any]:
    seen = named or sized
    return {
        "op_id": op_id,
        "kind": kind,
        "op": op,
        "module": module,
        "shape": "x".join(map(str, seen.shape)) if seen else "",
        "dtype": seen.dtype if seen else "",
        "device": "cpu" if seen else "",
        "file": -1,
        "line": 0,
        "flops": 0,
        "weight_bytes": 0,
        "attributes": "",
        "weights": "",
        "output_bytes": sized.bytes if sized else 0,
    }


def _values(model: Any, sizes: Mapping[str, tuple[int, ...]]) -> dict[str, _Value]:
    """Infer shape and type of every value, with the inputs at these sizes."""
    import onnx  # noqa: PLC0415 - optional package

    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    for value in probe.graph.input:
        if value.name in sizes:
            for dim, size in zip(value.type.tensor_type.shape.dim, sizes[value.name], strict=True):
                dim.dim_value = size
    if sizes:  # shapes stored for open sizes would contradict
        del probe.graph.value_info[:]
        for value in probe.graph.output:
            value.type.tensor_type.ClearField("shape")
    try:
        found = onnx.shape_inference.infer_shapes(probe, data_prop=True).graph
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        found = probe.graph
    listed = (*found.input, *found.value_info, *found.output)
    values = {value.name: _value(value) for value in listed if value.type.HasField("tensor_type")}
    return values | _constants(model)


def _value(value: Any) -> _Value:
    kind = value.type.tensor_type
    dims = tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in kind.shape.dim)
    return _Value(dims, _type_word(kind.elem_type))


def _constants(model: Any) -> dict[str, _Value]:
    """Weights and constants: name -> shape and type."""
    tensors = [(tensor.name, tensor) for tensor in model.graph.initializer]
    for node in model.graph.node:
        if node.op_type == "Constant":
            tensors += [(node.output[0], one.t) for one in node.attribute if one.name == "value"]
    return {name: _Value(tuple(tensor.dims), _type_word(tensor.data_type)) for name, tensor in tensors}


def _type_word(kind: int) -> str:
    return str(TENSOR_TYPES.get(kind, "")).removeprefix("torch.")


def _weight_words(name: str, value: _Value) -> str:
    return f"{name} {'x'.join(map(str, value.shape))} {value.dtype}"


def _attributes(node: Any) -> Iterator[str]:
    """``name = value`` of the attributes that are no tensors and no graphs."""
    from onnx import helper  # noqa: PLC0415 - optional package

    for one in node.attribute:
        if one.type not in (one.TENSOR, one.GRAPH, one.TENSORS, one.GRAPHS):
            value = helper.get_attribute_value(one)
            yield f"{one.name} = {value.decode(errors='replace') if isinstance(value, bytes) else value}"


def _flops(node: Any, values: Mapping[str, _Value]) -> int:
    """FLOPs: a multiply-add counts 2, an elementwise operator 1 per element; 0 if unknown."""
    result = values.get(node.output[0]) if node.output else None
    if result is None or node.op_type in _MOVES:
        return 0
    known = [values.get(name) for name in node.input]
    first, second = (*known, None, None)[:2]
    if node.op_type in ("Conv", "ConvTranspose") and first and second:
        elements = first.elements if node.op_type == "ConvTranspose" else result.elements
        return 2 * elements * _Value(second.shape[1:], "").elements
    if node.op_type in ("MatMul", "Gemm") and first and first.shape:
        is_turned = any(one.name == "transA" and one.i for one in node.attribute)
        inner = first.shape[0 if is_turned else -1]
        return 2 * result.elements * (inner if isinstance(inner, int) else 1)
    return result.elements


def _module_path(node: Any) -> str:
    """Dotted path of a node's module: from torch's exporter, else from the scopes in the node's name."""
    scopes = [scope for scope in _listed(node, _SCOPES) if scope]
    if scopes:
        return scopes[-2] if len(scopes) > 1 else ""
    parts = [part for part in node.name.split("/") if part]
    path: list[str] = []
    for part in parts[:-1]:  # "/layer1/layer1.0/conv1/Conv": a list's name begins that of its items
        if path and part.startswith(f"{path[-1]}."):
            path[-1] = part
        else:
            path.append(part)
    return ".".join(path)


def _module_paths(model: Any, used: Sequence[str]) -> dict[str, str]:
    """Every module path, parents included -> name of its class, empty if the file has none."""
    classes: dict[str, str] = {}
    for node in model.graph.node:
        for path, name in zip(_listed(node, _SCOPES)[:-1], _listed(node, _CLASSES)[:-1], strict=False):
            classes.setdefault(path, name.rpartition(".")[2])
    paths: dict[str, str] = {}
    for path in used:
        parts = path.split(".") if path else []
        for depth in range(1, len(parts) + 1):
            parent = ".".join(parts[:depth])
            paths.setdefault(parent, classes.get(parent, ""))
    return paths


def _listed(node: Any, key: str) -> list[str]:
    text = next((one.value for one in node.metadata_props if one.key == key), "")
    try:
        found = ast.literal_eval(text) if text else []
    except (ValueError, SyntaxError):
        return []
    return [str(item) for item in found] if isinstance(found, list) else []
