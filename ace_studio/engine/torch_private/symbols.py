"""Keeps symbolic sizes short while a graph is traced, inside torch's own symbolic arithmetic.

While a graph is traced with free sizes, torch holds every size as a sympy expression over the sizes of the inputs. A
model whose layers compute sizes in Python ("same" padding, patches, feature pyramids) nests those expressions, they
grow with every layer, and each question about one ("is it at least 3?", "is this memory contiguous?") walks all of it.

Measured on torch 2.13, batch, height and width free, in process time: tf_efficientnet_b0 took 59 s, four fifths of it
in bounds, free symbols and comparisons of expressions that are thousands of parts deep. Here it takes 2.8 s, and a
model whose sizes do not nest takes 5 to 15 % longer. Rejected were fresh symbols for long expressions (no compiler can
bind those), answering questions by the traced size (a graph with unwritten assumptions), caches around sympy (the trees
themselves are too large), and comparing static graphs of two sizes (two traces, and a guess). The solution changes no
meaning: every expression is written in its shortest form as it arises (`short_forms`), so that no question is about a
long one, and fewer questions become guards.

The same arithmetic stands in the graph as nodes (``truediv``, ``math.ceil``, ``sym_max``). They are rewritten by the
short forms, over whole numbers only, so that targets which trace the graph again are fast as well, and so that the
program can be saved, which knows no ``math.ceil``.

Where torch has moved a name nothing is changed: traces are then slower, and as correct.
"""

from __future__ import annotations

import importlib
import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram

from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.torch_private.operators import is_operator
from ace_studio.engine.torch_private.sizes import finite_bound

if TYPE_CHECKING:
    from ace_studio.engine.torch_private.short_forms import ShortForms

_SYMBOLIC_NUMBER = "fx.experimental.sym_node", "SymNode"
_WHOLE_DIVISION = "utils._sympy.functions", "FloorDiv"


@contextmanager
def short_sizes() -> Iterator[None]:
    """Write every size that arises while tracing in its shortest form."""
    node_type = _private(*_SYMBOLIC_NUMBER)
    if node_type is None or _floor_div() is None or getattr(node_type.__init__, "is_short", False):
        yield
        return
    original = node_type.__init__
    known: dict[int, tuple[Any, ShortForms]] = {}

    def initialize(self: Any, expr: Any, shape_env: Any, *args: Any, **kwargs: Any) -> None:
        if shape_env is None or not getattr(expr, "args", ()):
            original(self, expr, shape_env, *args, **kwargs)
            return
        found = known.get(id(shape_env))
        if found is None:  # the environment is kept with its rules, so that its id stays its own
            found = known[id(shape_env)] = shape_env, short_forms(shape_env)
        short = found[1].short(expr)
        original(self, short, shape_env, *args, **kwargs)
        if short is not expr:
            self._optimized_summation = False  # it described the expression that was replaced

    initialize.is_short = True  # type: ignore[attr-defined]
    with replaced_attribute(node_type, "__init__", initialize):
        yield


def _private(module: str, name: str) -> Any:
    """A private name of torch; None if this release does not have it."""
    try:
        return getattr(importlib.import_module(f"torch.{module}"), name, None)
    except ImportError:
        return None


def _floor_div() -> Any:
    return _private(*_WHOLE_DIVISION)


def short_forms(environment: Any) -> ShortForms:
    """The rules for the symbols of one trace, unbounded where torch keeps no ranges. Needs torch's ``FloorDiv``."""
    from ace_studio.engine.torch_private.short_forms import ShortForms  # noqa: PLC0415 - it loads sympy

    ranges = getattr(environment, "var_to_range", {})

    def range_of(symbol: Any) -> tuple[float, float]:
        found = ranges.get(symbol)
        low, high = (-math.inf, math.inf) if found is None else (_limit(found.lower, -1), _limit(found.upper, 1))
        # Torch keeps 0 in the range of a size, although sympy takes the symbol for positive and simplifies by that. The
        # rules must assume the same, or their forms hide what torch's forms show.
        return (max(low, 1) if symbol.is_positive else low), high

    return ShortForms(_floor_div(), range_of)


def _limit(value: Any, sign: int) -> float:
    number = finite_bound(value)
    return sign * math.inf if number is None else number


# --- the arithmetic in the graph ---

_REWRITTEN = frozenset(
    {math.ceil, math.floor, math.trunc, round, torch.sym_max, torch.sym_min, torch.sym_int, operator.neg}
)


def write_sizes_in_integers(program: ExportedProgram) -> None:
    """Compute sizes in the graph by their short forms: ``(h + 3) // 4`` instead of ceilings of fractions.

    Sizes that are no plain integer arithmetic over the inputs' sizes stay as they are, and so do results.
    """
    if _floor_div() is None:
        return
    graph = program.graph
    results = set(graph.output_node().all_input_nodes)
    writer = _Writer(program)
    is_changed = False
    with short_sizes():
        for node in list(graph.nodes):
            if node.op == "call_function" and node.target in _REWRITTEN and node not in results:
                is_changed |= writer.rewrite(node)
    if is_changed:
        for node in reversed(list(graph.nodes)):
            if node.op == "call_function" and not node.users and _is_arithmetic(node):
                graph.erase_node(node)
        program.graph_module.recompile()


def _is_arithmetic(node: fx.Node) -> bool:
    """Whether a node is Python's arithmetic, or reads a size, and does nothing else."""
    return not is_operator(node.target) or node.target is torch.ops.aten.sym_size.int


class _Writer:
    """Puts size expressions into a graph, each part once."""

    def __init__(self, program: ExportedProgram) -> None:
        self._graph: Any = program.graph
        self._places: dict[str, tuple[fx.Node, int]] = {}
        """Symbol -> the input and the dimension that show it alone."""
        self._made: dict[Any, fx.Node | int] = {}
        self._rules: ShortForms | None = None
        self._first: fx.Node | None = None
        for node in self._graph.nodes:
            if node.op != "placeholder":
                self._first = node
                break
            if isinstance(value := node.meta.get("val"), Tensor):
                sizes: Any = enumerate(value.shape)
                free = [(str(size.node.expr), dim) for dim, size in sizes if isinstance(size, torch.SymInt)]
                for symbol, dim in free:
                    self._places.setdefault(symbol, (node, dim))

    def rewrite(self, node: fx.Node) -> bool:
        """Replace a node by its short form; False if that cannot be written."""
        value = node.meta.get("val")
        expression = getattr(getattr(value, "node", None), "expr", None)
        if not isinstance(value, torch.SymInt):
            return False
        self._rules = self._rules or short_forms(value.node.shape_env)
        if not self._can_write(expression):
            return False
        with self._graph.inserting_before(node):
            new = self._write(expression, node)
        if isinstance(new, fx.Node):
            node.replace_all_uses_with(new)
        return isinstance(new, fx.Node)

    def _can_write(self, expression: Any) -> bool:
        if expression.is_Symbol:
            return str(expression) in self._places
        if expression.is_Integer:
            return True
        kind = type(expression).__name__
        assert self._rules is not None
        if kind in _ORDERED and self._rules.bounds(expression.args[0])[0] < 0:
            return False  # runtimes divide negative numbers differently
        return kind in _OPERATORS and all(self._can_write(part) for part in expression.args)

    def _write(self, expression: Any, like: fx.Node) -> fx.Node | int:
        if expression.is_Integer:
            return int(expression)
        if expression not in self._made:
            parts = expression.args
            if expression.is_Symbol:
                self._made[expression] = self._size(expression)
            else:
                function = _OPERATORS[type(expression).__name__]
                made = self._write(parts[-1], like)  # sympy puts numbers first, torch writes them last
                others = parts[-2::-1]
                if type(expression).__name__ in _ORDERED:
                    made, others = self._write(parts[0], like), parts[1:]
                for other in others:
                    made = self._call(function, (made, self._write(other, like)), like)
                self._made[expression] = made
        return self._made[expression]

    def _size(self, symbol: Any) -> fx.Node:
        place, dim = self._places[str(symbol)]
        assert self._first is not None
        reads = torch.ops.aten.sym_size.int
        for node in place.users:
            if node.target is reads and node.args == (place, dim):
                if node is not self._first:
                    self._first.prepend(node)  # it may stand behind its new users
                return node
        with self._graph.inserting_before(self._first):
            new: fx.Node = self._graph.call_function(reads, (place, dim))
        new.meta["val"] = place.meta["val"].shape[dim]
        return new

    def _call(self, function: Callable[..., Any], args: tuple[fx.Node | int, ...], like: fx.Node) -> fx.Node:
        node: fx.Node = self._graph.call_function(function, args)
        node.meta = {key: like.meta[key] for key in ("stack_trace", "nn_module_stack") if key in like.meta}
        node.meta["val"] = function(*(one.meta["val"] if isinstance(one, fx.Node) else one for one in args))
        return node


_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "Max": torch.sym_max,
    "Min": torch.sym_min,
}
_ORDERED = frozenset({"FloorDiv", "CleanDiv", "Mod", "PythonMod"})
