"""Functions that the Python translation of a TorchScript graph calls: operators on numbers, lists and tensors.

A traced program computes sizes with 0-d tensors. Here such a number stays a number, so that a size can stay dynamic
when the translation is traced.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_DTYPES = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32,
    7: torch.float64, 9: torch.complex64, 10: torch.complex128, 11: torch.bool, 15: torch.bfloat16,
}  # fmt: skip
"""TorchScript's number for an element type -> the type."""


_whole: Callable[[Any], Any] = torch.sym_int
_real: Callable[[Any], Any] = torch.sym_float


def as_int(value: Any) -> Any:
    """Convert a number or a tensor with one element to an integer; a dynamic size stays dynamic."""
    if isinstance(value, Tensor):
        return value.item()
    return value if isinstance(value, int | torch.SymInt) else _whole(value)


def as_float(value: Any) -> Any:
    """Convert a number or a tensor with one element to a float."""
    return value.item() if isinstance(value, Tensor) else _real(value)


def as_bool(value: Any) -> Any:
    """Convert a number or a tensor with one element to a bool."""
    return value.item() if isinstance(value, Tensor) else bool(value)


def number_as_tensor(value: Any) -> Tensor:
    """Convert a number to a tensor for an operator that takes tensors only."""
    return value if isinstance(value, Tensor) else torch.scalar_tensor(value, dtype=_dtype_of(value))


def _dtype_of(value: Any) -> torch.dtype:
    if isinstance(value, bool):
        return torch.bool
    return torch.int64 if isinstance(value, int | torch.SymInt) else torch.float32


def same(one: Any, other: Any) -> Any:
    """``==`` that also compares an element type with TorchScript's number for it."""
    if isinstance(one, torch.dtype) and isinstance(other, int):
        return one == _DTYPES.get(other)
    if isinstance(other, torch.dtype) and isinstance(one, int):
        return other == _DTYPES.get(one)
    return one == other


def divide(one: Any, other: Any, rounding: str | None = None) -> Any:
    """Divide numbers with the rounding mode of ``torch.div``."""
    if rounding is None:
        return one / other
    return one // other if rounding == "floor" else _whole(one / other)


def convolution(source: Tensor, weight: Tensor, bias: Tensor | None, *settings: Any) -> Tensor:
    """Call the specific convolution for the general one of traced programs, so that later stages recognize it.

    Settings are stride, padding, dilation, transposed, output padding and groups; further ones choose kernels.
    """
    stride, padding, dilation, is_transposed, output_padding, groups = settings[:6]
    dims = weight.dim() - 2
    if is_transposed:
        transposed: Callable[..., Tensor] = getattr(functional, f"conv_transpose{dims}d")
        return transposed(source, weight, bias, stride, padding, output_padding, groups, dilation)
    plain: Callable[..., Tensor] = getattr(functional, f"conv{dims}d")
    return plain(source, weight, bias, stride, padding, dilation, groups)


def raise_error(message: Any, *_: Any) -> None:
    """Raise the program's own error. Raises: RuntimeError."""
    raise RuntimeError(f"the TorchScript program raised: {message}")


def make_tensor(value: Any, dtype: Any = None, device: Any = None, *_: Any) -> Tensor:
    """``torch.tensor``, with TorchScript's number for the type."""
    return torch.tensor(value, dtype=_DTYPES[dtype] if isinstance(dtype, int) else dtype, device=device)


def ignore(*_: Any) -> None:
    """Do nothing, for prints and warnings, which a graph does not hold."""


def append(items: list[Any], item: Any) -> list[Any]:
    """Append in place."""
    items.append(item)
    return items


def set_item(items: Any, key: Any, item: Any) -> Any:
    """Set an item in place."""
    items[key] = item
    return items


def pop(items: list[Any], index: int = -1) -> Any:
    """Remove and return an item."""
    return items.pop(index)


def sliced(items: Any, start: int | None = None, stop: int | None = None, step: int = 1) -> Any:
    """Slice a list or text; TorchScript writes the largest integer for an open end."""
    return items[slice(start, stop, step)]


ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": lambda one, other, alpha=1: one + other * alpha if alpha != 1 else one + other,
    "sub": lambda one, other, alpha=1: one - other * alpha if alpha != 1 else one - other,
    "rsub": lambda one, other, alpha=1: other - one * alpha,
    "mul": operator.mul,
    "div": divide,
    "true_divide": operator.truediv,
    "floordiv": operator.floordiv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "mod": operator.mod,
    "fmod": math.fmod,
    "pow": operator.pow,
    "neg": operator.neg,
    "abs": abs,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
    "eq": same,
    "ne": lambda one, other: not same(one, other),
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
    "sqrt": torch.sym_sqrt if hasattr(torch, "sym_sqrt") else math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "max": max,
    "min": min,
    "detach": lambda value: value,
    "to": lambda value, *_, **__: value,
    "contiguous": lambda value, *_, **__: value,
    "__not__": operator.not_,
    "logical_not": operator.not_,
    "__and__": lambda one, other: one and other,
    "__or__": lambda one, other: one or other,
    "__xor__": operator.xor,
    "__is__": operator.is_,
    "__isnot__": operator.is_not,
    "__getitem__": lambda items, key: items[key],
    "__contains__": lambda items, item: item in items,
    "len": len,
    "Int": as_int,
    "IntImplicit": as_int,
    "Float": as_float,
    "FloatImplicit": as_float,
    "Bool": as_bool,
    "ScalarImplicit": as_int,
    "append": append,
    "extend": lambda items, more: items.extend(more),
    "insert": lambda items, index, item: items.insert(index, item),
    "pop": pop,
    "_set_item": set_item,
    "reverse": lambda items: items.reverse(),
    "list": list,
    "copy": lambda items: items.copy(),
    "keys": lambda table: list(table.keys()),
    "values": lambda table: list(table.values()),
    "items": lambda table: list(table.items()),
    "get": lambda table, key, default=None: table.get(key, default),
    "slice": sliced,
    "size": lambda value, *dim: value.size(*dim) if dim else list(value.size()),
    "dim": lambda value: value.dim(),
    "is_floating_point": lambda value: value.is_floating_point(),
    "format": lambda text, *values: text.format(*values),
    "str": str,
    "join": lambda text, items: text.join(items),
    "warn": ignore,
    "_unwrap_optional": lambda value: value,
    "tensor": make_tensor,
}
"""Operator -> its function on numbers, texts, lists and dicts; tensors go to torch's own operator, if there is one."""

ALWAYS_HERE = frozenset(
    {"size", "dim", "len", "__is__", "__isnot__", "Int", "IntImplicit", "Float", "FloatImplicit", "Bool", "tensor"}
    | {"ScalarImplicit", "__getitem__", "append", "warn", "format", "_unwrap_optional", "is_floating_point", "list"}
)
"""Operators that never call torch's, whatever their arguments."""


def call(name: str, overload: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call torch's operator if an argument is a tensor, else the function on numbers."""
    if any(isinstance(value, Tensor) for value in args):
        return overload(*args, **kwargs)
    return ON_NUMBERS[name](*args, **kwargs)
