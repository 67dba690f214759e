"""What a plan does to the numbers of a captured graph, simulated in float32: nothing is built and no runtime is needed.

Every op reads its inputs rounded to the grid (or the 16-bit type) that the plan gives it and computes in float32, as
real kernels do with their wide accumulators. What is not simulated: which neighbours a runtime fuses, 8-bit results in
front of float readers, and the order of sums. So it ranks ops and improvements; the final word is the built artifact.

    graph = float_graph(captured)                                # batch norms folded, weights shared
    ranges = observe_ranges(graph.graph_module, examples)        # only int8-static needs them
    simulator = Simulator(graph, ranges=ranges)
    outputs = simulator.outputs(plan, example)                   # the whole model under a plan
    simulator.local(wanted, example, visit=...)                  # every op alone, on float inputs, in one pass
    simulator.errors(plan, examples)                             # op id -> error of its value in the whole model

An example is the list of flat tensor inputs, as `Example.tensors` gives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.quantize.casts import HALF_DTYPES, cast_problem, is_layout_op
from ace_studio.engine.quantize.fake_quantize import (
    cast_round_trip,
    round_activation,
    round_weight,
)
from ace_studio.engine.quantize.fidelity import SQNR_CAP_DB
from ace_studio.engine.quantize.flat_graph import OP_ID, constant_of, flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.engine.quantize.op_roles import ADDING_OPS, OpRole, op_role
from ace_studio.records.plan import Precision, Scheme

WEIGHT_CACHE_BYTES = 1 << 30
"""Rounded weights are kept for the next example up to this size."""
_ACTIVATIONS = frozenset(
    f"aten.{name}"
    for name in (
        "relu.default", "relu_.default", "relu6.default", "hardtanh.default", "hardtanh_.default", "clamp.default",
        "leaky_relu.default", "leaky_relu_.default", "max_pool2d.default", "avg_pool2d.default", "batch_norm.default",
        "adaptive_avg_pool2d.default",
    )
)  # fmt: skip
"""Ops behind a product that targets do in 8 bits with it."""
_WEIGHT_ONLY = frozenset({Precision.INT8_WEIGHT, Precision.INT4_WEIGHT})

Visit = Callable[[str, Precision, Tensor, Tensor], None]
"""Called with op id, precision, the op's float result and its simulated one (same shape, float32)."""


@dataclass(frozen=True)
class FloatGraph:
    """The captured graph in float, ready to be simulated or changed."""

    graph_module: fx.GraphModule
    """A `flat_graph` with batch norms folded; weights are its own only where a fold changed them."""
    folded: Mapping[str, str] = field(default_factory=dict)
    """Op id of a folded batch norm -> op id of its convolution, whose result is the norm's."""


def float_graph(captured: CapturedModel) -> FloatGraph:
    """A copy of the captured graph in which every batch norm behind a convolution is folded into it.

    The targets fold them too, and a grid per tensor depends on it. The same function up to rounding.
    """
    graph_module = flat_graph(captured.program)
    everything = {node.meta[OP_ID] for node in graph_module.graph.nodes if OP_ID in node.meta}
    return FloatGraph(graph_module, fold_batch_norms(graph_module, everything))


@dataclass(frozen=True)
class OpError:
    """How far the value of one op is from its float value, over all elements and examples."""

    signal: float
    """Sum of the squares of the float value."""
    noise: float
    """Sum of the squares of the difference."""

    @property
    def sqnr_db(self) -> float:
        """``10 log10(signal / noise)`` in [-200, 200]; 200 where there is no noise."""
        if self.noise == 0.0:
            return SQNR_CAP_DB
        if self.signal == 0.0 or not math.isfinite(self.noise):
            return -SQNR_CAP_DB
        return max(-SQNR_CAP_DB, min(SQNR_CAP_DB, 10.0 * math.log10(self.signal / self.noise)))


def simulated_precisions(op: str) -> frozenset[Precision]:
    """The precisions at which this operator (``aten.conv2d.default``) differs from fp32 in the simulation."""
    role = op_role(op)
    found = set() if cast_problem(op) else set(HALF_DTYPES)
    if role is not None:
        found |= {Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.FP8} | _WEIGHT_ONLY
    if op in ADDING_OPS:
        found.add(Precision.INT8_STATIC)
    return frozenset(found)


class Simulator:
    """Runs one float graph with the arithmetic of any plan. Rounded weights are kept between calls."""

    def __init__(self, graph: FloatGraph, *, ranges: Mapping[str, ValueRange] | None = None) -> None:
        """Args: ``ranges``: node name of the graph -> range of its value; only int8-static asks for them."""
        self.graph_module = graph.graph_module
        self.folded = graph.folded
        self._ranges = dict(ranges or {})
        self._weights: dict[tuple[str, Precision, Scheme], Tensor] = {}
        self._weight_bytes = 0
        self._additions: dict[fx.Node, bool] = {}

    def outputs(self, plan: BoundPlan, example: Sequence[Tensor]) -> list[Tensor]:
        """The flat outputs of the whole model under the plan, each of the shape and type that eager gives.

        Raises: ValueError if an int8-static op reads a value whose range is not known.
        """
        with torch.no_grad():
            return list(_PlanRun(self, plan).run(*[leaf.clone() for leaf in example]))

    def float_outputs(self, example: Sequence[Tensor]) -> list[Tensor]:
        """The flat outputs of the graph as it is, in float."""
        with torch.no_grad():
            return list(fx.Interpreter(self.graph_module).run(*[leaf.clone() for leaf in example]))

    def local(
        self,
        wanted: Mapping[str, Collection[Precision]],
        example: Sequence[Tensor],
        *,
        visit: Visit,
        schemes: Callable[[str], Scheme] = lambda _: Scheme(),
    ) -> None:
        """One float pass; each wanted op is also run alone, on its float inputs, at each wanted precision.

        Args:
            wanted: Op id -> precisions. Ops whose result is no single float tensor are passed over, and so are
                precisions that change nothing there (`simulated_precisions`).
            example: Flat tensor inputs.
            visit: Gets each pair of results while the pass is at that op; it must copy what it keeps.
            schemes: Op id -> grids; `BoundPlan.scheme_of` fits.

        Raises: ValueError if an int8-static op reads a value whose range is not known.
        """
        with torch.no_grad():
            _LocalRun(self, wanted, visit, schemes).run(*[leaf.clone() for leaf in example])

    def errors(self, plan: BoundPlan, examples: Sequence[Sequence[Tensor]]) -> dict[str, OpError]:
        """Error of every op's value in the whole model under the plan: op id -> error, in graph order.

        The model runs twice side by side, in float and under the plan, so an error holds what came from all ops before.
        A folded batch norm has the error of its convolution. Ops without a floating-point result are left out.
        """
        run = _PairRun(self, plan)
        with torch.no_grad():
            for example in examples:
                run.run(*[_Pair(leaf.clone(), leaf.clone()) for leaf in example])
        errors = {op_id: OpError(signal, noise) for op_id, (signal, noise) in run.sums.items()}
        homes = {norm: errors[home] for norm, home in self.folded.items() if home in errors}
        return errors | homes

    def output_errors(self, plan: BoundPlan, examples: Sequence[Sequence[Tensor]]) -> list[OpError]:
        """Error of every floating-point output of the model under the plan, over all examples, in order."""
        sums: dict[int, list[float]] = {}
        for example in examples:
            pairs = zip(self.float_outputs(example), self.outputs(plan, example), strict=True)
            for index, (wide, rounded) in enumerate(pairs):
                if wide.is_floating_point():
                    _add_energy(sums.setdefault(index, [0.0, 0.0]), wide, rounded)
        return [OpError(*sums[index]) for index in sorted(sums)]

    def sqnr_db(self, plan: BoundPlan, examples: Sequence[Sequence[Tensor]]) -> float:
        """Fidelity of the worst output under the plan, pooled over all examples; 200 if there is no float output."""
        return min((error.sqnr_db for error in self.output_errors(plan, examples)), default=SQNR_CAP_DB)

    # --- one op ---

    def run_op(
        self, node: fx.Node, args: tuple[Any, ...], kwargs: Mapping[str, Any], how: tuple[Precision, Scheme]
    ) -> Any:
        """The result of one node at a precision on these inputs; the inputs are left as they are."""
        target: Any = node.target
        precision = how[0]
        if precision in HALF_DTYPES and not cast_problem(str(target)):
            dtype = HALF_DTYPES[precision]
            args, kwargs = fx.node.map_aggregate((args, dict(kwargs)), lambda one: cast_round_trip(one, dtype))
            return fx.node.map_aggregate(_plain(target(*args, **kwargs)), lambda one: cast_round_trip(one, dtype))
        role = op_role(str(target))
        if role is not None:
            args = self._rounded_product_inputs(node, args, role, how)
        elif precision is Precision.INT8_STATIC and self._adds_rounded(node):
            args = tuple(
                self._rounded_activation(node.args[index], one, how) if _is_float(one) else one
                for index, one in enumerate(args)
            )
        else:
            args = fx.node.map_aggregate(args, _copied) if target._schema.is_mutable else args
        return target(*args, **kwargs)

    def _adds_rounded(self, node: fx.Node) -> bool:
        """Whether a node is an addition that targets do in 8 bits: of results of products, or of such additions.

        A sum of two values that were computed in float would only lose by it, and no target does it.
        """
        if str(node.target) not in ADDING_OPS:
            return False
        if node not in self._additions:
            sources = [_source(one) for one in node.all_input_nodes if one.op != "get_attr"]
            self._additions[node] = all(
                op_role(str(one.target)) is not None or self._adds_rounded(one) for one in sources
            )
        return self._additions[node]

    def _rounded_product_inputs(
        self, node: fx.Node, args: tuple[Any, ...], role: OpRole, how: tuple[Precision, Scheme]
    ) -> tuple[Any, ...]:
        precision, scheme = how
        changed = list(args)
        stored = constant_of(self.graph_module, node.args[role.weight])
        if stored is not None:
            changed[role.weight] = self._rounded_weight(node, stored, role, precision, scheme)
        if precision in _WEIGHT_ONLY or precision is Precision.FP32:
            return tuple(changed)
        places = [role.data] if stored is not None else [role.data, role.weight]
        for place in places:
            if _is_float(args[place]):
                changed[place] = self._rounded_activation(node.args[place], args[place], how)
        return tuple(changed)

    def _rounded_weight(
        self, node: fx.Node, weight: Tensor, role: OpRole, precision: Precision, scheme: Scheme
    ) -> Tensor:
        if precision in (Precision.FP32, *HALF_DTYPES) or not weight.is_floating_point():
            return weight
        key = (f"{node.name}", precision, scheme)
        if key in self._weights:
            return self._weights[key]
        rounded = round_weight(weight, role.weight_axes(node, weight), precision=precision, scheme=scheme)
        size = rounded.numel() * rounded.element_size()
        if self._weight_bytes + size <= WEIGHT_CACHE_BYTES:
            self._weights[key] = rounded
            self._weight_bytes += size
        return rounded

    def _rounded_activation(self, source: object, value: Tensor, how: tuple[Precision, Scheme]) -> Tensor:
        precision, scheme = how
        known = None
        if precision is Precision.INT8_STATIC:
            name = source.name if isinstance(source, fx.Node) else ""
            known = self._ranges.get(name)
            if known is not None and known.low == known.high:
                return value  # nobody knows its range; targets leave the op in float
            if known is None:
                raise ValueError(
                    f"int8-static needs the range of {name or 'a constant'}, which calibration did not see"
                )
        return round_activation(value, precision=precision, scheme=scheme, known=known)


# --- the three ways through the graph ---


class _PlanRun(fx.Interpreter):
    """Runs the graph with every op at its planned precision."""

    def __init__(self, simulator: Simulator, plan: BoundPlan) -> None:
        super().__init__(simulator.graph_module)
        self._simulator = simulator
        self._plan = plan

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; the name of the argument is the base class's."""
        how = _planned(n, self._plan)
        if how is None:
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return self._simulator.run_op(n, args, kwargs, how)


class _LocalRun(fx.Interpreter):
    """Runs the graph in float and the wanted ops again, alone."""

    def __init__(
        self,
        simulator: Simulator,
        wanted: Mapping[str, Collection[Precision]],
        visit: Visit,
        schemes: Callable[[str], Scheme],
    ) -> None:
        super().__init__(simulator.graph_module)
        self._simulator, self._wanted, self._visit, self._schemes = simulator, wanted, visit, schemes

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; its lonely runs come first, because an op may write into its input."""
        op_id = n.meta.get(OP_ID, "")
        asked = self._wanted.get(op_id, ()) if n.op == "call_function" else ()
        useful = [one for one in asked if one in simulated_precisions(str(n.target))]
        args, kwargs = self.fetch_args_kwargs_from_env(n) if useful else ((), {})
        alone = [self._simulator.run_op(n, args, kwargs, (one, self._schemes(op_id))) for one in useful]
        result = super().run_node(n)
        if isinstance(result, Tensor) and result.is_floating_point():
            for precision, simulated in zip(useful, alone, strict=True):
                self._visit(op_id, precision, result, simulated)
        return result


class _Pair:
    """The float value of a node and its value under the plan."""

    def __init__(self, wide: Any, rounded: Any) -> None:
        self.wide, self.rounded = wide, rounded


class _PairRun(fx.Interpreter):
    """Runs the graph twice at once and sums up what differs."""

    def __init__(self, simulator: Simulator, plan: BoundPlan) -> None:
        super().__init__(simulator.graph_module)
        self._simulator = simulator
        self._plan = plan
        self.sums: dict[str, list[float]] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Run one node on both values; the name of the argument is the base class's."""
        if n.op in {"placeholder", "get_attr"}:
            value = super().run_node(n)
            return value if isinstance(value, _Pair) else _Pair(value, value)
        given = self.fetch_args_kwargs_from_env(n)
        wide_args, wide_kwargs = fx.node.map_aggregate(given, lambda one: _side(one, "wide"))
        args, kwargs = fx.node.map_aggregate(given, lambda one: _side(one, "rounded"))
        if n.op == "output":
            return None
        how = _planned(n, self._plan) or (Precision.FP32, Scheme())
        target: Any = n.target
        rounded = self._run(n, args, kwargs, how)
        wide = target(*wide_args, **wide_kwargs)
        op_id = n.meta.get(OP_ID, "")
        if op_id and isinstance(wide, Tensor) and wide.is_floating_point():
            _add_energy(self.sums.setdefault(op_id, [0.0, 0.0]), wide, rounded)
        return _Pair(wide, rounded)

    def _run(self, node: fx.Node, args: Any, kwargs: Any, how: tuple[Precision, Scheme]) -> Any:
        if isinstance(node.target, torch._ops.OpOverload):
            return self._simulator.run_op(node, args, kwargs, how)
        target: Any = node.target
        return target(*args, **kwargs)


def _side(value: Any, name: str) -> Any:
    return getattr(value, name) if isinstance(value, _Pair) else value


def _planned(node: fx.Node, plan: BoundPlan) -> tuple[Precision, Scheme] | None:
    """Precision and grids of a node that the plan changes; None for all others."""
    op_id = node.meta.get(OP_ID, "")
    precision = plan.precision.get(op_id, Precision.FP32)
    is_op = node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
    if not is_op or precision is Precision.FP32:
        return None
    return precision, plan.scheme_of(op_id)


def _add_energy(sums: list[float], wide: Tensor, rounded: Tensor) -> None:
    """Add the squares of the finite places of one value; where only the plan makes it infinite, so is the noise."""
    reference, other = wide.detach().double(), rounded.detach().double()
    finite = reference.isfinite()
    if not bool(finite.all()):
        reference, other = reference[finite], other[finite]
    sums[0] += float(reference.square().sum())
    noise = float((reference - other).square().sum())
    sums[1] += noise if math.isfinite(noise) else math.inf


def _source(node: fx.Node) -> fx.Node:
    """The node that computed a value, seen through activations and what only moves values."""
    while _hands_on(node) and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def _hands_on(node: fx.Node) -> bool:
    return is_layout_op(str(node.target)) or str(node.target) in _ACTIVATIONS


def _is_float(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.numel() > 0


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | list) else value


def ops_of(graph_module: fx.GraphModule) -> Iterator[tuple[str, fx.Node]]:
    """Op id and node of every op of the graph, in order."""
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and OP_ID in node.meta:
            yield node.meta[OP_ID], node
