"""Writes out weights that a graph computes from stored tensors alone at every call.

``F.linear(x, weight * scale)``, a masked or standardized weight, a low-rank update: in inference they are constants.
Left computed, they cost time at every call, and no target takes them for weights: they get no scale per channel, and
are not stored in fewer bits. `load.weights` does the same for parametrizations, which a module declares.
"""

import operator
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

from ace_studio.engine.ops.roles import op_role
from ace_studio.engine.torch_private.functional import written_buffers
from ace_studio.engine.torch_private.operators import gives_view, is_operator, is_random, writes_in_place

_SUFFIX = "_computed"
_Group = dict[fx.Node, None]
"""Nodes in the order of the graph."""
_STORED = frozenset({InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR})


def is_computed_weight(name: str) -> bool:
    """Whether a program's tensor of this name was written by `write_out_computed_weights`."""
    return name.endswith(_SUFFIX)


def write_out_computed_weights(program: ExportedProgram) -> list[str]:
    """Replace, in place, what is computed of stored tensors alone and read as a weight by its value.

    Only where that stores no more bytes than before, and where more is computed than another view of a tensor.

    Returns: Names of the new parameters (``layer.weight_computed``).
    """
    stored = _stored(program)
    written: list[str] = []
    for group in _groups(program.graph, stored):
        first = _first_of_equal(group)
        results = {node: first[node] for node in group if node not in stored and node.users.keys() - group.keys()}
        if _is_worthwhile(group, results, stored):
            written += _write_out(program, group, results, stored)
    if written:
        program.graph.lint()
        program.graph_module.recompile()
    return written


def _stored(program: ExportedProgram) -> dict[fx.Node, InputSpec]:
    """The placeholders of stored tensors that no call changes."""
    signature = program.graph_signature
    changed = written_buffers(program)
    specs = {
        spec.arg.name: spec for spec in signature.input_specs
        if spec.kind in _STORED and spec.target not in changed and isinstance(_value_of(program, spec), Tensor)
    }  # fmt: skip
    return {node: specs[node.name] for node in program.graph.find_nodes(op="placeholder") if node.name in specs}


def _value_of(program: ExportedProgram, spec: InputSpec) -> Any:
    name = str(spec.target)
    return program.state_dict[name] if name in program.state_dict else program.constants.get(name)


def _groups(graph: fx.Graph, stored: Collection[fx.Node]) -> list[_Group]:
    """Calls that read nothing but stored tensors and each other, with these tensors; no two groups share a node."""
    parent: dict[fx.Node, fx.Node] = {}

    def root(node: fx.Node) -> fx.Node:
        while parent[node] is not node:
            parent[node] = node = parent[parent[node]]
        return node

    for node in graph.nodes:
        if _is_pure(node) and all(one in stored or one in parent for one in node.all_input_nodes):
            parent[node] = node
            for one in node.all_input_nodes:
                parent.setdefault(one, one)
                parent[root(one)] = node
    groups: dict[fx.Node, _Group] = {}
    for node in graph.nodes:
        if node in parent:
            groups.setdefault(root(node), {})[node] = None
    changed = set(_written_nodes(graph))
    return [group for group in groups.values() if changed.isdisjoint(group)]


def _is_pure(node: fx.Node) -> bool:
    """Whether a call gives the same at every call, and changes nothing."""
    if node.op != "call_function" or node.target is operator.getitem:
        return node.op == "call_function"
    is_known = is_operator(node.target) and not is_random(node.target) and not writes_in_place(node.target)
    return is_known and not str(node.target).startswith("aten.empty")


def _written_nodes(graph: fx.Graph) -> Iterator[fx.Node]:
    """What a call writes into, with all that it may be a view of."""
    for node in graph.nodes:
        if node.op != "call_function" or not writes_in_place(node.target):
            continue
        place: Any = node
        while isinstance(place, fx.Node) and place.args:
            place = place.args[0]
            if isinstance(place, fx.Node):
                yield place


def _first_of_equal(group: _Group) -> dict[fx.Node, fx.Node]:
    """Node -> the first that computes the same: forward may call a layer several times."""
    seen: dict[str, fx.Node] = {}
    first: dict[fx.Node, fx.Node] = {}
    for node in group:
        words = fx.map_arg((node.args, dict(node.kwargs)), first.__getitem__)
        first[node] = node if node.op == "placeholder" else seen.setdefault(f"{node.target} {words}", node)
    return first


def _is_worthwhile(group: _Group, results: Mapping[fx.Node, fx.Node], stored: Collection[fx.Node]) -> bool:
    readers = [(user, result) for result in results for user in result.users if user not in group]
    if not any(_reads_as_weight(user, result) for user, result in readers):
        return False
    computes = any(is_operator(node.target) and not gives_view(node.target) for node in group if node not in stored)
    if not computes or not all(user.op == "call_function" for user, _ in readers):
        return False
    freed = sum(_bytes(node) for node in group if node in stored and not node.users.keys() - group.keys())
    return sum(map(_bytes, set(results.values()))) <= freed


def _reads_as_weight(user: fx.Node, node: fx.Node) -> bool:
    role = op_role(str(user.target))
    return role is not None and len(user.args) > role.weight and user.args[role.weight] is node


def _bytes(node: fx.Node) -> float:
    value = node.meta.get("val")
    return value.numel() * value.itemsize if isinstance(value, Tensor) else float("inf")


def _write_out(
    program: ExportedProgram,
    group: _Group,
    results: Mapping[fx.Node, fx.Node],
    stored: dict[fx.Node, InputSpec],
) -> list[str]:
    """Compute a group, give its results to their readers as parameters, and remove it. Returns: Their names."""
    values: dict[fx.Node, Any] = {}
    with torch.no_grad():
        for node in group:
            if node in stored:
                values[node] = _value_of(program, stored[node]).detach()
            else:
                args, kwargs = fx.map_arg((node.args, dict(node.kwargs)), values.__getitem__)
                values[node] = node.target(*args, **kwargs)  # type: ignore[operator]
    base = max((node for node in group if node in stored), key=_bytes)
    names: list[str] = []
    made: dict[fx.Node, fx.Node] = {}
    for result, first in results.items():
        if first not in made:
            names.append(_free_name(program, str(stored[base].target)))
            made[first] = _add_parameter(program, names[-1], values[first])
            made[first].meta["val"] = first.meta["val"]
        result.replace_all_uses_with(made[first], delete_user_cb=lambda user: user not in group)
    for node in reversed(group):
        if not node.users:
            program.graph.erase_node(node)
            if node in stored:
                _forget(program, stored.pop(node))
    return names


def _free_name(program: ExportedProgram, base: str) -> str:
    name, count = f"{base}{_SUFFIX}", 1
    while name in program.state_dict:
        count += 1
        name = f"{base}_{count}{_SUFFIX}"
    return name


def _add_parameter(program: ExportedProgram, name: str, value: Tensor) -> fx.Node:
    """A new first placeholder, and the parameter that it stands for."""
    with program.graph.inserting_before(next(iter(program.graph.nodes))):
        placeholder: fx.Node = program.graph.placeholder(f"p_{name.replace('.', '_')}")
    spec = InputSpec(kind=InputKind.PARAMETER, arg=TensorArgument(name=placeholder.name), target=name)
    program.graph_signature.input_specs.insert(0, spec)
    program.state_dict[name] = nn.Parameter(value, requires_grad=False)
    return placeholder


def _forget(program: ExportedProgram, spec: InputSpec) -> None:
    """Remove the placeholder's entry, and its tensor if no other one stands for it."""
    specs = program.graph_signature.input_specs
    specs.remove(spec)
    if all(one.target != spec.target for one in specs):
        program.state_dict.pop(str(spec.target), None)
        program.constants.pop(str(spec.target), None)
