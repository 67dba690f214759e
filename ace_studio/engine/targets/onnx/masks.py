"""What the rewritings of attention share: its arguments, its masks in the exported ONNX model, and edits of the model.

The exporter writes every ``scaled_dot_product_attention`` as about twenty nodes; `bias_of` finds the mask among them.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import fx

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.targets.onnx.names import dtype_of, shape_texts
from ace_studio.engine.targets.onnx.program import OnnxProgram

ATTENTION_OPS = torch.ops.aten.scaled_dot_product_attention.default
_Site = TypeVar("_Site")
_LOWEST_OF_BOOL = -3e38
"""Just above the lowest finite number, which the exporter adds where a boolean mask is false."""


@dataclass(frozen=True)
class Bias:
    """What the exporter adds to the scores: numbers [B or 1, N or 1, S or 1, T]; leading dimensions may be missing."""

    name: str
    rank: int
    is_row: bool
    """Whether it is one row for all queries."""
    lowest: float
    """A key whose added number is not above this is masked."""
    has_keys: bool
    """Whether every query is known to have a key that is not masked."""


def attention_arguments(node: fx.Node) -> dict[str, Any]:
    """The arguments of a ``scaled_dot_product_attention`` by name."""
    order = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    return {**dict(zip(order, node.args, strict=False)), **node.kwargs}


def rewritten(
    program: OnnxProgram,
    sites: Sequence[_Site],
    put: Callable[[Any, _Site, dict[str, tuple[str, ...]]], None],
    *,
    domain: str = "",
) -> OnnxProgram:
    """A copy of the program with every site rewritten; the same program if there is none.

    Args:
        program: The fp32 model; it is not changed.
        sites: The attentions to rewrite.
        put: Writes the nodes for one site into a graph, and their ops into the owners.
        domain: Of the operators that it writes; empty for ONNX's own.
    """
    if not sites:
        return program
    model = copy.deepcopy(program.model)
    owners = dict(program.owners)
    for site in sites:
        put(model.graph, site, owners)
    drop_unread(model.graph)
    if domain:
        add_domain(model, domain)
    names = {node.name for node in model.graph.node}
    return replace(program, model=model, owners={name: ids for name, ids in owners.items() if name in names})


def add_domain(model: Any, domain: str) -> None:
    """Declare, in place, that the model has operators of a domain beside ONNX's own."""
    if not any(opset.domain == domain for opset in model.opset_import):
        opset = model.opset_import.add()
        opset.domain, opset.version = domain, 1


def guarded(program: OnnxProgram, captured: CapturedModel) -> OnnxProgram:
    """The program in which an attention gives zeros for a query without any key, as torch does.

    The exporter writes the lowest finite number for a key that is not allowed, so such a query got the mean of all
    values; with minus infinity in a mask of numbers it got NaN. The same program is returned if no attention needs it.
    """
    attentions = [node for node in captured.program.graph.nodes if node.target is ATTENTION_OPS]
    found = [
        (node.name, bias_of(node.name, attention_arguments(node).get("attn_mask"), program)[0]) for node in attentions
    ]
    sites = [(op_id, bias) for op_id, bias in found if bias is not None and not bias.has_keys]
    return rewritten(program, sites, _put_guard)


def _put_guard(graph: Any, site: tuple[str, Bias], owners: dict[str, tuple[str, ...]]) -> None:
    """Write the guard behind each product of weights and values."""
    op_id, bias = site
    weights = _softmax_of(op_id, graph, owners).output[0]
    # The exporter's own guard (IsNaN, then Where) never meets a NaN: the product reads past it, and it is dropped.
    given = [weights, *(node.output[0] for node in graph.node if node.op_type == "Where" and weights in node.input)]
    for product in [node for node in graph.node if node.op_type == "MatMul" and node.input[0] in given]:
        nodes, has_key = key_nodes(graph, bias)
        result, product.input[0] = product.output[0], weights
        product.output[0] = f"{result}.product"
        zero = constant(graph, "attention_zero", 0.0)
        nodes.append(small_node("Where", [f"{has_key}.some", product.output[0], zero], result))
        owners.update({node.name: (op_id,) for node in nodes})
        put_behind(graph, product, nodes)


def key_nodes(graph: Any, bias: Bias) -> tuple[list[Any], str]:
    """The nodes that the graph lacks to know which queries have a key, and the result's name.

    It is 1 or 0 [B or 1, N or 1, S or 1, 1], and with ``.some`` behind the name true or false. Layers that share a mask
    share the nodes. Numbers are compared before they are reduced: OpenVINO's ReduceMax of minus infinity is finite.
    """
    has_key = f"{bias.name}.has_key"
    lowest, axis = constant(graph, f"attention_lowest_{bias.lowest:g}", bias.lowest), constant(graph, "last_axis", [-1])
    nodes = [
        small_node("Greater", [bias.name, lowest], f"{has_key}.here"),
        small_node("Cast", [f"{has_key}.here"], f"{has_key}.counted", to=1),
        small_node("ReduceMax", [f"{has_key}.counted", axis], has_key, keepdims=1),
        small_node("Cast", [has_key], f"{has_key}.some", to=9),
    ]
    made = {value for node in graph.node for value in node.output}
    return [node for node in nodes if node.output[0] not in made], has_key


def put_behind(graph: Any, node: Any, nodes: Sequence[Any]) -> None:
    """Insert nodes behind one that is in the graph."""
    place = list(graph.node).index(node) + 1
    for new in reversed(nodes):
        graph.node.insert(place, new)


def is_mask(mask: Any, query: Sequence[str], keys: str, *, heads: Sequence[str] = ("1",)) -> bool:
    """Whether a mask is one over all keys, for queries [B, N, S, H], with one of these numbers of heads."""
    shape = shape_texts(mask)
    if dtype_of(mask) not in {torch.bool, torch.float32} or not 2 <= len(shape) <= 4:
        return False
    batch, own_heads, queries, width = ["1"] * (4 - len(shape)) + shape
    return batch in {"1", query[0]} and own_heads in heads and queries in {"1", query[2]} and width == keys


def bias_of(op_id: str, mask: fx.Node | None, program: OnnxProgram) -> tuple[Bias | None, bool]:
    """What is added to the scores of an attention (None: nothing), and whether it was found."""
    if mask is None:
        return None, True
    graph = program.model.graph
    maker = {value: node for node in graph.node for value in node.output}
    softmax = _softmax_of(op_id, graph, program.owners)
    added = None if softmax is None else maker.get(softmax.input[0])
    scores = maker.get(added.input[0]) if added is not None and added.op_type == "Add" else None
    if added is None or scores is None or scores.op_type != "MatMul":
        return None, False
    name, is_row, has_keys = str(added.input[1]), shape_texts(mask)[-2] == "1", False
    rank, lowest = len(shape_texts(mask)), _LOWEST_OF_BOOL if dtype_of(mask) is torch.bool else -math.inf
    constant = next((tensor for tensor in graph.initializer if tensor.name == name), None)
    if constant is not None:
        from onnx import numpy_helper

        values = numpy_helper.to_array(constant)
        if not values.any():
            return None, True  # it masks nothing
        rank, is_row, has_keys = values.ndim, values.shape[-2:-1] == (1,), bool((values > lowest).any(-1).all())
    return Bias(name, rank, is_row, lowest, has_keys), True


def _softmax_of(op_id: str, graph: Any, owners: Mapping[str, tuple[str, ...]]) -> Any:
    """The one softmax of an op; None if it has none or several."""
    found = [node for node in graph.node if node.op_type == "Softmax" and op_id in owners.get(node.name, ())]
    return found[0] if len(found) == 1 else None


def small_node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    """A node that is named after its only result."""
    from onnx import helper

    return helper.make_node(kind, list(inputs), [output], name=f"{output}.node", **attributes)


def constant(graph: Any, name: str, value: float | Sequence[int]) -> str:
    """Name of a constant of the graph, made if it is not there."""
    from onnx import numpy_helper

    if all(tensor.name != name for tensor in graph.initializer):
        array = np.asarray(value, np.float32 if isinstance(value, float) else np.int64)
        graph.initializer.append(numpy_helper.from_array(array, name))
    return name


def _values_read(node: Any) -> Iterator[str]:
    """The values that a node reads, also inside the graphs that it holds (the branches of an ``If``)."""
    yield from node.input
    for inner in (graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs)):
        yield from (output.name for output in inner.output)
        for one in inner.node:
            yield from _values_read(one)


def drop_unread(graph: Any) -> None:
    """Remove, in place, the nodes and constants that no result depends on."""
    wanted = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(_values_read(node))
    constants = [tensor for tensor in graph.initializer if tensor.name in wanted]
    infos = [info for info in graph.value_info if info.name in wanted]
    for field, entries in (("node", reversed(kept)), ("initializer", constants), ("value_info", infos)):
        graph.ClearField(field)
        getattr(graph, field).extend(entries)
