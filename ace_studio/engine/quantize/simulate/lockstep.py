"""All examples side by side, op by op: what is learned about an op is in what the next one reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx
from torch.utils import _pytree as pytree

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.quantize.simulate.arithmetic import How, OpArithmetic, copied
from ace_studio.engine.quantize.simulate.runs import PlannedOps
from ace_studio.engine.torch_private.operators import is_operator
from ace_studio.records.recipes.plan import Precision, Scheme

LIVE_BYTES = 1 << 30
"""Values that later ops still read are kept up to about this size; more examples are left out."""


@dataclass
class Step:
    """One op with a single float result, of all examples; lists have an entry per example."""

    node: fx.Node
    how: How
    wide: list[Tensor]
    """Float results."""
    read: Callable[[], list[tuple[Any, ...]]]
    """Gives what the op, a product, computes with under the plan: rounded arguments."""
    run: Callable[[], list[Tensor]]
    """Gives its results under the plan, before they are rounded for readers."""

    @property
    def op_id(self) -> str:
        """Row of the graph table."""
        return str(self.node.meta.get(OP_ID, ""))


Correct = Callable[[Step], list[Tensor]]
"""Gives the results of an op that later ops read."""


class LockstepRun(fx.Interpreter):
    """Runs the graph once, in float and under a plan, with all examples at every op before the next op."""

    def __init__(
        self, arithmetic: OpArithmetic, plan: BoundPlan, correct: Correct, *, reference: fx.GraphModule
    ) -> None:
        super().__init__(arithmetic.graph_module)
        self._reference = {node.name: node for node in reference.graph.find_nodes(op="get_attr")}
        self._stored = fx.Interpreter(reference)
        self._arithmetic, self._correct = arithmetic, correct
        self._ops = PlannedOps(arithmetic, plan)

    def run_examples(self, examples: Sequence[Sequence[Tensor]]) -> None:
        """Run them; see `fitting_examples`."""
        self.run(*[_Lot(_cloned(leaves), _cloned(leaves)) for leaves in zip(*examples, strict=True)])

    def run_node(self, n: fx.Node) -> Any:
        """Run one node on all values; the name of the argument is the base class's."""
        if n.op in {"placeholder", "get_attr"}:
            value = super().run_node(n)
            wide = self._stored.fetch_attr(str(self._reference[n.name].target)) if n.op == "get_attr" else None
            lot = value if isinstance(value, _Lot) else _Lot([wide], [value])
            return self._for_readers(n, lot.wide, lot.rounded)
        if n.op == "output":
            return None
        given = self.fetch_args_kwargs_from_env(n)
        wide_given, rounded_given = _sides(given)
        target: Any = n.target
        if is_operator(target) and target._schema.is_mutable:
            wide_given = [fx.node.map_aggregate(one, copied) for one in wide_given]
        wide = [target(*args, **kwargs) for args, kwargs in wide_given]
        how = self._ops.how(n) or (Precision.FP32, Scheme())

        def run() -> list[Any]:
            if not is_operator(target):
                return [target(*args, **kwargs) for args, kwargs in rounded_given]
            return [self._arithmetic.run_op(n, args, kwargs, how) for args, kwargs in rounded_given]

        def read() -> list[tuple[Any, ...]]:
            return [self._arithmetic.product_inputs(n, args, how) for args, _ in rounded_given]

        if how[0] is not Precision.FP32 and all(isinstance(one, Tensor) and one.is_floating_point() for one in wide):
            rounded = self._correct(Step(n, how, wide, read, run))
        else:
            rounded = run()
        return self._for_readers(n, wide, rounded)

    def _for_readers(self, node: fx.Node, wide: list[Any], rounded: list[Any]) -> _Lot:
        return _Lot(wide, [self._ops.value_for_readers(node, one) for one in rounded])


@dataclass
class _Lot:
    """The values of a node: one per example, or a single one for all."""

    wide: list[Any]
    rounded: list[Any]


def _sides(given: Any) -> tuple[list[Any], list[Any]]:
    """What a node reads, per example: in float, and under the plan."""
    lots = [leaf for leaf in pytree.tree_leaves(given) if isinstance(leaf, _Lot)]
    count = max((len(lot.wide) for lot in lots), default=1)
    return tuple([_picked(given, name, at) for at in range(count)] for name in ("wide", "rounded"))  # type: ignore[return-value]


def _picked(given: Any, name: str, at: int) -> Any:
    def pick(one: Any) -> Any:
        values = getattr(one, name) if isinstance(one, _Lot) else [one]
        return values[at] if len(values) > 1 else values[0]

    return fx.node.map_aggregate(given, pick)


def _cloned(leaves: Sequence[Tensor]) -> list[Tensor]:
    return [leaf.clone() for leaf in leaves]


class _LiveBytes(fx.Interpreter):
    """The largest size of all values that are still read, of one example."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__(graph_module)
        self.most = 0

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if n.op != "get_attr":
            held = [value for node, value in self.env.items() if node.op != "get_attr"]
            leaves = [leaf for leaf in pytree.tree_leaves([*held, result]) if isinstance(leaf, Tensor)]
            self.most = max(
                self.most, sum({leaf.untyped_storage().data_ptr(): leaf.nbytes for leaf in leaves}.values())
            )
        return result


def fitting_examples(graph_module: fx.GraphModule, examples: Sequence[Sequence[Tensor]]) -> Sequence[Sequence[Tensor]]:
    """As many of the examples as run together within `LIVE_BYTES`, one at least; judged by the first."""
    live = _LiveBytes(graph_module)
    live.run(*[leaf.clone() for leaf in examples[0]])
    return examples[: max(1, LIVE_BYTES // max(1, 2 * live.most))]
