"""Subgraphs as modules: flat tensors in, flat tensors out, with the user's names of inputs and weights."""

import contextlib
import inspect
import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, fx, nn
from torch.fx.traceback import preserve_node_meta
from torch.utils import _pytree as pytree

from ace_studio.engine.capture.partial.recording import RecordedCalls, RecordedFrame
from ace_studio.engine.capture.replay import GraphPlayer, clean_places
from ace_studio.engine.flow import Example
from ace_studio.engine.subgraphs.run_pieces import Frame, Place, is_tensor_node, symbol_of
from ace_studio.engine.torch_private.dynamo import readable_path


class NotASubgraphError(Exception):
    """The recorded frame or submodule cannot be one subgraph; the message says why."""


@dataclass(frozen=True)
class SubgraphSource:
    """A subgraph before it is captured."""

    place: Place
    """Its place in the model, without the size limits, which only the captured graph has."""
    module: nn.Module
    examples: tuple[Example, ...]
    first_forward: int
    """Number of calls by the first example."""


def frame_source(recorded: RecordedFrame, model: nn.Module, *, name: str) -> SubgraphSource:
    """The module of one recorded graph. Raises NotASubgraphError if it cannot be a subgraph."""
    if recorded.writes:
        raise NotASubgraphError(f"it writes into {recorded.writes}, which code outside of it reads")
    frame = recorded.frame
    if not any(is_tensor_node(node) for node in frame.outputs):
        raise NotASubgraphError("it gives no tensor")
    if any(not is_tensor_node(node) and not _is_size(node) for node in frame.outputs):
        raise NotASubgraphError("it gives something that is neither a tensor nor a size")
    tensors, carried, fixed = _sorted_values(recorded)
    if not tensors:
        raise NotASubgraphError("it takes no tensor: its result is a constant of this one call")
    place = Place(
        name=name,
        kind="frame",
        module=_owner(recorded),
        graph=frame.digest,
        weights=recorded.weights,
        tensors=tuple(tensors),
        carried=tuple(carried),
        fixed=tuple(fixed.items()),
    )
    examples = tuple(Example(args=tuple(place.inputs(call))) for call in recorded.calls.calls)
    module = FrameSubgraph(recorded, place, model)
    return SubgraphSource(place, module, examples, recorded.first_forward)


def _is_size(node: object) -> bool:
    return isinstance(node, fx.Node) or node is None or isinstance(node, int)


def _sorted_values(recorded: RecordedFrame) -> tuple[list[int], list[int], dict[int, Any]]:
    """Positions of the tensors and of the changing numbers that follow from no tensor, and the fixed values."""
    weights = {at for at, _ in recorded.weights}
    tensors, carried, fixed = [], [], {}
    for at, values in enumerate(zip(*recorded.calls.calls, strict=True)):
        if at in weights or _derived(recorded.frame, at):
            continue
        if isinstance(values[0], Tensor):
            tensors.append(at)
        elif all(type(value) is type(values[0]) and value == values[0] for value in values):
            fixed[at] = values[0]
        elif all(type(value) is int and value >= 0 for value in values):
            carried.append(at)
        else:
            raise NotASubgraphError(f"its plain argument {recorded.frame.nodes[at].name} changes from call to call")
    return tensors, carried, fixed


def _derived(frame: Frame, at: int) -> tuple[int, int] | None:
    """Position and dimension of the tensor whose size an integer argument is; None if it is no size."""
    found = frame.symbols.get(symbol_of(frame.nodes[at].meta.get("example_value")))
    return found if found is not None and found[1] >= 0 else None


def _owner(recorded: RecordedFrame) -> str:
    """Path of the module whose code the graph was read from.

    A weight's name consists of that path and the path inside the module, which the graph knows.
    """
    for at, name in recorded.weights:
        for user in recorded.frame.nodes[at].users:
            stack = list((user.meta.get("nn_module_stack") or {}).values())
            inner = name.rpartition(".")[0]
            local = readable_path(str(stack[-1][0])) if stack else ""
            if inner == local or inner.endswith("." + local) or not local:
                return inner.removesuffix(local).rstrip(".")
    return ""


class FrameSubgraph(nn.Module):
    """Plays a graph of the compiler with the weights of the model under their own names.

    Attributes:
        plain: Takes a list of the tensors and runs the graph as fast as the model itself would.
    """

    plain: Callable[[Sequence[Tensor]], list[Tensor]]

    def __init__(self, recorded: RecordedFrame, place: Place, model: nn.Module) -> None:
        super().__init__()
        for _, name in recorded.weights:
            _put(self, name, _weight(model, name))
        frame = recorded.frame
        graph = _own_graph(frame.graph)
        clean_places(graph.graph, prefix=place.module)
        weights, fixed = dict(place.weights), dict(place.fixed)
        order = [*place.tensors, *place.carried]

        def value(at: int, tensors: Sequence[Tensor]) -> Any:
            if at in weights:
                return _weight(self, weights[at])
            if at in fixed:
                return fixed[at]
            if source := _derived(frame, at):
                return _value_at(source[0], tensors).shape[source[1]]
            found = _value_at(at, tensors)
            return found.shape[0] if at in place.carried else found

        def _value_at(at: int, tensors: Sequence[Tensor]) -> Tensor:
            return _weight(self, weights[at]) if at in weights else tensors[order.index(at)]

        def results(run: Callable[..., Any], tensors: Sequence[Tensor]) -> list[Tensor]:
            given = run(*(value(at, tensors) for at in range(len(frame.nodes))))
            return [result for node, result in zip(frame.outputs, given, strict=True) if is_tensor_node(node)]

        def forward(*tensors: Tensor) -> list[Tensor]:
            with preserve_node_meta():
                return results(GraphPlayer(graph, self).run, tensors)

        self.plain = partial(results, frame.graph)
        names = _argument_names([str(frame.nodes[at].name) for at in order])
        forward.__signature__ = _signature(names)  # type: ignore[attr-defined]
        self.forward = forward
        self.eval()


def _own_graph(module: fx.GraphModule) -> fx.GraphModule:
    """A copy of the graph with its own node metadata: the compiler uses one graph for all modules of a class."""
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    return fx.GraphModule(module, graph)


def _weight(module: nn.Module, name: str) -> Tensor:
    path, _, last = name.rpartition(".")
    found: Tensor = getattr(module.get_submodule(path), last)
    return found


def _put(root: nn.Module, name: str, tensor: Tensor) -> None:
    """Register a weight under a dotted name."""
    path, _, last = name.rpartition(".")
    owner = _nested(root, path)
    if isinstance(tensor, nn.Parameter):
        owner.register_parameter(last, tensor)
    else:
        owner.register_buffer(last, tensor)


def _nested(root: nn.Module, path: str) -> nn.Module:
    """The submodule at a dotted path; plain modules are made where there are none."""
    for part in path.split(".") if path else ():
        if part not in root._modules:
            root.add_module(part, nn.Module())
        root = root.get_submodule(part)
    return root


def _argument_names(names: Sequence[str]) -> list[str]:
    """Readable, distinct argument names: ``y`` for ``l_y_``."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"^[lL]_+|_+$", "", name) or name
        plain = re.sub(r"^_*stack(\d+)", r"value_\1", plain)
        plain = plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"value_{len(found)}"
        while plain in found:
            plain += "_"
        found.append(plain)
    return found


def _signature(names: Sequence[str]) -> inspect.Signature:
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])


def module_source(model: nn.Module, path: str, recorded: RecordedCalls, *, name: str, first: int) -> SubgraphSource:
    """A submodule with flat inputs and outputs. Raises NotASubgraphError if its calls differ in more than sizes."""
    calls = recorded.calls
    flat = [pytree.tree_flatten(call) for call in calls]
    leaves, nesting = flat[0]
    if any(spec != nesting for _, spec in flat):
        raise NotASubgraphError("its calls are nested in different ways")
    tensors = tuple(at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor))
    if not tensors:
        raise NotASubgraphError("it is called without a tensor")
    fixed = {at: leaf for at, leaf in enumerate(leaves) if at not in tensors}
    for other, _ in flat[1:]:
        if any(type(other[at]) is not type(leaf) or other[at] != leaf for at, leaf in fixed.items()):
            raise NotASubgraphError("a plain argument of it changes from call to call")
    child = model.get_submodule(path)
    result, constants = _result_of(child, calls[0])
    place = Place(
        name=name,
        kind="module",
        module=path,
        tensors=tensors,
        fixed=tuple(fixed.items()),
        nesting=_described(nesting),
        result=_described(result),
        constants=tuple(constants.items()),
    )
    examples = tuple(Example(args=tuple(place.inputs(other))) for other, _ in flat)
    return SubgraphSource(place, SubmoduleSubgraph(child, place, leaves, nesting), examples, first)


def _result_of(child: nn.Module, call: tuple[Any, Any]) -> tuple[pytree.TreeSpec, dict[int, Any]]:
    args, kwargs = call
    leaves, spec = pytree.tree_flatten(Example(args, kwargs).copied().call(child))
    constants = {at: leaf for at, leaf in enumerate(leaves) if not isinstance(leaf, Tensor)}
    if len(constants) == len(leaves):
        raise NotASubgraphError("it gives no tensor")
    if any(not isinstance(leaf, int | float | str | bool | None) for leaf in constants.values()):
        raise NotASubgraphError("its result holds something that is neither a tensor nor a plain value")
    return spec, constants


def _described(spec: pytree.TreeSpec) -> str:
    try:
        return pytree.treespec_dumps(spec)
    except Exception as error:  # torch and the classes of the user's containers raise anything here
        raise NotASubgraphError("its inputs or results are nested in a type that cannot be written down") from error


class SubmoduleSubgraph(nn.Module):
    """Calls one submodule, under its own path, with the tensors of its flattened call."""

    def __init__(self, child: nn.Module, place: Place, leaves: Sequence[Any], nesting: pytree.TreeSpec) -> None:
        super().__init__()
        path, _, last = place.module.rpartition(".")
        _nested(self, path).add_module(last, child)
        plain = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]

        def forward(*tensors: Tensor) -> list[Tensor]:
            filled = list(plain)
            for at, tensor in zip(place.tensors, tensors, strict=True):
                filled[at] = tensor
            args, kwargs = pytree.tree_unflatten(filled, nesting)
            return [leaf for leaf in pytree.tree_leaves(child(*args, **kwargs)) if isinstance(leaf, Tensor)]

        forward.__signature__ = _signature(_leaf_names(child, place, nesting, leaves))  # type: ignore[attr-defined]
        self.forward = forward
        self.eval()


def _leaf_names(child: nn.Module, place: Place, nesting: pytree.TreeSpec, leaves: Sequence[Any]) -> list[str]:
    """A name for each tensor of the call: its argument's, numbered if the argument holds several."""
    bound: dict[str, Any] = {}
    with contextlib.suppress(Exception):  # no signature, or a container that asks for tensors when it is made
        marked = pytree.tree_unflatten(list(range(len(leaves))), nesting)
        bound = inspect.signature(child.forward).bind(*marked[0], **marked[1]).arguments
    owners = {at: argument for argument, value in bound.items() for at in pytree.tree_leaves(value)}
    return _argument_names([owners.get(at, f"value_{at}") for at in place.tensors])
