"""Writes operators of a TorchScript graph as calls of torch's operators, or of `runtime` where numbers may come."""

import re
from typing import Any

import torch

from ace_studio.engine.load.torchscript import runtime

_NUMBER_LIKE = (
    "prim::NumToTensor",
    *(f"aten::{name}" for name in ("add", "sub", "rsub", "mul", "div", "floor_divide", "remainder")),
)
"""Operators of traced programs that may give a number where their type says tensor."""


class UntranslatableError(Exception):
    """A statement of the graph that cannot be written as Python; the text names it and its line."""


def untranslatable(node: Any) -> UntranslatableError:
    """The error for a statement, with the line that it came from."""
    place = re.search(r"# (\S+:\d+)", str(node))
    return UntranslatableError(f"{node.kind()}" + (f" ({place[1]})" if place and ":0" not in place[1] else ""))


def operator_text(node: Any, args: list[str]) -> str:
    """The call that computes what an operator of the graph computes, from the texts of its inputs.

    Raises: UntranslatableError if neither torch nor `runtime` has the operator.
    """
    namespace, _, name = node.kind().partition("::")
    types = [str(value.type()) for value in node.inputs()]
    on_numbers = f"runtime.ON_NUMBERS[{name!r}]({', '.join(args)})"
    takes_numbers = namespace == "aten" and name in runtime.ON_NUMBERS
    if (namespace, name) == ("aten", "_convolution"):
        return f"runtime.convolution({', '.join(args)})"
    if namespace == "aten" and name in runtime.ALWAYS_HERE and (name != "__getitem__" or types[0] != "Tensor"):
        return on_numbers
    overload = _overload_of(node)
    if overload is None and not takes_numbers:
        raise untranslatable(node)
    if overload is None or (takes_numbers and not any("Tensor" in kind for kind in types)):
        return on_numbers
    parameters = overload._schema.arguments
    keywords = [place for place, parameter in enumerate(parameters) if parameter.kwarg_only]
    given = [
        _argument_text(text, value, str(parameter.type))
        for text, value, parameter in zip(args, node.inputs(), parameters, strict=True)
    ]
    if takes_numbers:
        words = ", ".join(f"{parameters[place].name!r}: {given[place]}" for place in keywords)
        positional = "".join(f"{text}, " for place, text in enumerate(args) if place not in keywords)
        return f"runtime.call({name!r}, torch.ops.{overload}, ({positional}), {{{words}}})"
    named = (f"{parameters[place].name}={given[place]}" for place in keywords)
    positionals = (text for place, text in enumerate(given) if place not in keywords)
    return f"torch.ops.{overload}({', '.join([*positionals, *named])})"


def _overload_of(node: Any) -> Any:
    """The operator of torch with the schema of a node (``aten::add.Tensor(...)``); None if torch has none."""
    schema = re.match(r"(\w+)::(\w+)(?:\.(\w+))?\(", node.schema())
    packet = getattr(getattr(torch.ops, schema[1]), schema[2], None) if schema else None
    return getattr(packet, schema[3] or "default", None) if schema and packet is not None else None


def _argument_text(text: str, value: Any, kind: str) -> str:
    """The argument, made a tensor where a traced program passes a number as one."""
    return f"runtime.number_as_tensor({text})" if kind == "Tensor" and value.node().kind() in _NUMBER_LIKE else text
