"""Leaves of nested values and their names: ``batch.input_ids`` in an example, ``logits`` or ``1.0`` in a result.

A name stands for every leaf below it.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ace_studio.engine.flow import Example

Parameters = Mapping[str, inspect.Parameter]
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Leaf:
    """One value inside an example."""

    name: str
    value: Any

    @property
    def tensor(self) -> Tensor | None:
        """The value if it is a tensor."""
        return self.value if isinstance(self.value, Tensor) else None


def forward_parameters(module: nn.Module) -> Parameters:
    """The parameters of the module's forward, without ``self``; empty if Python cannot tell."""
    try:
        return inspect.signature(module.forward).parameters
    except (TypeError, ValueError):
        return {}


def is_variadic(parameter: inspect.Parameter) -> bool:
    """Whether it is ``*args`` or ``**kwargs``."""
    return parameter.kind in _VARIADIC


def variadic_name(parameters: Parameters) -> str:
    """Name of forward's ``*args``; empty if it has none."""
    kind = inspect.Parameter.VAR_POSITIONAL
    return next((name for name, parameter in parameters.items() if parameter.kind is kind), "")


def named_leaves(example: Example, parameters: Parameters) -> list[Leaf]:
    """Every leaf with its name, in the order of ``Example.tensors``."""
    found, _ = pytree.tree_flatten_with_path((example.args, dict(example.kwargs)))
    return [Leaf(_name(path, parameters), value) for path, value in found]


def structure(example: Example) -> pytree.TreeSpec:
    """The nesting of the example, to compare with another's."""
    return pytree.tree_structure((example.args, dict(example.kwargs)))


def _name(path: Sequence[Any], parameters: Parameters) -> str:
    keys = path_keys(path)
    if keys[0] == "1":
        return ".".join(keys[1:])
    position = int(keys[1])
    names = [name for name, parameter in parameters.items() if parameter.kind in BY_POSITION]
    if position < len(names):
        return ".".join([names[position], *keys[2:]])
    return ".".join([variadic_name(parameters) or "args", str(position - len(names)), *keys[2:]])


def tensor_paths(value: object) -> list[tuple[str, Tensor]]:
    """Name and tensor of every tensor leaf of a result, in pytree order. A lone tensor is called ``0``."""
    found, _ = pytree.tree_flatten_with_path(value)
    return [(".".join(path_keys(path)) or "0", leaf) for path, leaf in found if isinstance(leaf, Tensor)]


def positions_below(paths: Sequence[str], path: str) -> list[int]:
    """Indices of the paths that are ``path`` or lie below it."""
    return [index for index, one in enumerate(paths) if one == path or one.startswith(path + ".")]


def path_keys(path: Sequence[Any]) -> list[str]:
    """The keys, indices and field names of a path into containers."""
    return [str(_key(part)) for part in path]


def _key(part: Any) -> Any:
    for attribute in ("key", "idx", "name"):
        if hasattr(part, attribute):
            return getattr(part, attribute)
    return part


def describe(example: Example, parameters: Parameters) -> str:
    """The example in a few words: ``x float32 2x15, scale 1.0``."""
    shown = []
    for leaf in named_leaves(example, parameters)[:8]:
        if (tensor := leaf.tensor) is not None:
            size = "x".join(map(str, tensor.shape)) or "scalar"
            shown.append(f"{leaf.name} {dtype_name(tensor)} {size}")
        else:
            shown.append(f"{leaf.name} {leaf.value!r}"[:60])
    return ", ".join(shown)


def is_same_value(one: object, other: object) -> bool:
    """Whether two values that are no tensors are the same to a graph, which holds them fixed."""
    if type(one) is not type(other):
        return False
    try:
        return bool(one == other)
    except (ValueError, TypeError, RuntimeError):
        return False  # an array, whose comparison is not one truth; a graph cannot hold it as a plain value


def resized(tensor: Tensor, dim: int, size: int) -> Tensor:
    """The tensor with another size in one dimension: cropped, or with its content repeated from the start.

    Booleans are stretched or shrunk: padding stays at its end of a row, and a triangle stays a triangle. What was empty
    becomes zeros.
    """
    own = tensor.shape[dim]
    if own == size:
        return tensor
    if own == 0:
        return tensor.new_zeros((*tensor.shape[:dim], size, *tensor.shape[dim + 1 :]))
    places = torch.arange(size, device=tensor.device)
    chosen = places * own // max(size, 1) if tensor.dtype is torch.bool else places % own
    return tensor.index_select(dim, chosen)


def dtype_name(tensor: Tensor) -> str:
    """``float32``."""
    return str(tensor.dtype).removeprefix("torch.")
