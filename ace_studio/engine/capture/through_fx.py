"""The capture method ``fx``: forward runs once with placeholders that record what is done to them."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from ace_studio.engine.capture.namespaces import ApplyControls, KeepWhole, replaced
from ace_studio.engine.capture.replay import SIZE_FUNCTIONS, FlatGraph, export_replay, leaf_at
from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import InputDims


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
