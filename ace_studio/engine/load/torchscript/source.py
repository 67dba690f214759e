"""Translates the graph of a TorchScript method to Python, statement by statement.

TorchScript keeps no Python, and torch can neither export nor compile a script module. Its graph holds all that the
Python did. The translation is plain code on a plain `nn.Module`, so every capture method works on it, with the module
paths of the original. torch's own converter (`TS2EPConverter`) fails on loops, branches and LSTMs, and loses paths.
"""

import keyword
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ace_studio.engine.load.torchscript.operators import operator_text, untranslatable

_INDENT = "    "
_PLAIN_CONSTANTS = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class MethodSource:
    """One method, translated to Python."""

    text: str
    constants: dict[str, Any]
    """Names that the text reads from ``self`` and the script lacks: its constant tensors and devices."""
    attributes: dict[tuple[str, ...], Any]
    """Path from the module to an attribute -> its value, for attributes other than parameters, buffers and children."""
    calls: tuple[tuple[tuple[str, ...], str], ...]
    """Path to a child and name of its method, for every call in the text."""


def write_method(script: torch.jit.ScriptModule, name: str) -> MethodSource:
    """Translate one method of a script module to a Python function.

    Raises: UntranslatableError naming the statement that has no counterpart.
    """
    method = getattr(script, name)
    graph = method.graph
    if any(resolve_function(next(node.inputs()).node()) is None for node in graph.findAllNodes("prim::CallFunction")):
        graph = method.inlined_graph  # the only place that holds the user's own functions
    writer = _Writer(script, prefix=f"constant_{name}")
    inputs = list(graph.inputs())
    writer.paths[inputs[0].debugName()] = ()
    parameters = ["self"]
    for value, argument in zip(inputs[1:], method.schema.arguments[1:], strict=True):
        default = f"={argument.default_value!r}" if argument.has_default_value() else ""
        writer.names[value.debugName()] = writer.fresh(argument.name)
        parameters.append(writer.names[value.debugName()] + default)
    writer.names[inputs[0].debugName()] = "self"
    writer.block(graph, depth=1)
    returned = [writer.name(value) for value in graph.outputs()]
    lines = [f"def {name}({', '.join(parameters)}):", *writer.lines, f"{_INDENT}return {', '.join(returned)}", ""]
    return MethodSource("\n".join(lines), writer.constants, writer.attributes, tuple(dict.fromkeys(writer.calls)))


def resolve_function(node: Any) -> Callable[..., Any] | None:
    """Torch's Python function behind a function constant; None for a function of the user."""
    parts = str(node.output().type()).split(".")
    place: Any = torch
    for part in [part for part in parts if part not in ("__torch__", "torch") and "_mangle_" not in part]:
        place = getattr(place, part, None)
    is_torch = parts[:2] == ["__torch__", "torch"] and callable(place)
    return place if is_torch else None


@dataclass
class _Writer:
    """Collects the lines of the text, and the name of each value of the graph in it."""

    script: torch.jit.ScriptModule
    prefix: str
    lines: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Value that is a module -> its path from ``self``."""
    constants: dict[str, Any] = field(default_factory=dict)
    attributes: dict[tuple[str, ...], Any] = field(default_factory=dict)
    calls: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    _taken: set[str] = field(default_factory=lambda: {"self", "torch", "runtime"})

    def fresh(self, hint: str) -> str:
        """A new Python name like ``hint``."""
        base = re.sub(r"\W", "_", hint)
        base = f"v{base}" if not base or base[0].isdigit() or keyword.iskeyword(base) else base
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def name(self, value: Any) -> str:
        """The name of a value; of a constant, its text."""
        return self.names[value.debugName()]

    def write(self, depth: int, text: str) -> None:
        """Add a line."""
        self.lines.append(_INDENT * depth + text)

    def assign(self, depth: int, node: Any, text: str) -> None:
        """Assign the text to new names for the outputs of a node."""
        names = []
        for value in node.outputs():
            self.names[value.debugName()] = self.fresh(value.debugName())
            names.append(self.name(value))
        self.write(depth, f"{', '.join(names)} = {text}" if names else text)

    def args(self, node: Any) -> list[str]:
        """The texts of a node's inputs."""
        return [self.name(value) for value in node.inputs()]

    def block(self, block: Any, depth: int) -> None:
        """Write the statements of a graph or of a block in it."""
        for node in block.nodes():
            handler = _HANDLERS.get(node.kind())
            if handler is not None:
                handler(self, node, depth)
            elif node.kind().startswith("aten::") and not list(node.blocks()):
                self.assign(depth, node, operator_text(node, self.args(node)))
            elif node.kind().partition("::")[0] not in ("prim", "aten", "onnx"):
                self.assign(depth, node, operator_text(node, self.args(node)))  # an operator of an extension
            else:
                raise untranslatable(node)


def _constant(writer: _Writer, node: Any, _: int) -> None:
    value = node.output()
    function = resolve_function(node) if str(value.type().kind()) == "FunctionType" else None
    if function is not None:
        writer.names[value.debugName()] = f"{function.__module__}.{function.__name__}"
        return
    content = value.toIValue() if node.attributeNames() else None
    writer.names[value.debugName()] = _constant_text(writer, content)


def _constant_text(writer: _Writer, content: Any) -> str:
    is_sequence = type(content) in (list, tuple)
    if all(_is_plain(item) for item in content) if is_sequence else _is_plain(content):
        return repr(content)
    name = f"{writer.prefix}_{len(writer.constants)}"
    writer.constants[name] = content
    return f"self.{name}"


def _is_plain(content: Any) -> bool:
    """Whether ``repr`` of the value is valid Python: not of infinity, nor of a member of an enumeration."""
    return type(content) in _PLAIN_CONSTANTS and not (isinstance(content, float) and not math.isfinite(content))


def _get_attribute(writer: _Writer, node: Any, depth: int) -> None:
    owner, name = node.input(), node.s("name")
    path = writer.paths.get(owner.debugName())
    if path is not None:
        here = (*path, name)
        attribute = attribute_of(writer.script, here)
        if isinstance(attribute, nn.Module):
            writer.paths[node.output().debugName()] = here
        else:
            writer.attributes[here] = attribute
    is_plain = name.isidentifier() and not keyword.iskeyword(name)
    text = f"{writer.name(owner)}.{name}" if is_plain else f"getattr({writer.name(owner)}, {name!r})"
    writer.assign(depth, node, text)


def attribute_of(script: Any, path: tuple[str, ...]) -> Any:
    """Follow a path of attributes."""
    for name in path:
        script = getattr(script, name)
    return script


def _set_attribute(writer: _Writer, node: Any, depth: int) -> None:
    owner, value = writer.args(node)
    writer.write(depth, f"setattr({owner}, {node.s('name')!r}, {value})")


def _call_method(writer: _Writer, node: Any, depth: int) -> None:
    owner, *args = list(node.inputs())
    path, name = writer.paths.get(owner.debugName()), node.s("name")
    if path is None:
        raise untranslatable(node)
    writer.calls.append((path, name))
    called = writer.name(owner) if name == "forward" else f"{writer.name(owner)}.{name}"
    writer.assign(depth, node, f"{called}({', '.join(writer.name(value) for value in args)})")


def _call_function(writer: _Writer, node: Any, depth: int) -> None:
    function, *args = writer.args(node)
    writer.assign(depth, node, f"{function}({', '.join(args)})")


def _if(writer: _Writer, node: Any, depth: int) -> None:
    results = [writer.fresh(value.debugName()) for value in node.outputs()]
    for word, block in zip((f"if {writer.name(node.input())}:", "else:"), node.blocks(), strict=True):
        writer.write(depth, word)
        writer.block(block, depth + 1)
        values = [writer.name(value) for value in block.outputs()]
        writer.write(depth + 1, f"{', '.join(results)} = {', '.join(values)}" if results else "pass")
    for value, name in zip(node.outputs(), results, strict=True):
        writer.names[value.debugName()] = name


def _loop(writer: _Writer, node: Any, depth: int) -> None:
    """Write ``while condition and count < most``; a loop-carried value has one name inside and after the loop."""
    most, condition, *carried = writer.args(node)
    body = next(node.blocks())
    counter, *inner = list(body.inputs())
    kept = [writer.fresh(value.debugName()) for value in node.outputs()]
    count, goes_on = writer.fresh("count"), writer.fresh("goes_on")
    for name, first in zip(kept, carried, strict=True):
        writer.write(depth, f"{name} = {first}")
    writer.names[counter.debugName()] = writer.fresh(counter.debugName())
    for value, name in zip(inner, kept, strict=True):
        writer.names[value.debugName()] = name
    first_test, *results = list(body.outputs())
    is_for = condition == "True" and _is_true(first_test)
    if is_for:
        writer.write(depth, f"for {writer.name(counter)} in range({most}):")
    else:
        writer.write(depth, f"{count}, {goes_on} = 0, {condition}")
        writer.write(depth, f"while {goes_on} and {count} < {most}:")
        writer.write(depth + 1, f"{writer.name(counter)} = {count}")
    writer.block(body, depth + 1)
    if not is_for:
        writer.write(depth + 1, f"{count}, {goes_on} = {count} + 1, {writer.name(first_test)}")
    after = [writer.name(value) for value in results]
    writer.write(depth + 1, f"{', '.join(kept)} = {', '.join(after)}" if kept else "pass")
    for value, name in zip(node.outputs(), kept, strict=True):
        writer.names[value.debugName()] = name


def _is_true(value: Any) -> bool:
    return bool(value.node().kind() == "prim::Constant" and value.toIValue() is True)


def _list(writer: _Writer, node: Any, depth: int) -> None:
    writer.assign(depth, node, f"[{', '.join(writer.args(node))}]")


def _tuple(writer: _Writer, node: Any, depth: int) -> None:
    writer.assign(depth, node, f"({''.join(f'{text}, ' for text in writer.args(node))})")


def _dict(writer: _Writer, node: Any, depth: int) -> None:
    args = writer.args(node)
    pairs = (f"{key}: {value}" for key, value in zip(args[::2], args[1::2], strict=True))
    writer.assign(depth, node, f"{{{', '.join(pairs)}}}")


def _unpack(writer: _Writer, node: Any, depth: int) -> None:
    names = list(node.outputs())
    for value in names:
        writer.names[value.debugName()] = writer.fresh(value.debugName())
    left = "".join(f"{writer.name(value)}, " for value in names)
    writer.write(depth, f"{left}= {writer.args(node)[0]}" if names else "pass")


def _text(template: str) -> Callable[[_Writer, Any, int], None]:
    def write(writer: _Writer, node: Any, depth: int) -> None:
        writer.assign(depth, node, template.format(*writer.args(node)))

    return write


def _calling(function: str) -> Callable[[_Writer, Any, int], None]:
    def write(writer: _Writer, node: Any, depth: int) -> None:
        writer.assign(depth, node, f"{function}({', '.join(writer.args(node))})")

    return write


def _statement(function: str) -> Callable[[_Writer, Any, int], None]:
    def write(writer: _Writer, node: Any, depth: int) -> None:
        writer.write(depth, f"{function}({', '.join(writer.args(node))})")
        for value in node.outputs():
            writer.names[value.debugName()] = "None"

    return write


_ATTRIBUTES = (
    "dtype", "device", "type", "layout", "is_cuda", "is_quantized", "requires_grad", "is_nested", "is_sparse",
    "is_mkldnn", "is_meta", "itemsize",
)  # fmt: skip
_HANDLERS: dict[str, Callable[[_Writer, Any, int], None]] = {
    "prim::Constant": _constant,
    "prim::GetAttr": _get_attribute,
    "prim::SetAttr": _set_attribute,
    "prim::CallMethod": _call_method,
    "prim::CallFunction": _call_function,
    "prim::If": _if,
    "prim::Loop": _loop,
    "prim::ListConstruct": _list,
    "prim::TupleConstruct": _tuple,
    "prim::DictConstruct": _dict,
    "prim::ListUnpack": _unpack,
    "prim::TupleUnpack": _unpack,
    "prim::TupleIndex": _text("{0}[{1}]"),
    "prim::NumToTensor": _text("{0}"),
    "prim::unchecked_cast": _text("{0}"),
    "prim::unchecked_unwrap_optional": _text("{0}"),
    "prim::Uninitialized": _text("None"),
    **{f"prim::{name}": _text(f"{{0}}.{name}") for name in _ATTRIBUTES},
    "prim::name": _text("None"),
    "prim::data": _text("{0}.detach()"),
    "prim::grad": _text("{0}.grad"),
    **{f"prim::{name}": _calling(name) for name in ("min", "max", "abs")},
    "prim::rangelist": _text("list(range({0}))"),
    "prim::RaiseException": _statement("runtime.raise_error"),
    "prim::Print": _statement("runtime.ignore"),
    "aten::warn": _statement("runtime.ignore"),
}
"""Kind of statement -> the function that writes it; other operators are looked up in torch."""
