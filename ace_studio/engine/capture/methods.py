"""The capture methods, one row each: torch.export, the compiler's tracer, and placeholders that record."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from ace_studio.engine.capture.namespaces import ApplyControls, KeepWhole, replaced
from ace_studio.engine.capture.replay import SIZE_FUNCTIONS, FlatGraph, Read, export_example, export_replay, leaf_at
from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import InputDims
from ace_studio.engine.torch_private.dynamo import forget_traces, whole_graph_capture
from ace_studio.engine.torch_private.sizes import mark_free, size_conditions, size_text

CaptureFunction = Callable[[nn.Module, Example, tuple[InputDims, ...], ApplyControls], ExportedProgram]
"""Module, example to trace, its dimensions, and what puts the controls in place."""


@dataclass(frozen=True)
class CaptureMethod:
    """One way to capture."""

    name: str
    label: str
    """What it does, in words, for the progress display."""
    capture: CaptureFunction | None
    """None for the method that gives subgraphs instead of a whole graph."""


def _export(*, strict: bool) -> CaptureFunction:
    def capture(
        module: nn.Module, example: Example, inputs: tuple[InputDims, ...], controls: ApplyControls
    ) -> ExportedProgram:
        forget_traces()
        with controls():
            return export_example(module, example, inputs, strict=strict)

    return capture


class NoGraphError(RuntimeError):
    """The compiler found nothing to compile."""


class _Number(int):
    """A size among the graph's results, so that it differs from an equal constant."""


class _Listener:
    """A backend for torch.compile that keeps the graph, its inputs and its results."""

    def __init__(self) -> None:
        self.graph: fx.GraphModule | None = None
        self.given: tuple[Any, ...] = ()
        self.results: tuple[Any, ...] = ()

    def __call__(self, graph: fx.GraphModule, _: Any) -> Any:
        self.graph = graph

        def run(*values: Any) -> tuple[Any, ...]:
            self.given = values
            self.results = tuple(_Number(one) if type(one) is int else one for one in graph(*values))
            return self.results

        return run


def capture_with_dynamo(
    module: nn.Module, example: Example, inputs: tuple[InputDims, ...], controls: ApplyControls
) -> ExportedProgram:
    """Run the example through the compiler with ``fullgraph=True``, and take the graph from it."""
    forget_traces()
    listener = _Listener()
    own = example.copied()
    for tensor, one in zip(own.tensors(), inputs, strict=True):
        mark_free(tensor, one.dynamic_dims())
    try:
        with torch.no_grad(), whole_graph_capture(), controls():
            result = own.call(torch.compile(module, backend=listener, fullgraph=True))
        if listener.graph is None:
            raise NoGraphError("forward computes nothing with tensors")
        return export_replay(_flat_graph(listener, module, own, result), module, example, inputs)
    finally:
        forget_traces()


def _flat_graph(listener: _Listener, module: nn.Module, example: Example, result: Any) -> FlatGraph:
    graph = listener.graph
    assert graph is not None
    places = _places(module, example)
    nodes = graph.graph.find_nodes(op="placeholder")
    sizes = _Sizes(example, nodes, listener.given)
    reads = tuple(
        places.get(id(value)) or (sizes.read(node, value) if type(value) is int else _constant(value))
        for node, value in zip(nodes, listener.given, strict=True)
    )
    leaves, spec = pytree.tree_flatten(result)
    made = {id(value): position for position, value in enumerate(listener.results)}
    outputs = tuple(_output(leaf, made, places) for leaf in leaves)
    return FlatGraph(
        graph=graph,
        inputs=reads,
        outputs=outputs,
        spec=spec,
        conditions=(*sizes.relations, *size_conditions(graph)),
        sizes=sizes.reads,
    )


def _output(leaf: Any, made: dict[int, int], places: dict[int, Read]) -> int | Read:
    """Where a leaf of the result comes from: the graph, an input, a weight, or a constant."""
    return made[id(leaf)] if id(leaf) in made else places.get(id(leaf)) or _constant(leaf)


def _places(module: nn.Module, example: Example) -> dict[int, Read]:
    """Identity of a tensor -> how to find the same tensor in another call."""
    found: dict[int, Read] = {}
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        found[id(tensor)] = _weight(name)
    for position, leaf in enumerate(pytree.tree_leaves((example.args, dict(example.kwargs)))):
        if isinstance(leaf, Tensor):
            found[id(leaf)] = leaf_at(position)
    return found


def _weight(name: str) -> Read:
    read = operator.attrgetter(name)
    return lambda module, _: read(module)


def _constant(value: Any) -> Read:
    return lambda _, __: value


def _size(position: int, dim: int) -> Read:
    return lambda _, leaves: leaves[position].shape[dim]


class _Sizes:
    """Finds for a size that the graph has as a symbol the input dimension that it is."""

    def __init__(self, example: Example, nodes: list[fx.Node], given: tuple[Any, ...]) -> None:
        leaves = pytree.tree_leaves((example.args, dict(example.kwargs)))
        positions = {id(leaf): position for position, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
        self.reads: dict[str, Read] = {}
        """Symbol, or a made-up name -> how to find that size in another call."""
        self.relations: list[str] = []
        """Sizes that the compiler expressed by others: ``s0 == 2*s1``."""
        self._by_value = {
            size: _size(position, dim)
            for position, leaf in enumerate(leaves)
            if isinstance(leaf, Tensor)
            for dim, size in reversed(list(enumerate(leaf.shape)))
        }
        described = [
            (size_text(size), positions[id(value)], dim)
            for node, value in zip(nodes, given, strict=True)
            if id(value) in positions and isinstance(node.meta.get("example_value"), Tensor)
            for dim, size in enumerate(node.meta["example_value"].shape)
            if not isinstance(size, int)
        ]
        for text, position, dim in sorted(described, key=lambda one: not one[0].isidentifier()):
            if text.isidentifier() and text not in self.reads:
                self.reads[text] = _size(position, dim)
            else:
                name = f"size_{position}_{dim}"
                self.reads[name] = _size(position, dim)
                self.relations.append(f"{name} == {text}")

    def read(self, node: fx.Node, value: int) -> Read:
        """Find a size by its symbol if the graph also takes the tensor, else by its value, which is proven later."""
        symbol = size_text(node.meta.get("example_value"))
        return self.reads.setdefault(symbol, self._by_value.get(value) or _constant(value))


def capture_with_fx(
    module: nn.Module, example: Example, inputs: tuple[InputDims, ...], controls: ApplyControls
) -> ExportedProgram:
    """Trace with placeholders for the tensors; every other argument keeps its value from the example.

    Modules of torch.nn, and those that a control names as leaves, are kept as one call each while tracing.
    """
    tracer = _Tracer(example)  # before the controls, since it notes which functions of math are the original ones
    sizes = {function: recorded(function) for function in SIZE_FUNCTIONS}
    with torch.no_grad(), controls() as tracer.keep_whole, replaced(module, sizes):
        graph = tracer.trace(module)
    flat = FlatGraph(
        graph=fx.GraphModule(tracer.root, graph),
        inputs=tuple(leaf_at(position) for position in tracer.positions),
        outputs=tuple(range(tracer.spec.num_leaves)),
        spec=tracer.spec,
    )
    return export_replay(flat, module, example, inputs)


class _Tracer(fx.Tracer):
    """Placeholders for the tensor leaves of one example, and the user's lines on every node."""

    def __init__(self, example: Example) -> None:
        super().__init__()
        self.record_stack_traces = True
        self._example = example
        self.keep_whole: KeepWhole = lambda _: False
        self.positions: list[int] = []
        """Positions of the tensors among the leaves of the call."""
        self.spec = pytree.tree_structure(None)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether to keep a module as one call: fx's own rule, or a control of the recipe."""
        return super().is_leaf_module(m, module_qualified_name) or self.keep_whole(type(m))

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,  # noqa: ARG002 - fx passes it
        concrete_args: Any = None,  # noqa: ARG002 - fx passes it
    ) -> tuple[Callable[..., Any], list[Any]]:
        """A call of forward with placeholders for the tensors only, and a flat result."""
        values, spec = pytree.tree_flatten((self._example.args, dict(self._example.kwargs)))
        for position, value in enumerate(values):
            if isinstance(value, Tensor):
                values[position] = self.create_proxy("placeholder", f"input_{len(self.positions)}", (), {})
                self.positions.append(position)
        args, kwargs = pytree.tree_unflatten(values, spec)

        def call(root: nn.Module) -> list[Any]:
            found, self.spec = pytree.tree_flatten(root_fn(root, *args, **kwargs))
            return found

        return call, [self.root]


def recorded(function: Callable[..., Any], *, noticed: Callable[[], object] = lambda: None) -> Callable[..., Any]:
    """The function, recorded as one call if an argument is a placeholder; ``noticed`` is called then."""

    def record(*args: Any, **kwargs: Any) -> Any:
        proxy = next((leaf for leaf in _values((args, kwargs)) if isinstance(leaf, fx.Proxy)), None)
        if proxy is None:
            return function(*args, **kwargs)
        noticed()
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    return record


def _values(value: Any) -> Iterator[Any]:
    """The leaves of nested containers, slices among them."""
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, slice):
            yield from (leaf.start, leaf.stop, leaf.step)
        else:
            yield leaf


_ROWS = (
    CaptureMethod("export", "running the model with symbolic sizes", _export(strict=False)),
    CaptureMethod("export-strict", "reading the model's bytecode", _export(strict=True)),
    CaptureMethod("dynamo", "capturing through the compiler", capture_with_dynamo),
    CaptureMethod("fx", "tracing with placeholders", capture_with_fx),
    CaptureMethod("partial", "capturing subgraph by subgraph", None),
)
CAPTURE_METHODS: dict[str, CaptureMethod] = {row.name: row for row in _ROWS}
