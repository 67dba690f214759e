"""The captured graph as a table: one row per input, op and output, with where each came from and what it costs."""

import operator
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from ace_studio.engine.ops.costs import OpCall, count_flops, tensor_bytes
from ace_studio.engine.torch_private.operators import argument_names, is_operator, is_pointwise
from ace_studio.engine.torch_private.sizes import size_hint, size_text
from ace_studio.engine.user_files import user_place
from ace_studio.records.graph import GraphTable, OpKind

_SYMBOL = re.compile(r"\bs\d+\b")
_BOOKKEEPING = re.compile(r"aten\.(_assert|sym_|_assert_|_functional_assert)|^sym_constrain|\.sym_constrain")
_PLAIN = int | float | torch.SymInt | torch.SymFloat | torch.SymBool
_CALL_MARK = re.compile(r"@(\d+)$")


def build_graph_table(program: ExportedProgram, *, module: nn.Module) -> GraphTable:
    """The table of a captured program.

    Args:
        program: The captured graph; ``op_id`` of a row is the name of the node.
        module: The eager module, for the class names of containers and of itself.
    """
    return _TableBuilder(program, module, readable_symbols(program)).build()


def readable_symbols(program: ExportedProgram) -> dict[str, str]:
    """The tracer's symbols -> ``s0``, ``s1``, ... in the order in which the inputs show them."""
    found: dict[str, str] = {}
    for node in program.graph.nodes:
        if node.op != "placeholder" or not isinstance(value := node.meta.get("val"), Tensor):
            continue
        for size in value.shape:
            for symbol in _SYMBOL.findall(size_text(size)):
                found.setdefault(symbol, f"s{len(found)}")
    return found


def rename_symbols(text: str, names: Mapping[str, str]) -> str:
    """An expression with readable symbols."""
    return _SYMBOL.sub(lambda match: names.get(match.group(), match.group()), text)


def is_row(node: fx.Node) -> bool:
    """Whether a node computes something that a person would call an op."""
    if node.op in ("call_module", "call_method"):
        return True
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return True
    if _BOOKKEEPING.search(str(node.target)):
        return False
    return bool(_tensors(node)) or not isinstance(node.meta.get("val"), _PLAIN | None)


def module_path(node: fx.Node) -> str:
    """Dotted path of the innermost module, with ``@n`` behind a module that is called for the n+1-th time."""
    stack = [(key, entry[0]) for key, entry in (node.meta.get("nn_module_stack") or {}).items()]
    stack = [(key, path) for key, path in stack if "_empty_nn_module_stack" not in path]
    if not stack or not stack[-1][1]:
        return ""
    parts = _clean(stack[-1][1]).split(".")
    marked = ""
    for key, path in stack:
        mark = _CALL_MARK.search(key)
        depth = len(_clean(path).split(".")) - 1
        if mark and mark.group(1) != marked and depth < len(parts) and "@" not in parts[depth]:
            marked = mark.group(1)
            parts[depth] += f"@{marked}"
    return ".".join(parts)


def _clean(path: str) -> str:
    """A path without the prefixes that the tracers put in front."""
    for prefix in ("L['self'].", "_export_root.", "L__self__."):
        path = path.removeprefix(prefix)
    return _CALL_MARK.sub("", path)


def _tensors(node: fx.Node) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(node.meta.get("val")) if isinstance(leaf, Tensor)]


def _concrete(tensor: Tensor) -> tuple[int, ...]:
    return tuple(size_hint(size) for size in tensor.shape)


def _op_name(node: fx.Node) -> str:
    return str(node.target) if is_operator(node.target) else str(getattr(node.target, "__name__", node.target))


@dataclass
class _TableBuilder:
    """Fills the columns in one pass over the graph."""

    program: ExportedProgram
    module: nn.Module
    symbols: Mapping[str, str]
    columns: dict[str, list[Any]] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    row_of: dict[str, int] = field(default_factory=dict)
    sources: dict[str, list[int]] = field(default_factory=dict)
    """Node without a row -> the rows that it passes on, so that edges go through it."""
    weights: dict[str, int] = field(default_factory=dict)
    """Placeholder of a parameter, buffer or constant -> bytes."""
    weight_words: dict[str, str] = field(default_factory=dict)
    """The same placeholder -> its name in the model, shape and type."""
    edges: list[tuple[int, int]] = field(default_factory=list)

    def build(self) -> GraphTable:
        self._find_weights()
        for node in self.program.graph.nodes:
            self._visit(node)
        return graph_table_of(self.columns, self.edges, files=self.files, module=self.module)

    def _find_weights(self) -> None:
        names = {
            getattr(spec.arg, "name", ""): spec.target or getattr(spec.arg, "name", "")
            for spec in self.program.graph_signature.input_specs
            if spec.kind is not InputKind.USER_INPUT
        }
        for node in self.program.graph.nodes:
            if (node.op == "placeholder" and node.name in names) or node.op == "get_attr":
                self.weights[node.name] = self._bytes(node)
                named = names.get(node.name, str(node.target))
                self.weight_words[node.name] = f"{named} {self._tensor_text(node)}".rstrip()

    def _visit(self, node: fx.Node) -> None:
        if node.name in self.weights:
            return
        if node.op == "placeholder":
            self._add(node, OpKind.INPUT, "input")
        elif node.op == "output":
            self._add(node, OpKind.OUTPUT, "output")
        elif is_row(node):
            self._add(node, OpKind.OP, _op_name(node))
        else:
            self.sources[node.name] = self._source_rows(node)

    def _source_rows(self, node: fx.Node) -> list[int]:
        """Rows that the node reads. A row that only lends its size counts if there is no other (``zeros(n)``)."""
        direct = [self.row_of[source.name] for source in node.all_input_nodes if source.name in self.row_of]
        if direct:
            return direct
        through = [row for source in node.all_input_nodes for row in self.sources.get(source.name, ())]
        return list(dict.fromkeys(through))

    def _add(self, node: fx.Node, kind: OpKind, op: str) -> None:
        row = self.row_of[node.name] = len(self.row_of)
        self.edges.extend((source, row) for source in self._source_rows(node))
        tensors = _tensors(node)
        first = tensors[0] if tensors else None
        file, line = user_place(node.meta.get("stack_trace", ""))
        is_op = kind is OpKind.OP
        values: dict[str, Any] = {
            "op_id": node.name,
            "kind": kind,
            "op": op,
            "module": module_path(node) if is_op else "",
            "shape": "" if first is None else self._shape_text(first),
            "dtype": "" if first is None else str(first.dtype).removeprefix("torch."),
            "device": "" if first is None else _device_text(first.device),
            "file": self.files.setdefault(file, len(self.files)) if file else -1,
            "line": line,
            "flops": count_flops(_op_call(node, op)) if is_op else 0,
            "weight_bytes": sum(self.weights.get(source.name, 0) for source in node.all_input_nodes),
            "output_bytes": self._bytes(node) if kind is not OpKind.OUTPUT else 0,
            "attributes": "\n".join(_attributes(node)) if is_op else "",
            "weights": "\n".join(
                self.weight_words[one.name] for one in node.all_input_nodes if one.name in self.weights
            ),
        }
        for name, value in values.items():
            self.columns.setdefault(name, []).append(value)

    def _shape_text(self, tensor: Tensor) -> str:
        sizes = [rename_symbols(size_text(size), self.symbols).replace(" ", "") for size in tensor.shape]
        return "x".join(f"({size})" if re.search(r"[^\w]", size) else size for size in sizes)

    def _tensor_text(self, node: fx.Node) -> str:
        return ", ".join(f"{self._shape_text(one)} {str(one.dtype).removeprefix('torch.')}" for one in _tensors(node))

    def _bytes(self, node: fx.Node) -> int:
        return sum(tensor_bytes(_concrete(tensor), tensor.dtype) for tensor in _tensors(node))


def graph_table_of(
    columns: Mapping[str, Sequence[Any]], edges: Collection[tuple[int, int]], *, files: Iterable[str], module: nn.Module
) -> GraphTable:
    """The table of these columns and edges; its module paths are those that occur, a parent before its children."""
    named = (path.split(".") for path in columns.get("module", ()) if path)
    paths = dict.fromkeys(".".join(parts[:depth]) for parts in named for depth in range(1, len(parts) + 1))
    types = {path: type(child).__name__ for path, child in module.named_modules(remove_duplicate=False)}
    sources, targets = zip(*edges, strict=True) if edges else ((), ())
    return GraphTable(
        **{name: tuple(column) for name, column in columns.items()},
        edge_source=sources,
        edge_target=targets,
        files=tuple(files),
        module_paths=tuple(paths),
        module_types=tuple(types.get(re.sub(r"@[^.]*", "", path), "") for path in paths),
        name=type(module).__name__,
    )


def _device_text(device: torch.device) -> str:
    return device.type if device.index is None else f"{device.type}:{device.index}"


def _op_call(node: fx.Node, op: str) -> OpCall:
    """The node with shapes instead of tensors, for the cost formulas."""
    named: dict[str, Any] = dict(_named_arguments(node))
    return OpCall(
        op=op,
        inputs={name: _shapes(value) for name, value in named.items()},
        outputs=tuple(_concrete(tensor) for tensor in _tensors(node)),
        is_pointwise=is_pointwise(node.target),
    )


def _named_arguments(node: fx.Node) -> Iterator[tuple[str, Any]]:
    names = argument_names(node.target)
    for position, value in enumerate(node.args):
        yield (names[position] if position < len(names) else str(position)), value
    yield from node.kwargs.items()


def _attributes(node: fx.Node) -> Iterator[str]:
    """The arguments without tensors: strides, axes, constants."""
    for name, value in _named_arguments(node):
        if value is not None and not any(isinstance(leaf, fx.Node) for leaf in pytree.tree_leaves(value)):
            yield f"{name} = {value}"


def _shapes(value: Any) -> Any:
    if isinstance(value, fx.Node):
        found = value.meta.get("val")
        return _concrete(found) if isinstance(found, Tensor) else None
    if isinstance(value, list | tuple):
        return [_shapes(item) for item in value]
    return value
