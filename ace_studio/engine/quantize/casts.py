"""Half precision per op: casts around the ops that the plan names, so that neighbouring casts cancel.

An op that is lowered reads 16-bit tensors and gives a 16-bit tensor; its weights are stored in 16 bits. Everything
else, and every output of the graph, keeps its type. Shapes, dynamic ones too, are not touched.
"""

import operator
from collections.abc import Mapping

import torch
from torch import Tensor, fx

from ace_studio.engine.ops import families
from ace_studio.engine.quantize.flat_graph import OP_ID, add_constant, constant_of, tidy
from ace_studio.records.ops import is_weighted
from ace_studio.records.recipes.plan import Precision

HALF_DTYPES: dict[Precision, torch.dtype] = {Precision.BF16: torch.bfloat16, Precision.FP16: torch.float16}
"""The 16-bit precisions and their element types."""

_CAST = torch.ops.aten.to.dtype

_POINTWISE_OPS = families.aten_ops(
    "add.Tensor add_.Tensor add.Scalar sub.Tensor sub.Scalar mul.Tensor mul_.Tensor mul.Scalar div.Tensor"
    " div.Scalar neg.default abs.default maximum.default minimum.default elu.default elu_.default gelu.default"
    " silu.default silu_.default mish.default hardswish.default hardswish_.default hardsigmoid.default sigmoid.default"
    " tanh.default prelu.default"
)
_POOLS = families.MAX_POOLS | families.AVERAGE_POOLS | families.ADAPTIVE_POOLS
_CASTABLE_OPS = families.LAYOUT_OPS | families.CLAMPS | families.LEAKY_RELUS | _POOLS | _POINTWISE_OPS
"""Ops besides the weighted ones that a cast in front and behind leaves meaningful: element by element, or no arithmetic
at all. Reductions, norms, softmax, exponentials and powers are left out: they lose range or sums."""


def cast_problem(op: str) -> str:
    """Empty if the operator may run in 16 bits, else why it stays in fp32."""
    if is_weighted(op) or op in _CASTABLE_OPS or "getitem" in op:
        return ""
    return f"{op} sums up or spans a wide range, so it is kept in fp32; its neighbours' casts are fused into it"


def insert_casts(graph_module: fx.GraphModule, plan: Mapping[str, Precision]) -> dict[str, str]:
    """Run the ops that ``plan`` puts at bf16 or fp16 in that type; the graph is changed in place.

    Args:
        graph_module: A `flat_graph`; its nodes carry example values.
        plan: Op id -> precision; other precisions are ignored.

    Returns: Op id -> why an op that the plan names keeps its type.
    """
    refused: dict[str, str] = {}
    caster = _Caster(graph_module)
    for node in list(graph_module.graph.nodes):
        op_id = node.meta.get(OP_ID, "")
        dtype = HALF_DTYPES.get(plan.get(op_id, Precision.FP32))
        if dtype is None or node.target is operator.getitem:
            continue
        if problem := _node_problem(node):
            refused[op_id] = problem
        else:
            caster.lower(node, dtype)
    tidy(graph_module)
    return refused


def _node_problem(node: fx.Node) -> str:
    if problem := cast_problem(str(node.target)):
        return problem
    floats = [value for value in _values(node) if isinstance(value, Tensor) and value.is_floating_point()]
    if not floats:
        return "it computes no floating-point tensor"
    if any(value.dtype is not torch.float32 for value in floats):
        return f"it computes in {floats[0].dtype}, not in float32".replace("torch.", "")
    return ""


def _values(node: fx.Node) -> list[object]:
    value = node.meta.get("val")
    return list(value) if isinstance(value, tuple | list) else [value]


class _Caster:
    """Lowers one node after the other, in graph order, and remembers the casts that it can share."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        self._graph_module = graph_module
        self._graph = graph_module.graph
        self._casts: dict[tuple[fx.Node, torch.dtype], fx.Node] = {}

    def lower(self, node: fx.Node, dtype: torch.dtype) -> None:
        """Make ``node`` compute in ``dtype`` between casts."""
        change = lambda argument: self._cast_down(argument, dtype)  # noqa: E731 - map_arg takes a function
        node.args, node.kwargs = fx.map_arg(node.args, change), fx.map_arg(node.kwargs, change)
        if isinstance(node.meta.get("val"), tuple | list):
            for user in list(node.users):
                self._give_back(user, dtype)
        else:
            self._give_back(node, dtype)

    def _give_back(self, node: fx.Node, dtype: torch.dtype) -> None:
        """Let the readers of ``node`` see float32 again; a reader that is lowered later undoes it."""
        value = node.meta["val"]
        if not isinstance(value, Tensor) or value.dtype is not torch.float32:
            return
        with self._graph.inserting_after(node):
            wide = self._graph.call_function(_CAST, (node, torch.float32))
        node.replace_all_uses_with(wide, delete_user_cb=lambda user: user is not wide)
        wide.meta["val"] = value
        node.meta["val"] = value.to(dtype)
        self._casts[wide, dtype] = node

    def _cast_down(self, node: fx.Node, dtype: torch.dtype) -> fx.Node:
        stored = constant_of(self._graph_module, node)
        value = node.meta.get("val") if stored is None else stored
        if not isinstance(value, Tensor) or value.dtype is not torch.float32:
            return node
        key = (node, dtype)
        if key not in self._casts:
            self._casts[key] = self._make_cast(node, stored, dtype)
        return self._casts[key]

    def _make_cast(self, node: fx.Node, stored: Tensor | None, dtype: torch.dtype) -> fx.Node:
        suffix = str(dtype).removeprefix("torch.")
        if stored is not None:
            return add_constant(self._graph_module, f"{node.target}_{suffix}", stored.to(dtype), before=node.next)
        with self._graph.inserting_after(node):
            cast = self._graph.call_function(_CAST, (node, dtype))
        cast.meta["val"] = node.meta["val"].to(dtype)
        return cast
