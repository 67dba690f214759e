"""Names of torch that are private or differ between releases, for capture and export.

`dynamo` holds those of the compiler's front end, `inductor` and `kernels` those of its back end, and `symbols` those of
symbolic sizes.
"""

from __future__ import annotations

import importlib
import inspect
import operator
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch.export import Dim, ExportedProgram
from torch.fx.experimental import _config as _shape_config

from ace_studio.engine.torch_private.symbols import short_sizes, write_sizes_in_integers

# --- tracing ---


@contextmanager
def sizes_of_one_are_ordinary() -> Iterator[None]:
    """Trace so that a dynamic size may be 1 later, instead of taking 1 for a size that broadcasts."""
    if not hasattr(_shape_config, "backed_size_oblivious"):
        yield
        return
    with _shape_config.patch(backed_size_oblivious=True):  # type: ignore[attr-defined]
        yield


@contextmanager
def recurrent_layers_kept_whole() -> Iterator[None]:
    """Describe LSTM, GRU and RNN layers by the shapes of their results while tracing.

    Without this torch works the shapes out by unrolling the layer over time, which takes seconds and fixes the
    number of steps; where that number is computed (frames of a spectrum), unrolling fails (torch 2.13).
    """
    operators = torch.ops.aten
    described: dict[Any, Callable[..., Any]] = {
        operators.lstm.input: _lstm_results,
        operators.gru.input: _rnn_results,
        operators.rnn_tanh.input: _rnn_results,
        operators.rnn_relu.input: _rnn_results,
    }
    kernels = {op: dict(op.py_kernels) for op in described}
    unrolling: dict[Any, Callable[..., Any]] = {
        op: decomposition_table[op] for op in described if op in decomposition_table
    }
    try:
        decomposition_table.update({op: described[op] for op in unrolling})
        for op, results in described.items():
            _set_kernels(op, dict.fromkeys(kernels[op], results))
        yield
    finally:
        decomposition_table.update(unrolling)
        for op, own in kernels.items():
            _set_kernels(op, own)


def _set_kernels(op: Any, kernels: Mapping[Any, Any]) -> None:
    op.py_kernels.update(kernels)
    op._dispatch_cache.clear()


def _sequence(source: Tensor, hidden: Tensor, *, bidirectional: bool) -> Tensor:
    """Result of the last layer: [..., features] -> [..., hidden], twice as wide in two directions."""
    return source.new_empty((*source.shape[:-1], hidden.shape[-1] * (2 if bidirectional else 1)))


def _lstm_results(source: Tensor, hx: Sequence[Tensor], *settings: Any) -> tuple[Tensor, Tensor, Tensor]:
    sequence = _sequence(source, hx[0], bidirectional=settings[_BIDIRECTIONAL])
    return sequence, torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _rnn_results(source: Tensor, hx: Tensor, *settings: Any) -> tuple[Tensor, Tensor]:
    return _sequence(source, hx, bidirectional=settings[_BIDIRECTIONAL]), torch.empty_like(hx)


_BIDIRECTIONAL = 5
"""Position of ``bidirectional`` behind the input and the state: params, has_biases, num_layers, dropout, train, it."""


def export_program(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    dynamic_shapes: Any,
    strict: bool,
) -> ExportedProgram:
    """``torch.export.export`` under the settings that the project relies on. Call it without gradients."""
    with sizes_of_one_are_ordinary(), recurrent_layers_kept_whole(), short_sizes(), keywords_named(module, kwargs):
        program = torch.export.export(module, args, dict(kwargs), dynamic_shapes=dynamic_shapes, strict=strict)
        _write_roots_as_powers(program)
        write_sizes_in_integers(program)
    return program


@contextmanager
def keywords_named(module: torch.nn.Module, kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Let each argument that ends up in forward's ``**kwargs`` be a parameter of its own, for whoever asks meanwhile.

    torch.export compares ``dynamic_shapes`` with the arguments in two places, nested as ``**kwargs`` in one and flat in
    the other (torch 2.13), so that no ``dynamic_shapes`` fits a call with such an argument. The code stays as it is.
    """
    forward: Any = getattr(module.forward, "__func__", module.forward)
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    rest = [one for one in parameters if one.kind is inspect.Parameter.VAR_KEYWORD]
    known = {one.name for one in parameters}
    extra = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in kwargs if name not in known]
    if not rest or not extra or not hasattr(forward, "__dict__"):
        yield
        return
    missing = object()
    before = vars(forward).get("__signature__", missing)
    forward.__signature__ = inspect.Signature([*(one for one in parameters if one not in rest), *extra, *rest])
    try:
        yield
    finally:
        if before is missing:
            del forward.__signature__
        else:
            forward.__signature__ = before


def _write_roots_as_powers(program: ExportedProgram) -> None:
    """Replace the square root of a size by its power of one half, which every consumer of programs knows."""
    for node in program.graph.nodes:
        if node.op == "call_function" and node.target in (torch.sym_sqrt, getattr(torch, "_sym_sqrt", None)):
            node.target, node.args = operator.pow, (node.args[0], 0.5)
            node.meta["val"] = node.args[0].meta["val"] ** 0.5
    program.graph_module.recompile()


DYNAMIC = Dim.DYNAMIC
"""Marks a dimension that must stay dynamic; the tracer raises if it cannot."""


# --- symbolic sizes ---


def mark_free(tensor: Tensor, dims: Sequence[int]) -> None:
    """Demand of the compiler that dimensions of an input stay free; it raises if it cannot."""
    for dim in dims:
        torch._dynamo.mark_dynamic(tensor, dim)


def size_conditions(graph: torch.fx.GraphModule) -> list[str]:
    """The conditions on sizes that the Python code of the model made, as Python over the names of symbols.

    Conditions of single operators are left out: whoever runs the graph with symbolic sizes meets them again.
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
    """Whether torch asked the question while it worked out the result of one operator."""
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
    """The dimension's size when every symbol has the given value; None if that is no whole number."""
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
        ranges[str(symbol)] = (_bound(bounds.lower), _bound(bounds.upper))
    return ranges


def _bound(value: Any) -> int | None:
    """A bound as an int; None for either infinity."""
    try:
        number = int(value)
    except (TypeError, OverflowError, ValueError, AttributeError):
        return None
    return number if abs(number) < 2**62 else None


# --- operators ---


def is_operator(target: object) -> bool:
    """Whether the target of a node is one of torch's operators, such as ``aten.conv2d.default``."""
    return isinstance(target, torch._ops.OpOverload)


def is_pointwise(target: object) -> bool:
    """Whether torch says that the operator works element by element."""
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.pointwise in target.tags


def is_random(target: object) -> bool:
    """Whether torch says that the operator draws random numbers."""
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags


def argument_names(target: object) -> list[str]:
    """Names of the operator's arguments in order; empty for what is not an operator."""
    schema = getattr(target, "_schema", None)
    return [argument.name for argument in schema.arguments] if schema is not None else []


_OWN_FAMILIES = frozenset({"aten", "prim", "prims", "quantized_decomposed", "quantized", "mkldnn", "inductor"})


def foreign_operators(program: ExportedProgram) -> list[str]:
    """The operators of a graph that torch does not bring along, in their order."""
    targets = [node.target for node in program.graph.nodes if is_operator(node.target)]
    return list(dict.fromkeys(str(target) for target in targets if target.namespace not in _OWN_FAMILIES))


def functional_form(target: Any) -> Any:
    """The operator that gives a new tensor where ``target`` writes into an old one; itself if there is none such."""
    name = str(getattr(target, "_opname", ""))
    if not is_operator(target) or not name.endswith("_") or name.startswith("_"):
        return target
    packet = getattr(getattr(torch.ops, target.namespace), name.rstrip("_"), None)
    return getattr(packet, target._overloadname, target)


# --- guards ---

_INPUT_SIZE = r"L(\[[^=<>!]*?)\.size\(\)\[(\d+)\]"


def program_guards(program: ExportedProgram) -> tuple[str, ...]:
    """The conditions on input sizes under which the graph is valid, as Python expressions."""
    return tuple(getattr(program, "_guards_code", ()) or ())


@dataclass(frozen=True)
class SizeRule:
    """A condition on input sizes, as text, with the sizes that it speaks of."""

    text: str
    sizes: tuple[tuple[str, tuple[str, ...], int], ...]
    """Per size: how it is written in the text, keys of the input (``("batch", "mask")``), dimension. A strict export
    calls its inputs ``("flat_args", "0")`` and so on, by the position of the leaf."""


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


def drop_guards(program: ExportedProgram, needless: Callable[[str], bool]) -> Callable[[], None]:
    """Take back the guards that ``needless`` says so of, and let ranges that begin at 2 begin at 1.

    The shape code of torch adds such guards for questions like "may this memory overlap?", where the answer does
    not change the graph. The caller must prove on real inputs that the graph is right where they were broken.

    Returns: A function that puts everything back.
    """
    guards, ranges = list(program_guards(program)), dict(program.range_constraints)
    program._guards_code = [guard for guard in guards if not needless(guard)]
    for symbol, bounds in ranges.items():
        if _bound(bounds.lower) == 2:
            program.range_constraints[symbol] = type(bounds)(1, bounds.upper)

    def put_back() -> None:
        program._guards_code = guards
        program.range_constraints.update(ranges)

    return put_back


# --- kernels ---


def register_quantized_ops() -> None:
    """Make the ``quantized_decomposed`` ops known, which a saved int8 program calls."""
    import torch.ao.quantization.fx._decomposed  # noqa: F401, PLC0415 - importing it registers them

    importlib.import_module("torch.ao.quantization.fx._decomposed")


def half_precision_problem(dtype: torch.dtype) -> str:
    """Empty if this processor computes in the 16-bit type, else why not; asks oneDNN, which holds the kernels."""
    name = str(dtype).removeprefix("torch.")
    asked = {torch.bfloat16: "_is_mkldnn_bf16_supported", torch.float16: "_is_mkldnn_fp16_supported"}[dtype]
    if getattr(torch.ops.mkldnn, asked)():
        return ""
    needed = "avx512_bf16 or amx" if dtype is torch.bfloat16 else "avx512_fp16 or amx_fp16"
    return f"this processor has no {name} arithmetic ({needed}): every value would be converted back and forth"
