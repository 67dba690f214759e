"""The captured program as a flat graph: tensors in, a tuple of tensors out, nodes that name their op.

All passes that rewrite a graph work on this form. Weights are ``get_attr`` nodes, so that a pass can replace one.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.graph import CodeGen
from torch.utils import _pytree as pytree

from ace_studio.engine.torch_private.functional import first_state, without_shared_writes
from ace_studio.engine.torch_private.operators import Operator, call_symbolically

OP_ID = "ace_op_id"
"""Key of ``node.meta``: the op of the captured graph that this node computes."""


def flat_graph(program: torch.export.ExportedProgram) -> fx.GraphModule:
    """A copy of the captured graph over flat tensors, sharing the weights' memory with it, but not buffers it changes.

    Placeholders are the tensor inputs in order (inputs that are plain values are constants of the graph and are left
    out); the output is a tuple of the tensor outputs. ``node.meta[OP_ID]`` is the row of the graph table. Writes in
    place that other values see are functional ops.
    """
    program, ids = without_shared_writes(program)
    unlifted = program.module(check_guards=False)
    assert isinstance(unlifted, fx.GraphModule)
    graph_module = fx.GraphModule(unlifted, unlifted.graph)  # without the hook that checks how arguments are nested
    originals = [node for node in program.graph.nodes if node.op == "call_function"]
    copies = [node for node in graph_module.graph.nodes if node.op == "call_function"]
    # Unlifting keeps the order of the ops; what it adds (writing back buffers) comes after them.
    for original, copy in zip(originals, copies, strict=False):
        if original.target is copy.target and original.name in ids:
            copy.meta[OP_ID] = ids[original.name]
    _flatten_ends(graph_module)
    for name, value in first_state(program).items():
        owner, _, leaf = name.rpartition(".")
        setattr(graph_module.get_submodule(owner), leaf, value.detach().clone())
    _give_weights_values(graph_module)
    return graph_module


def put_state_back(graph_module: fx.GraphModule, program: torch.export.ExportedProgram) -> None:
    """Give the buffers that calls of the graph changed the values of the program that it was made from, in place."""
    held = dict(graph_module.named_buffers(remove_duplicate=False))
    for name, value in first_state(program).items():
        if name in held:  # no pass has replaced it
            held[name].copy_(value)


def _give_weights_values(graph_module: fx.GraphModule) -> None:
    """Give every ``get_attr`` node an example value, as ops have; passes compute the values of new nodes from them."""
    fake = fake_mode_of(graph_module)
    for node in graph_module.graph.find_nodes(op="get_attr"):
        stored = _attribute_or_none(graph_module, str(node.target))
        if stored is not None and fake is not None:
            node.meta["val"] = fake.from_tensor(stored.detach(), static_shapes=True)


def _attribute_or_none(graph_module: fx.GraphModule, target: str) -> Tensor | None:
    owner, _, name = target.rpartition(".")
    value = getattr(graph_module.get_submodule(owner), name)
    return value if isinstance(value, Tensor) else None


def _flatten_ends(graph_module: fx.GraphModule) -> None:
    graph = graph_module.graph
    for node in list(graph.find_nodes(op="placeholder")):
        if not isinstance(node.meta.get("val"), Tensor) and not node.users:
            graph.erase_node(node)
    output = graph.output_node()
    leaves = pytree.tree_leaves(output.args[0])
    output.args = (tuple(leaf for leaf in leaves if isinstance(leaf, fx.Node)),)
    graph.set_codegen(CodeGen())
    graph_module.recompile()


def op_ids(graph_module: fx.GraphModule) -> dict[str, str]:
    """Node name -> op of the captured graph, for the nodes that have one."""
    return {node.name: node.meta[OP_ID] for node in graph_module.graph.nodes if OP_ID in node.meta}


def constant_of(graph_module: fx.GraphModule, node: object) -> Tensor | None:
    """The stored tensor behind an argument, or None if it is computed or no tensor."""
    if isinstance(node, fx.Node) and node.op == "get_attr":
        stored = _attribute_or_none(graph_module, str(node.target))
        return None if stored is None else stored.detach()
    return None


def add_constant(graph_module: fx.GraphModule, name: str, value: Tensor, *, before: fx.Node) -> fx.Node:
    """Store a tensor as a buffer under a free name and read it in front of ``before``."""
    wanted = name.replace(".", "_")
    free, count = wanted, 0
    while hasattr(graph_module, free):
        count += 1
        free = f"{wanted}_{count}"
    graph_module.register_buffer(free, value.detach())
    with graph_module.graph.inserting_before(before):
        node = graph_module.graph.get_attr(free)
    fake = fake_mode_of(graph_module)
    node.meta["val"] = fake.from_tensor(value.detach(), static_shapes=True) if fake is not None else value
    return node


def call_before(node: fx.Node, target: Operator, *arguments: Any) -> fx.Node:
    """A call in front of ``node``, with its example value."""
    with node.graph.inserting_before(node):
        made = node.graph.call_function(target, arguments)
    made.meta["val"] = call_symbolically(target, *fx.map_arg(arguments, lambda one: one.meta["val"]))
    return made


def fake_mode_of(graph_module: fx.GraphModule) -> Any:
    """The fake mode that the captured graph's example values live in; None if they are real."""
    modes = (getattr(node.meta.get("val"), "fake_mode", None) for node in graph_module.graph.nodes)
    return next((mode for mode in modes if mode is not None), None)


def tidy(graph_module: fx.GraphModule) -> None:
    """Drop nodes nobody reads and weights that no node and no called module reads, then recompile."""
    graph_module.graph.eliminate_dead_code()
    called = tuple(f"{node.target}." for node in graph_module.graph.find_nodes(op="call_module"))
    used = {str(node.target) for node in graph_module.graph.nodes if node.op == "get_attr"}
    for name in _stored_names(graph_module):
        if name not in used and not name.startswith(called):
            owner, _, leaf = name.rpartition(".")
            delattr(graph_module.get_submodule(owner), leaf)
    graph_module.recompile()


def _stored_names(module: nn.Module) -> Iterable[str]:
    parameters = [name for name, _ in module.named_parameters(remove_duplicate=False)]
    buffers = [name for name, _ in module.named_buffers(remove_duplicate=False)]
    return [*parameters, *buffers]
