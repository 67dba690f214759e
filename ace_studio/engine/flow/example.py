"""One call of a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree


@dataclass(frozen=True)
class Example:
    """One call of the model: ``module(*args, **kwargs)``. Leaves may be tensors or plain values, nested freely."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: object) -> Example:
        """Read what users write: a tuple or list is args, a dict with text keys is kwargs, the rest is one argument."""
        if isinstance(value, Example):
            return value
        if isinstance(value, tuple | list):
            return cls(args=tuple(value))
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return cls(kwargs=dict(value))
        return cls(args=(value,))

    def call(self, function: Callable[..., Any]) -> Any:
        """``function(*args, **kwargs)``."""
        return function(*self.args, **self.kwargs)

    def tensors(self) -> list[Tensor]:
        """The tensor leaves in pytree order: args first, then kwargs in their order."""
        return tensor_leaves((self.args, dict(self.kwargs)))

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of every tensor leaf."""
        return tuple(tuple(tensor.shape) for tensor in self.tensors())

    @property
    def size_words(self) -> str:
        """The sizes of its tensors for a person: ``16x3x32x32, scalar``."""
        return ", ".join("x".join(map(str, shape)) or "scalar" for shape in self.shapes())

    def map_tensors(self, change: Callable[[Tensor], Tensor]) -> Example:
        """The same call with every tensor leaf replaced by ``change(leaf)``."""
        args, kwargs = pytree.tree_map_only(Tensor, change, (self.args, dict(self.kwargs)))
        return Example(args=args, kwargs=kwargs)

    def copied(self) -> Example:
        """The same call with tensors of its own, so that a forward which writes into its inputs does no harm."""
        return self.map_tensors(lambda tensor: tensor.detach().clone())


def tensor_leaves(value: object) -> list[Tensor]:
    """The tensors inside any nesting of containers, in pytree order."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


_FEW_LEAVES = 1_000_000
_MOST_REPEATS = 10


def repeats_without_end(value: object, *, most: float = math.inf) -> bool:
    """Whether lists and tables in ``value`` contain each other so often that a walk of all leaves would not end.

    With a finite ``most`` one that contains itself does not count: a walk of it ends with a RecursionError.

    Each container is visited once: thirty lists that hold the next one twice have a billion leaves. One that contains
    itself has no end either.
    """
    sizes: dict[int, float] = {}
    held = 0
    stack = [(value, False)]
    while stack:
        one, is_done = stack.pop()
        inner = list(one.values()) if isinstance(one, Mapping) else one if isinstance(one, list | tuple) else None
        if inner is None or (id(one) in sizes and not is_done):
            continue
        if is_done:
            sizes[id(one)] = sum(sizes.get(id(item), 1) for item in inner)
        else:
            sizes[id(one)] = math.inf  # while its members are looked at
            held += len(inner)
            stack.append((one, True))
            stack.extend((item, False) for item in inner)
    return _FEW_LEAVES + _MOST_REPEATS * held < sizes.get(id(value), 1) <= most


def measured_places(outputs: Sequence[Tensor]) -> list[int]:
    """Places of the outputs that a fidelity is measured on: real or complex numbers; if there are none, all.

    The distance between two indices, labels or truth values means nothing: of two scores that nearly tie, rounding
    puts either first.
    """
    numeric = [place for place, leaf in enumerate(outputs) if leaf.is_floating_point() or leaf.is_complex()]
    return numeric or list(range(len(outputs)))


def pooled_outputs(outputs: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Each output over all examples as one flat tensor."""
    return [torch.cat([one.reshape(-1) for one in leaves]) for leaves in zip(*outputs, strict=True)]
