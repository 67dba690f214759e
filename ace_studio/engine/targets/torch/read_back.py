"""Maps the executed nodes of a torch graph to kernels with the ops of the captured graph."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

import torch
from torch import Tensor, fx

from ace_studio.engine.ops.families import LAYOUT_OPS
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.targets.shared.kernels import FLOAT_WORDS, Kernel
from ace_studio.engine.torch_private.inductor import CompiledNode
from ace_studio.engine.torch_private.operators import result_dtype
from ace_studio.records.recipes.plan import Precision

_INT8_KERNELS = ("qconv", "qlinear", "_int_mm", "qmaxpool2d", "quantized.max_pool2d")
_BINARY = "qconv2d_pointwise.binary"
"""The kernel that also computes an addition behind its product, and the activation behind that."""
_PACKED_KERNELS = {
    "_weight_int8pack_mm": Precision.INT8_WEIGHT,
    "_weight_int4pack_mm": Precision.INT4_WEIGHT,
    "_scaled_mm": Precision.FP8,
}
_FLOAT_ARITHMETIC = (
    "convolution", "aten.conv", "linear", "addmm", "aten.mm", "bmm", "matmul", "einsum", "attention", "lstm", "gru",
    "rnn_tanh", "rnn_relu",
)  # fmt: skip
"""Parts of names, because Inductor also calls kernels of libraries that are no operators of torch."""
_ARITHMETIC = (*_INT8_KERNELS, *_PACKED_KERNELS, *_FLOAT_ARITHMETIC)
_CONVERSIONS = ("aten.to.dtype", "convert_element_type", "quantize_per", "_to_copy", "inductor_force_stride")
_SIZES = ("sym_size", "sym_numel", "built-in function")


def executed_nodes(graph_module: fx.GraphModule, example: Sequence[Tensor]) -> list[CompiledNode]:
    """Every op node of the graph with the element type that it really gives, found by running the example."""
    recorder = _Recorder(graph_module)
    with torch.no_grad():
        recorder.run(*[leaf.clone() for leaf in example])  # the graph may write into its inputs
    return recorder.nodes


class _Recorder(fx.Interpreter):
    """Runs a graph and notes what each node gives."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__(graph_module)
        self.nodes: list[CompiledNode] = []

    def run_node(self, n: fx.Node) -> object:
        """Run one node; the name of the argument is the base class's."""
        result: object = super().run_node(n)
        if n.op == "call_function":
            self.nodes.append(CompiledNode(str(n.target), (n.name,), result_dtype(result)))
        return result


def kernels_of(
    nodes: Sequence[CompiledNode],
    graph_module: fx.GraphModule,
    planned: Mapping[str, Precision],
    *,
    heavy: frozenset[str],
) -> list[Kernel]:
    """The kernels behind the nodes, each with the ops that it does.

    A fused kernel has the name of its last op. So a weighted op without a node of its own is assigned to the arithmetic
    kernel behind it, any other op to the kernel in front of it: that is how torch's compiler fuses on a CPU. An op that
    only changes the layout may be gone.

    Args:
        nodes: What runs.
        graph_module: The rewritten graph that was compiled; `CompiledNode.origins` are names of its nodes.
        planned: Op id -> planned precision, to tell static from dynamic int8.
        heavy: Ids of the weighted ops; only an arithmetic kernel gives their precision.
    """
    by_name = {node.name: node for node in graph_module.graph.nodes}
    groups = _Groups(heavy)
    for node in nodes:
        if any(word in node.target for word in _SIZES):
            continue
        origins = [by_name[name] for name in node.origins if name in by_name]
        ids = [origin.meta[OP_ID] for origin in origins if OP_ID in origin.meta]
        if not ids and origins and _is_arithmetic(node):
            ids = _op_above(origins[0])
        if ids:
            groups.add(node, ids)
    _adopt_merged(groups, graph_module)
    return [
        _kernel(f"{node.target}_{index}", node, tuple(dict.fromkeys(ids)), planned)
        for index, (node, ids) in enumerate(groups.members)
    ]


class _Groups:
    """The executed nodes with their ops; ``home`` is the index of the node that computes an op."""

    def __init__(self, heavy: frozenset[str]) -> None:
        self.heavy = heavy
        self.members: list[tuple[CompiledNode, list[str]]] = []
        self.home: dict[str, int] = {}

    def add(self, node: CompiledNode, ids: list[str]) -> None:
        """Note a node and its ops; an op's home is its arithmetic node if it has one."""
        for op_id in ids:
            if _is_arithmetic(node) or (op_id not in self.home and op_id not in self.heavy):
                self.home[op_id] = len(self.members)
        self.members.append((node, list(ids)))

    def join(self, op_id: str, index: int, *, is_main: bool) -> None:
        """Add an op to a node that runs; the main one gives it its name."""
        ids = self.members[index][1]
        ids.insert(0 if is_main else len(ids), op_id)
        self.home[op_id] = index


def _is_arithmetic(node: CompiledNode) -> bool:
    return any(word in node.target for word in _ARITHMETIC)


def _kernel(name: str, node: CompiledNode, ids: tuple[str, ...], planned: Mapping[str, Precision]) -> Kernel:
    return Kernel(
        name=name,
        kind=node.target,
        precision=_precision(node, planned.get(ids[0], Precision.FP32)),
        op_ids=ids,
        is_arithmetic=_is_arithmetic(node),
        # Index arithmetic has no precision, so it must not decide the precision of its op.
        is_conversion=(node.dtype not in FLOAT_WORDS and not _is_arithmetic(node))
        or any(word in node.target for word in _CONVERSIONS),
    )


def _precision(node: CompiledNode, planned: Precision) -> str:
    if any(word in node.target for word in _INT8_KERNELS):
        is_named = planned in {Precision.INT8_DYNAMIC, Precision.INT8_STATIC}
        return str(planned if is_named else Precision.INT8_STATIC)
    for word, precision in _PACKED_KERNELS.items():
        if word in node.target:
            return str(precision)
    if node.dtype in FLOAT_WORDS:
        return str(FLOAT_WORDS[node.dtype])
    if node.dtype is torch.int8 and (planned is Precision.INT8_WEIGHT or "embedding" in node.target):
        return str(Precision.INT8_WEIGHT)  # a row of a packed table
    if node.dtype in {torch.int8, torch.uint8} and planned is not Precision.INT8_DYNAMIC:
        return str(Precision.INT8_STATIC)  # it hands int8 values on
    return "unknown"


def _adopt_merged(groups: _Groups, graph_module: fx.GraphModule) -> None:
    """Assign every computing op without a node to a node."""
    for node in graph_module.graph.nodes:
        op_id = node.meta.get(OP_ID)
        if op_id is None or op_id in groups.home or str(node.target) in LAYOUT_OPS:
            continue
        is_weighted = op_id in groups.heavy
        below = _home_below(node, groups)
        if below is not None and not is_weighted and _BINARY not in groups.members[below][0].target:
            below = None
        index = below if below is not None else _home_above(node, groups)
        if index is not None:
            groups.join(op_id, index, is_main=is_weighted)


def _home_below(node: fx.Node, groups: _Groups) -> int | None:
    """Index of the node that computes the next op after ``node``, if that is an arithmetic kernel."""
    current = node
    while len(current.users) == 1:
        current = next(iter(current.users))
        index = groups.home.get(current.meta.get(OP_ID, ""))
        if index is not None:
            return index if _is_arithmetic(groups.members[index][0]) else None
    return None


def _home_above(node: fx.Node, groups: _Groups) -> int | None:
    """Index of the node that computes the first input, looking through casts and layout ops."""
    ids = (one.meta.get(OP_ID, "") for one in _above(node))
    return next((groups.home[op_id] for op_id in ids if op_id in groups.home), None)


def _op_above(node: fx.Node) -> list[str]:
    """The op whose result ``node`` converts."""
    found = (one.meta[OP_ID] for one in chain([node], _above(node)) if OP_ID in one.meta)
    return list(islice(found, 1))


def _above(node: fx.Node) -> Iterator[fx.Node]:
    """The op that makes the first computed input of a node, the one that makes its first input, and so on."""
    while inputs := [one for one in node.all_input_nodes if one.op == "call_function"]:
        node = inputs[0]
        yield node
