"""Proposes example inputs from a model's own description: sizes from its configuration, random values."""

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example
from ace_studio.records.tensors import TensorSpec, ValueSource

_SEED = 20240607


@dataclass(frozen=True)
class ProposedInput:
    """One input of one example."""

    name: str
    """Parameter of forward; ``images.0`` is the first item of a list."""
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    values: ValueSource = ValueSource.RANDOM
    below: int = 0
    """Exclusive upper bound of random integers."""
    span: tuple[float, float] | None = None
    """Lowest and highest of random floats, uniform between them; None: standard normal."""

    def spec(self) -> TensorSpec:
        """The input as a cell of the shape table."""
        is_bounded = self.values is ValueSource.RANDOM and self.below > 0 and self.dtype is not torch.bool
        bounds = f" 0..{self.below - 1}" if is_bounded else ""
        if self.span is not None:
            bounds = f" {self.span[0]:g}..{self.span[1]:g}"
        return TensorSpec(
            shape=self.shape, dtype=str(self.dtype).removeprefix("torch."), values=f"{self.values}{bounds}"
        )

    def tensor(self, *, seed: int) -> Tensor:
        """The input as a tensor, the same one for the same seed."""
        generator = torch.Generator().manual_seed(_SEED + seed)
        if self.values is not ValueSource.RANDOM:
            return torch.full(self.shape, int(self.values is ValueSource.ONES), dtype=self.dtype)
        if self.span is not None:
            low, high = self.span
            return (torch.rand(self.shape, generator=generator) * (high - low) + low).to(self.dtype)
        if self.dtype.is_floating_point:
            return torch.randn(self.shape, generator=generator).to(self.dtype)
        return torch.randint(0, max(1, self.below), self.shape, generator=generator).to(self.dtype)


ProposedRow = tuple[ProposedInput, ...]
"""The inputs of one example."""


def specs_of(rows: Iterable[ProposedRow]) -> tuple[dict[str, TensorSpec], ...]:
    """The rows in the form that the recipe has."""
    return tuple({one.name: one.spec() for one in row} for row in rows)


def examples_of(rows: Sequence[ProposedRow], module: nn.Module) -> tuple[Example, ...]:
    """The rows as calls of the module: leading parameters by position, the rest by name."""
    return tuple(_example(row, module, seed=number) for number, row in enumerate(rows))


def _example(row: ProposedRow, module: nn.Module, *, seed: int) -> Example:
    values: dict[str, Any] = {}
    for one in row:
        name, dot, _ = one.name.partition(".")
        tensor = one.tensor(seed=seed)
        if dot:
            values.setdefault(name, []).append(tensor)
        else:
            values[name] = tensor
    args = []
    for name in first_parameters(module):
        if name not in values:
            break
        args.append(values.pop(name))
    return Example(args=tuple(args), kwargs=values)


def first_parameters(module: nn.Module) -> list[str]:
    """Names of forward's positional parameters, in order."""
    parameters = inspect.signature(module.forward).parameters.values()
    return [one.name for one in parameters if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
