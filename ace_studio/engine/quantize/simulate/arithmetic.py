"""One op of a float graph at a precision: its inputs rounded, its arithmetic in float32."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, fx

from ace_studio.engine.ops.roles import OpRole, op_role, stores_table
from ace_studio.engine.quantize.casts import HALF_DTYPES, cast_problem
from ace_studio.engine.quantize.fake_quantize import cast_round_trip, round_activation, round_rows, round_weight
from ace_studio.engine.quantize.flat_graph import constant_of
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.engine.quantize.simulate.int8_style import Int8Style, rounding_sums
from ace_studio.records.recipes.plan import WEIGHT_ONLY, Precision, Scheme

WEIGHT_CACHE_BYTES = 1 << 30
"""Rounded weights are kept for the next example up to this size."""

How = tuple[Precision, Scheme]


class OpArithmetic:
    """Runs single nodes of one graph. Rounded weights are kept between calls."""

    def __init__(self, graph_module: fx.GraphModule, *, ranges: Mapping[str, ValueRange], style: Int8Style) -> None:
        self.graph_module = graph_module
        self.ranges = ranges
        self.style = style
        self._weights: dict[tuple[str, Precision, Scheme], Tensor] = {}
        self._weight_bytes = 0
        self._sums = rounding_sums(graph_module, style)

    def run_op(self, node: fx.Node, args: tuple[Any, ...], kwargs: Mapping[str, Any], how: How) -> Any:
        """The result of one node at a precision on these inputs; the inputs are left as they are."""
        target: Any = node.target
        precision = how[0]
        if precision in HALF_DTYPES and not cast_problem(str(target)):
            dtype = HALF_DTYPES[precision]
            args, kwargs = fx.node.map_aggregate((args, dict(kwargs)), lambda one: cast_round_trip(one, dtype))
            return fx.node.map_aggregate(_plain(target(*args, **kwargs)), lambda one: cast_round_trip(one, dtype))
        if stores_table(str(target), precision):
            return round_rows(target(*args, **kwargs))
        role = op_role(str(target))
        if role is not None:
            args = self.product_inputs(node, args, how)
        elif precision is Precision.INT8_STATIC and node in self._sums:
            args = tuple(
                self._rounded_activation(node.args[index], one, how, in_sum=True) if _is_float(one) else one
                for index, one in enumerate(args)
            )
        else:
            args = fx.node.map_aggregate(args, copied) if target._schema.is_mutable else args
        return target(*args, **kwargs)

    def weight(self, node: fx.Node, precision: Precision, scheme: Scheme) -> tuple[Tensor, Tensor, int] | None:
        """The stored factor of a product in float and at a precision, and its axis of output channels."""
        role = op_role(str(node.target))
        stored = None if role is None else constant_of(self.graph_module, node.args[role.weight])
        if role is None or stored is None:
            return None
        if precision in HALF_DTYPES:
            rounded = cast_round_trip(stored, HALF_DTYPES[precision])
        else:
            rounded = self._rounded_weight(node, stored, role, precision, scheme)
        return stored, rounded, role.weight_axes(node, stored).output

    def rounded_value(self, value: Any, name: str, scheme: Scheme) -> Any:
        """A value rounded to the 8-bit grid over the range of a node; anything but a float tensor as it is."""
        if not _is_float(value):
            return value
        return round_activation(value, precision=Precision.INT8_STATIC, scheme=scheme, known=self.ranges[name])

    def product_inputs(self, node: fx.Node, args: tuple[Any, ...], how: How) -> tuple[Any, ...]:
        """The arguments of an op with a role as it computes with them: its factors rounded."""
        role = op_role(str(node.target))
        assert role is not None
        precision, scheme = how
        changed = list(args)
        stored = constant_of(self.graph_module, node.args[role.weight])
        if stored is not None:
            changed[role.weight] = self._rounded_weight(node, stored, role, precision, scheme)
        if precision in WEIGHT_ONLY or precision is Precision.FP32:
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

    def _rounded_activation(self, source: object, value: Tensor, how: How, *, in_sum: bool = False) -> Tensor:
        """A factor of a product, or a term of a sum, on its grid; a stored tensor has its own range."""
        precision, scheme = how
        known = None
        is_stored = isinstance(source, fx.Node) and source.op == "get_attr"
        if precision is Precision.INT8_STATIC and not is_stored:
            name = source.name if isinstance(source, fx.Node) else ""
            known = self.ranges.get(name)
            if known is None and not in_sum:
                raise ValueError(
                    f"int8-static needs the range of {name or 'a constant'}, which calibration did not observe"
                )
            if known is None or known.low == known.high:
                return value  # no range, or a constant value (a mask): targets leave the op in float
        return round_activation(value, precision=precision, scheme=scheme, known=known)


def _is_float(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.numel() > 0


def copied(value: Any) -> Any:
    """A tensor of its own; anything else as it is."""
    return value.clone() if isinstance(value, Tensor) else value


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | list) else value
