"""Two runs of a graph: under a plan, and in float and under it side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx
from torch.utils import _pytree as pytree

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.ops.roles import stores_table
from ace_studio.engine.quantize.fidelity import decibels
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.quantize.simulate.arithmetic import How, OpArithmetic, copied
from ace_studio.engine.quantize.simulate.int8_style import Int8Layout, int8_layout, rounding_sums, small_ends
from ace_studio.engine.torch_private.operators import is_operator
from ace_studio.records.recipes.plan import Precision, Scheme

KEPT_BYTES = 512 << 20
"""Values of one run are kept up to this size, so that a question about another op need not run the graph again."""


class PlannedOps:
    """Precision and rounding of every node of a graph under a plan."""

    def __init__(self, arithmetic: OpArithmetic, plan: BoundPlan) -> None:
        self._arithmetic = arithmetic
        self._plan = plan
        self._layout: Int8Layout | None = None
        planned = plan.ops_at(Precision.INT8_STATIC)
        graph_module, style = arithmetic.graph_module, arithmetic.style
        self._kept_float: frozenset[fx.Node] = frozenset()
        if planned:  # a sum of what was computed in float stays float, whatever its own precision is
            everywhere, here = (rounding_sums(graph_module, style, ops) for ops in (None, planned))
            self._kept_float = (everywhere - here) | small_ends(graph_module, style, planned)
        if planned and not style.rounds_reads_only:
            self._layout = int8_layout(graph_module, planned, style, ranges=arithmetic.ranges, scheme_of=plan.scheme_of)

    def how(self, node: fx.Node) -> How | None:
        """Precision and scheme of a node that the plan changes; None for all others."""
        op_id = node.meta.get(OP_ID, "")
        precision = self._plan.precision_of(op_id)
        is_op = node.op == "call_function" and is_operator(node.target)
        if not is_op or precision is Precision.FP32:
            return None
        if stores_table(str(node.target), precision):
            return precision, self._plan.scheme_of(op_id)
        if precision is Precision.INT8_STATIC and node in self._kept_float:
            return None
        if precision is Precision.INT8_STATIC and self._layout is not None and node not in self._layout.eight_bit:
            return None
        return precision, self._plan.scheme_of(op_id)

    def value_for_readers(self, node: fx.Node, value: Any) -> Any:
        """The value of a node as its readers get it."""
        if self._layout is None or node not in self._layout.values:
            return value
        makers = [node, *node.users]  # an input has the grid that its reader asks for
        owner = next((one for one in makers if one in self._layout.eight_bit), node)
        scheme = self._plan.scheme_of(owner.meta.get(OP_ID, ""))
        return self._arithmetic.rounded_value(value, self._layout.values[node], scheme)


class PlanRun(fx.Interpreter):
    """Runs the graph with every op at its planned precision."""

    def __init__(self, arithmetic: OpArithmetic, plan: BoundPlan) -> None:
        super().__init__(arithmetic.graph_module)
        self._arithmetic = arithmetic
        self._ops = PlannedOps(arithmetic, plan)

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; the name of the argument is the base class's."""
        how = self._ops.how(n)
        if how is None:
            return self._ops.value_for_readers(n, super().run_node(n))
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return self._ops.value_for_readers(n, self._arithmetic.run_op(n, args, kwargs, how))


class _Pair:
    """The float value of a node and its value under the plan."""

    def __init__(self, wide: Any, rounded: Any) -> None:
        self.wide, self.rounded = wide, rounded

    @property
    def nbytes(self) -> int:
        """Memory of both."""
        sides = (self.wide,) if self.rounded is self.wide else (self.wide, self.rounded)
        return sum(leaf.nbytes for leaf in pytree.tree_leaves(sides) if isinstance(leaf, Tensor))


def new_pair(leaf: Tensor) -> object:
    """An input of a `PairRun`, which may write into it."""
    return _Pair(leaf.clone(), leaf.clone())


class PairRun(fx.Interpreter):
    """Runs the graph in float and under a plan side by side, and sums up the differences."""

    def __init__(self, arithmetic: OpArithmetic, plan: BoundPlan) -> None:
        super().__init__(arithmetic.graph_module)
        self._arithmetic = arithmetic
        self._ops = PlannedOps(arithmetic, plan)
        self.sums: dict[str, list[float]] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Run one node on both values; the name of the argument is the base class's."""
        if n.op in {"placeholder", "get_attr"}:
            value = super().run_node(n)
            pair = value if isinstance(value, _Pair) else _Pair(value, value)
            return _Pair(pair.wide, self._ops.value_for_readers(n, pair.rounded))
        given = self.fetch_args_kwargs_from_env(n)
        wide_args, wide_kwargs = fx.node.map_aggregate(given, lambda one: _side(one, "wide"))
        args, kwargs = fx.node.map_aggregate(given, lambda one: _side(one, "rounded"))
        if n.op == "output":
            return None
        how = self._ops.how(n) or (Precision.FP32, Scheme())
        target: Any = n.target
        rounded = self._ops.value_for_readers(n, self._run(n, args, kwargs, how))
        if is_operator(target) and target._schema.is_mutable:
            wide_args = fx.node.map_aggregate(wide_args, copied)
        wide = target(*wide_args, **wide_kwargs)
        op_id = n.meta.get(OP_ID, "")
        if op_id and isinstance(wide, Tensor) and wide.is_floating_point():
            self.compare(op_id, wide, rounded)
        return _Pair(wide, rounded)

    def compare(self, op_id: str, wide: Tensor, rounded: Tensor) -> None:
        """Take in both values of an op."""
        add_energy(self.sums.setdefault(op_id, [0.0, 0.0]), wide, rounded)

    def _run(self, node: fx.Node, args: Any, kwargs: Any, how: How) -> Any:
        if is_operator(node.target):
            return self._arithmetic.run_op(node, args, kwargs, how)
        target: Any = node.target
        return target(*args, **kwargs)


class Reached(Exception):  # noqa: N818 - ends a run that has what it was for
    """All wanted nodes have run."""


Kept = dict[fx.Node, Any]
"""Values of earlier nodes of the same run, to go on from."""


class ValueRun(PairRun):
    """Runs both sides up to some nodes. Raises: Reached."""

    def __init__(self, arithmetic: OpArithmetic, plan: BoundPlan, wanted: Collection[fx.Node], kept: Kept) -> None:
        super().__init__(arithmetic, plan)
        self._missing = set(wanted) - set(kept)
        self._kept = kept
        self._room = KEPT_BYTES - sum(pair.nbytes for pair in kept.values())
        self.found = {node: kept[node] for node in wanted if node in kept}

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; the name of the argument is the base class's."""
        pair = super().run_node(n)
        if n.op == "placeholder" or (isinstance(pair, _Pair) and pair.nbytes <= self._room):
            self._kept[n] = pair
            self._room -= pair.nbytes
        if n in self._missing:
            self._missing.remove(n)
            self.found[n] = pair
            if self.is_done:
                raise Reached
        return pair

    @property
    def is_done(self) -> bool:
        """Whether every wanted value is known."""
        return not self._missing

    def compare(self, op_id: str, wide: Tensor, rounded: Tensor) -> None:
        """The differences on the way are not wanted."""


def _side(value: Any, name: str) -> Any:
    return getattr(value, name) if isinstance(value, _Pair) else value


@dataclass(frozen=True)
class OpError:
    """How far the value of one op is from its float value, over all elements and examples."""

    signal: float
    """Sum of the squares of the float value."""
    noise: float
    """Sum of the squares of the difference."""

    @property
    def sqnr_db(self) -> float:
        """Signal-to-noise ratio in [-200, 200] dB."""
        return decibels(self.signal, self.noise)


def add_energy(sums: list[float], wide: Tensor, rounded: Tensor) -> None:
    """Add the squares of the finite places of one value; where only the plan makes it infinite, so is the noise."""
    reference, other = wide.detach().double(), rounded.detach().double()
    finite = reference.isfinite()
    if not bool(finite.all()):
        reference, other = reference[finite], other[finite]
    sums[0] += float(reference.square().sum())
    noise = float((reference - other).square().sum())
    sums[1] += noise if math.isfinite(noise) else math.inf


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
