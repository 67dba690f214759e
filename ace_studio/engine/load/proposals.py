"""Proposes example inputs from a model's own description: sizes from its configuration, random values."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from ace_studio.engine.examples.leaves import forward_parameters
from ace_studio.engine.examples.rows import call_of, made_up_tensor
from ace_studio.engine.flow import Example
from ace_studio.records.tensors import TensorSpec, ValueSource


@dataclass(frozen=True)
class ProposedInput:
    """One input of one example."""

    name: str
    """Parameter of forward; ``images.0`` is the first item of a list."""
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    values: ValueSource = ValueSource.RANDOM
    below: int = 0
    """Exclusive upper bound of random integers, also of floats that carry such; 0: none."""
    span: tuple[float, float] | None = None
    """Lowest and highest of random floats, uniform between them; None: standard normal."""

    def spec(self) -> TensorSpec:
        """The input as a cell of the shape table."""
        values = str(self.values)
        if self.values is ValueSource.RANDOM and (self.span or self.below) and self.dtype is not torch.bool:
            low, high = self.span or (0, self.below - 1)
            values += f" {low:g}..{high:.9g}"
        return TensorSpec(shape=self.shape, dtype=str(self.dtype).removeprefix("torch."), values=values)


ProposedRow = tuple[ProposedInput, ...]
"""The inputs of one example."""


def specs_of(rows: Iterable[ProposedRow]) -> tuple[dict[str, TensorSpec], ...]:
    """The rows in the form that the recipe has."""
    return tuple({one.name: one.spec() for one in row} for row in rows)


def said_of(row: ProposedRow) -> str:
    """``ids 1x16, mask 1x16``, for messages."""
    return ", ".join(f"{one.name} {'x'.join(map(str, one.shape)) or 'scalar'}" for one in row)


def examples_of(rows: Iterable[ProposedRow], module: nn.Module) -> tuple[Example, ...]:
    """The rows as calls of the module: leading parameters by position, the rest by name."""
    parameters = forward_parameters(module)
    values = ({one.name: made_up_tensor(one.spec(), number=at) for one in row} for at, row in enumerate(rows))
    return tuple(call_of(one, parameters) for one in values)
