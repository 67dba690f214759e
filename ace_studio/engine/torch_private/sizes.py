"""Symbolic sizes and the conditions on them, as text and numbers."""

import copy
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

_INFINITE = 2**62
"""Bounds from here on are torch's way to say infinite."""


def mark_free(tensor: Tensor, dims: Sequence[int]) -> None:
    """Require that the compiler keeps dimensions of an input free; it raises if it cannot."""
    for dim in dims:
        torch._dynamo.mark_dynamic(tensor, dim)


def size_conditions(graph: torch.fx.GraphModule) -> list[str]:
    """The conditions on sizes from the model's Python code, as Python expressions over the names of symbols.

    Conditions of single operators are left out: running the graph with symbolic sizes makes them again.
    """
    from torch.utils._sympy.printers import PythonPrinter  # noqa: PLC0415 - it loads all of sympy

    for node in graph.graph.find_nodes(op="placeholder"):
        environment = getattr(getattr(node.meta.get("example_value"), "fake_mode", None), "shape_env", None)
        if environment is not None:
            own = [guard for guard in environment.guards if not _is_of_operator(guard)]
            expressions = [environment.replace(guard.expr) for guard in own]
            return list(dict.fromkeys(str(PythonPrinter().doprint(one)) for one in expressions if one.free_symbols))
    return []


_OPERATOR_CODE = re.compile(r"/torch/(_subclasses|_meta_registrations|_refs|_prims|_prims_common|_decomp|_ops)\b")


def _is_of_operator(guard: Any) -> bool:
    """Whether torch made the guard while it computed the result of one operator."""
    place = getattr(getattr(guard, "sloc", None), "framework_loc", None)
    if not isinstance(place, traceback.FrameSummary):
        return False
    return place.name == "run_node" or _OPERATOR_CODE.search(place.filename) is not None


def size_hint(size: object) -> int:
    """The size at which a (symbolic) dimension was traced; 0 if it depends on values."""
    if isinstance(size, int):
        return size
    node = getattr(size, "node", None)
    hint = getattr(node, "hint", None)
    return int(hint) if hint is not None else 0


def is_always(condition: bool | torch.SymBool) -> bool:
    """Whether a comparison of (symbolic) sizes holds for all sizes in their ranges; nothing is guarded."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true  # noqa: PLC0415 - it loads sympy

    return statically_known_true(condition)


def size_text(size: object) -> str:
    """A dimension as text: ``64``, ``s34`` or ``s34 + 1``."""
    if isinstance(size, int):
        return str(size)
    node = getattr(size, "node", None)
    return str(getattr(node, "expr", size))


def size_symbols(size: object) -> tuple[str, ...]:
    """Names of the symbols in a dimension, sorted."""
    expression = getattr(getattr(size, "node", None), "expr", None)
    return tuple(sorted(str(symbol) for symbol in getattr(expression, "free_symbols", ())))


def size_at(size: object, values: Mapping[str, int]) -> int | None:
    """The dimension's size for these values of the symbols; None if it is no whole number."""
    if isinstance(size, int):
        return size
    expression = getattr(getattr(size, "node", None), "expr", None)
    if expression is None:
        return None
    chosen = expression.subs({symbol: values.get(str(symbol), symbol) for symbol in expression.free_symbols})
    return int(chosen) if getattr(chosen, "is_integer", False) and chosen.is_number else None


def symbol_ranges(program: ExportedProgram) -> dict[str, tuple[int | None, int | None]]:
    """Symbol -> (smallest, largest) size for which the graph is valid; None is unbounded."""
    ranges = {}
    for symbol, bounds in program.range_constraints.items():
        ranges[str(symbol)] = (finite_bound(bounds.lower), finite_bound(bounds.upper))
    return ranges


def finite_bound(value: Any) -> int | None:
    """A bound of a range as an int; None for either infinity."""
    try:
        number = int(value)
    except (TypeError, OverflowError, ValueError, AttributeError):
        return None
    return number if abs(number) < _INFINITE else None


# --- guards ---

_INPUT_SIZE = r"L(\[[^=<>!]*?)\.size\(\)\[(\d+)\]"


def program_guards(program: ExportedProgram) -> tuple[str, ...]:
    """The conditions on input sizes under which the graph is valid, as Python expressions."""
    return tuple(_in_plain_python(guard) for guard in getattr(program, "_guards_code", ()) or ())


def _in_plain_python(guard: str) -> str:
    """Torch 2.14 writes ``torch.sym_min`` for the ``min`` of earlier releases."""
    return re.sub(r"\btorch\.sym_(min|max)\(", r"\1(", guard)


@dataclass(frozen=True)
class SizeRule:
    """A guard on input sizes, as text, with the sizes in it."""

    text: str
    sizes: tuple[tuple[str, tuple[str, ...], int], ...]
    """Per size: how it is written in the text, keys of the input (``("batch", "mask")``), dimension. A strict export
    names its inputs ``("flat_args", "0")`` and so on, by the position of the leaf."""


def size_rules(program: ExportedProgram) -> list[SizeRule]:
    """The conditions under which the graph is valid."""
    rules = []
    for guard in program_guards(program):
        sizes = []
        for match in re.finditer(_INPUT_SIZE, guard):
            keys = tuple(re.findall(r"\['?([^'\]]+)'?\]", match.group(1)))
            sizes.append((match.group(0), keys, int(match.group(2))))
        rules.append(SizeRule(guard, tuple(sizes)))
    return rules


_FINDINGS = ("replacements", "var_to_range", "axioms", "divisible", "guards")
"""Attributes of torch's shape environment in which it notes what it found or fixed about symbols."""


@contextmanager
def sizes_left_as_captured(program: ExportedProgram) -> Iterator[None]:
    """Whatever is fixed about the sizes of the program inside the block is forgotten behind it.

    A compiler that asks about a size, such as one that unrolls a loop, fixes it in the shape environment, which all
    copies of a graph share: whoever built the same program afterwards would find a constant there.
    """
    values = (node.meta.get("val") for node in program.graph.find_nodes(op="placeholder"))
    modes = (getattr(value, "fake_mode", None) for value in values)
    environments = {id(one): one for mode in modes if (one := getattr(mode, "shape_env", None)) is not None}
    before = [(one, {name: copy.copy(getattr(one, name)) for name in _FINDINGS}) for one in environments.values()]
    try:
        yield
    finally:
        for environment, findings in before:
            made = environment.var_to_range  # symbols that the block made may still be named in what it built
            vars(environment).update(findings, var_to_range={**made, **findings["var_to_range"]})
            environment._replacements_version_counter = getattr(environment, "_replacements_version_counter", 0) + 1
            environment._version_counter += 1  # else answers from before stay in its caches


def drop_guards(program: ExportedProgram, needless: Callable[[str], bool]) -> Callable[[], None]:
    """Remove the guards for which ``needless`` returns True, and let ranges that begin at 2 begin at 1.

    The shape code of torch adds such guards for questions like "may this memory overlap?", whose answer does not change
    the graph. The caller must prove on real inputs that the graph is right where the guards do not hold.

    Returns: A function that restores everything.
    """
    guards, ranges = list(getattr(program, "_guards_code", ()) or ()), dict(program.range_constraints)
    program._guards_code = [guard for guard in guards if not needless(_in_plain_python(guard))]
    for symbol, bounds in ranges.items():
        if finite_bound(bounds.lower) == 2:
            program.range_constraints[symbol] = type(bounds)(1, bounds.upper)

    def put_back() -> None:
        program._guards_code = guards
        program.range_constraints.update(ranges)

    return put_back
