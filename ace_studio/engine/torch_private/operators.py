"""What torch says of its operators: their arguments, tags, forms and kernels."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram

Operator = OpOverload
"""The class of torch's operators, such as ``aten.conv2d.default``."""


def is_operator(target: object) -> bool:
    """Whether the target of a node is one of torch's operators, such as ``aten.conv2d.default``."""
    return isinstance(target, OpOverload)


def is_higher_order(target: object) -> bool:
    """Whether the target takes graphs as arguments, such as ``cond``."""
    return isinstance(target, HigherOrderOperator)


def writes_in_place(target: object) -> bool:
    """Whether the operator changes one of its arguments."""
    return isinstance(target, OpOverload) and target._schema.is_mutable


def gives_view(target: object) -> bool:
    """Whether the operator may give memory of one of its arguments, such as ``t`` or ``reshape``."""
    return isinstance(target, OpOverload) and any(one.alias_info is not None for one in target._schema.returns)


def is_pointwise(target: object) -> bool:
    """Whether torch says that the operator works element by element."""
    return isinstance(target, OpOverload) and torch.Tag.pointwise in target.tags


def is_random(target: object) -> bool:
    """Whether torch says that the operator draws random numbers."""
    return isinstance(target, OpOverload) and torch.Tag.nondeterministic_seeded in target.tags


def argument_names(target: object) -> list[str]:
    """Names of the operator's arguments in order; empty for what is not an operator."""
    schema = getattr(target, "_schema", None)
    return [argument.name for argument in schema.arguments] if schema is not None else []


def result_dtype(value: object) -> torch.dtype | None:
    """Element type of an op's result, of the first one if there are several; None if that is no tensor."""
    value = value[0] if isinstance(value, tuple | list) and value else value
    return value.dtype if isinstance(value, torch.Tensor) else None


@contextmanager
def whole_operators() -> Iterator[None]:
    """Operators reach a dispatch mode as graphs name them (``linear``), not in parts (``t``, ``addmm``).

    Autograd takes them to pieces, and is left out; so gradients that forward itself asks for raise RuntimeError.
    """
    with torch._C._AutoDispatchBelowAutograd():
        yield


_OWN_FAMILIES = frozenset({"aten", "prim", "prims", "quantized_decomposed", "quantized", "mkldnn", "inductor"})


def foreign_operators(program: ExportedProgram) -> list[str]:
    """The operators of a graph that do not come with torch, in their order."""
    targets = [node.target for node in program.graph.nodes if is_operator(node.target)]
    return list(dict.fromkeys(str(target) for target in targets if target.namespace not in _OWN_FAMILIES))


def functional_form(target: Any) -> Any:
    """The functional variant of an in-place operator; ``target`` itself if it has none."""
    name = str(getattr(target, "_opname", ""))
    if not is_operator(target) or not name.endswith("_") or name.startswith("_"):
        return target
    packet = getattr(getattr(torch.ops, target.namespace), name.rstrip("_"), None)
    return getattr(packet, target._overloadname, target)


def call_symbolically(target: Any, *arguments: Any) -> Any:
    """The example value of an operator on example values.

    Uses torch's Python implementations where there are any, because some in C++ (``constant_pad_nd``, torch 2.13) fix
    every dynamic size at the traced one.
    """
    from torch._dispatch.python import enable_python_dispatcher  # noqa: PLC0415 - private

    with enable_python_dispatcher():
        return target(*arguments)


def register_quantized_ops() -> None:
    """Register the ``quantized_decomposed`` ops, which a saved int8 program calls."""
    importlib.import_module("torch.ao.quantization.fx._decomposed")


def half_precision_problem(dtype: torch.dtype) -> str:
    """Why this processor does not compute in the 16-bit type, according to oneDNN; empty if it does."""
    name = str(dtype).removeprefix("torch.")
    asked = {torch.bfloat16: "_is_mkldnn_bf16_supported", torch.float16: "_is_mkldnn_fp16_supported"}[dtype]
    if getattr(torch.ops.mkldnn, asked)():
        return ""
    needed = "avx512_bf16 or amx" if dtype is torch.bfloat16 else "avx512_fp16 or amx_fp16"
    return f"this processor has no {name} arithmetic ({needed}): every value would be converted back and forth"
