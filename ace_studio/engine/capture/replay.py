"""Turns a graph of dynamo or fx into an exported program, by exporting a module that plays the graph.

Dynamo and fx give a graph over a flat list of values in an order of their own. The module that plays it has the user's
forward signature, parameters and submodules; exporting it gives operators, free sizes, module paths and source lines in
the same form as exporting the model itself.
"""

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.fx.traceback import preserve_node_meta
from torch.utils import _pytree as pytree

from ace_studio.engine.capture.computed_weights import write_out_computed_weights
from ace_studio.engine.capture.guards import holds
from ace_studio.engine.examples.containers import map_opened
from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import InputDims
from ace_studio.engine.torch_private.dynamo import readable_path
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from ace_studio.engine.user_files import is_user_file

Read = Callable[[nn.Module, Sequence[Any]], Any]
"""Finds one value, given the module that is played and the leaves of its call."""


def leaf_at(position: int) -> Read:
    """Reads a leaf of the call."""
    return lambda _, leaves: leaves[position]


@dataclass(frozen=True)
class FlatGraph:
    """A traced graph, and where its inputs and the leaves of its result come from."""

    graph: fx.GraphModule
    inputs: tuple[Read, ...]
    outputs: tuple[int | Read, ...]
    """Per leaf of the result: position among the graph's outputs, or where it is found without the graph."""
    spec: pytree.TreeSpec
    """The nesting of the result."""
    conditions: tuple[str, ...] = ()
    """Conditions on the sizes under which this graph is valid, over the names in `sizes`."""
    sizes: Mapping[str, Read] = field(default_factory=dict)


def dynamic_shapes(module: nn.Module, example: Example, inputs: tuple[InputDims, ...]) -> dict[str, Any]:
    """``dynamic_shapes`` for torch.export: the free dimensions, nested like the arguments; ``**kwargs`` by name."""
    signature = inspect.signature(module.forward)
    bound = dict(signature.bind(*example.args, **example.kwargs).arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            bound |= bound.pop(name, {})
    order = {id(tensor): one for tensor, one in zip(example.tensors(), inputs, strict=True)}

    def mark(leaf: Any) -> Any:
        return dict.fromkeys(order[id(leaf)].dynamic_dims(), DYNAMIC) if isinstance(leaf, Tensor) else None

    marked: dict[str, Any] = map_opened(bound, mark)
    return marked


def export_example(
    module: nn.Module, example: Example, inputs: tuple[InputDims, ...], *, strict: bool = False
) -> ExportedProgram:
    """What torch.export makes of the module and the example, with the free dimensions of ``inputs``.

    Weights that forward computes are written out.
    """
    shapes = dynamic_shapes(module, example, inputs)
    with torch.no_grad():
        program = export_program(module, example.args, example.kwargs, dynamic_shapes=shapes, strict=strict)
    write_out_computed_weights(program)
    return program


def export_replay(
    flat: FlatGraph, module: nn.Module, example: Example, inputs: tuple[InputDims, ...]
) -> ExportedProgram:
    """The traced graph as a program with the inputs, outputs, names and free sizes of the user's module."""
    clean_places(flat.graph.graph)
    program = export_example(_ReplayModule(flat, module), example, inputs)
    keep_user_frames(program)
    return program


def keep_user_frames(program: ExportedProgram) -> None:
    """Cut the stack of every node to the user's own code, without the module that played the graph."""
    for node in program.graph.nodes:
        if trace := node.meta.get("stack_trace"):
            node.meta["stack_trace"] = _user_part(trace)


class _ReplayModule(nn.Module):
    """The user's parameters, buffers and submodules under their own names, with a traced graph as forward."""

    def __init__(self, flat: FlatGraph, module: nn.Module) -> None:
        super().__init__()
        for name, child in module.named_children():
            self.add_module(name, child)
        for name, parameter in module.named_parameters(recurse=False):
            self.register_parameter(name, parameter)
        for name, buffer in module.named_buffers(recurse=False):
            self.register_buffer(name, buffer, persistent=name in module.state_dict())
        self.eval()

        def forward(*args: Any, **kwargs: Any) -> Any:
            return _play(flat, self, (args, kwargs))

        forward.__signature__ = inspect.signature(module.forward)  # type: ignore[attr-defined]
        self.forward = forward


def _play(flat: FlatGraph, module: nn.Module, call: Any) -> Any:
    leaves = pytree.tree_leaves(call)
    sizes = {name: read(module, leaves) for name, read in flat.sizes.items()}
    for condition in flat.conditions:
        if not holds(condition, sizes):  # asking makes it a condition of the program as well
            raise RuntimeError(f"the graph holds only where {condition}")
    with preserve_node_meta():
        results = GraphPlayer(flat.graph, module).run(*(read(module, leaves) for read in flat.inputs))
    found = [results[one] if isinstance(one, int) else one(module, leaves) for one in flat.outputs]
    return pytree.tree_unflatten(found, flat.spec)


class GraphPlayer(fx.Interpreter):
    """Runs a traced graph with symbolic sizes, for which some of Python's functions need another name."""

    def __init__(self, graph: fx.GraphModule, owner: nn.Module) -> None:
        super().__init__(graph)
        self._owner = owner

    def run_node(self, node: fx.Node) -> Any:
        """Run one node, under the module path that the user knows."""
        if node.op == "call_module":  # the module records its own path
            node.meta.pop("nn_module_stack", None)
        return super().run_node(node)

    def fetch_attr(self, target: str) -> Any:
        """A parameter, buffer or constant of the graph."""
        value: Any = self._owner  # the export tracks its parameters
        for part in target.split("."):
            if not hasattr(value, part):
                return super().fetch_attr(target)
            value = getattr(value, part)
        return value

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call it; a function of Python on symbolic sizes is replaced by its symbolic form."""
        symbolic = _SYMBOLIC.get(target) if callable(target) and target in _PYTHON_FUNCTIONS else None
        if symbolic is not None and not kwargs and any(isinstance(arg, _SYMBOLS) for arg in args):
            return symbolic(*args)
        return super().call_function(target, args, dict(kwargs))


def _length(value: Any) -> Any:
    return value.shape[0] if isinstance(value, Tensor) else len(value)


_SYMBOLS = (torch.SymInt, torch.SymFloat, Tensor)
_SYMBOLIC: dict[Any, Callable[..., Any]] = {
    len: _length,
    math.sqrt: torch.sym_sqrt,
    math.floor: math.floor,
    math.ceil: math.ceil,
    max: lambda *values: functools.reduce(torch.sym_max, values),
    min: lambda *values: functools.reduce(torch.sym_min, values),
}
_PYTHON_FUNCTIONS = frozenset(_SYMBOLIC)
SIZE_FUNCTIONS: tuple[Callable[..., Any], ...] = (len, math.sqrt, math.floor, math.ceil)
"""Functions of Python that are played with symbolic sizes, so that recording them fixes no size."""


def clean_places(graph: fx.Graph, *, prefix: str = "") -> None:
    """Give every node the module paths that the user knows, and a stack that ends in the user's own code.

    ``prefix`` is the path of the module that the graph's own paths start from.
    """
    for node in graph.nodes:
        stack = node.meta.get("nn_module_stack")
        if stack:
            paths = {key: readable_path(str(path)) for key, (path, _) in stack.items()}
            named = {key: (f"{prefix}.{paths[key]}".strip("."), kind) for key, (_, kind) in stack.items()}
            node.meta["nn_module_stack"] = named
        elif prefix:
            node.meta["nn_module_stack"] = {prefix: (prefix, nn.Module)}
        if trace := node.meta.get("stack_trace") or node.stack_trace:
            node.meta["stack_trace"] = _user_part(trace)


def _user_part(trace: str) -> str:
    """The frames of the user's files."""
    frames = re.split(r'(?m)^(?=\s*File ")', trace)
    files = [re.match(r'\s*File "([^"]+)"', frame) for frame in frames]
    kept = [frame for frame, file in zip(frames, files, strict=True) if file and is_user_file(file.group(1))]
    return "".join(kept)
