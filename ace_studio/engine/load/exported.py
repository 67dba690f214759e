"""The sizes that an exported program declares free: in words from its file, and as an example of other sizes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import torch
from torch import Tensor
from torch.export import ExportedProgram

from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import example_at, unseen_sizes
from ace_studio.engine.torch_private.sizes import finite_bound, size_at, size_hint, size_symbols, symbol_ranges

_MOST_TRIES = 6
_SYMBOL = re.compile(r"Symbol\('(\w+)'[^)]*\)")


def examples_of_program(program: ExportedProgram) -> tuple[Example, ...]:
    """The inputs that it was exported with and, if it declares free sizes, the same inputs at others of them.

    Without the second example everything would count as static: the sizes of examples decide what is traced as free.
    """
    if not program.example_inputs:
        return ()
    args, kwargs = program.example_inputs
    stored = Example(args=tuple(args), kwargs=dict(kwargs))
    user_inputs = set(program.graph_signature.user_inputs)
    values = [node.meta.get("val") for node in program.graph.nodes if node.name in user_inputs]
    shapes = [tuple(value.shape) for value in values if isinstance(value, Tensor)]
    free = {symbol: size for shape in shapes for size in shape for symbol in size_symbols(size)}
    if not free or len(shapes) != len(stored.tensors()):
        return (stored,)
    module = program.module()  # one for these calls alone: they may change its buffers
    for sizes in _other_sizes(shapes, program):
        other = example_at(stored, sizes)
        try:
            with torch.no_grad():
                other.copied().call(module)
        except Exception:  # noqa: BLE001 - a program may refuse sizes that it declares, in any way
            continue
        return stored, other
    return (stored,)


def _other_sizes(shapes: Sequence[Sequence[Any]], program: ExportedProgram) -> list[dict[tuple[int, int], int]]:
    """Sizes for every dimension, none of the free ones as it was exported; the best to try first."""
    ranges = symbol_ranges(program)
    places = {(leaf, dim): size for leaf, shape in enumerate(shapes) for dim, size in enumerate(shape)}
    choices: dict[str, list[int]] = {}
    for size in places.values():
        for symbol in size_symbols(size):
            low, high = ranges.get(symbol, (None, None))
            known = size_hint(size) if str(size) == symbol else max(low or 2, 2)
            choices.setdefault(symbol, list(unseen_sizes([known], low=low or 1, high=high)) or [known])
    found = []
    for turn in range(_MOST_TRIES):
        chosen = {symbol: sizes[min(turn, len(sizes) - 1)] for symbol, sizes in choices.items()}
        wanted = {place: size_at(size, chosen) for place, size in places.items()}
        found.append({place: size for place, size in wanted.items() if size is not None and size > 0})
    return found


def input_notes(content: bytes) -> tuple[str, ...]:
    """What ``models/model.json`` of a program says of its inputs: ``input x: s0 x 8, s0 from 2 to 64``; empty if none.

    The text is read as JSON, and nothing in it is evaluated.
    """
    try:
        return _notes_of(msgspec.json.decode(content))
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, AttributeError):
        return ()  # another release of torch writes it differently; the program itself tells when it is opened


def _notes_of(stored: Any) -> tuple[str, ...]:
    graph = stored["graph_module"]
    tensors, ranges = graph["graph"]["tensor_values"], stored["range_constraints"]
    names: dict[str, str] = {}
    notes = []
    for spec in graph["signature"]["input_specs"]:
        name = spec.get("user_input", {}).get("arg", {}).get("as_tensor", {}).get("name")
        if name is None:
            continue
        known = len(names)
        sizes = [_size_text(size, names) for size in tensors[name]["sizes"]]
        bounds = [_range_text(readable, ranges.get(symbol, {})) for symbol, readable in list(names.items())[known:]]
        notes.append(", ".join([f"input {name}: {' x '.join(sizes) or 'one number'}", *bounds]))
    return tuple(notes)


def _size_text(size: Mapping[str, Any], names: dict[str, str]) -> str:
    if "as_int" in size:
        return str(size["as_int"])
    text = str(size["as_expr"]["expr_str"])
    return _SYMBOL.sub(lambda match: names.setdefault(match[1], f"s{len(names)}"), text)


def _range_text(name: str, bounds: Mapping[str, Any]) -> str:
    low, high = finite_bound(bounds.get("min_val")), finite_bound(bounds.get("max_val"))
    return f"{name} from {max(low or 1, 1)}" + (f" to {high}" if high is not None else " up")
