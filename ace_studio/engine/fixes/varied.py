"""Examples with other values of the same sizes, to detect a change that is only correct on the given examples."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ace_studio.engine.flow import Example


@dataclass(frozen=True)
class Variation:
    """One way to change the values of an example."""

    label: str
    change: Callable[[Tensor, torch.Generator], Tensor]
    keeps_integers: bool = True
    """Whether integers and booleans, such as lengths, ids and masks, are kept."""


def _drawn(tensor: Tensor, generator: torch.Generator) -> Tensor:
    if tensor.is_floating_point():
        spread = float(tensor.float().std()) if tensor.numel() > 1 else 0.0
        centre = float(tensor.float().mean()) if tensor.numel() else 0.0
        values = torch.randn(tensor.shape, generator=generator) * (spread or 1.0) + centre
        return values.to(tensor.dtype)
    return tensor


def _flipped(tensor: Tensor, _: torch.Generator) -> Tensor:
    return -tensor if tensor.is_floating_point() or tensor.is_complex() else tensor


def _zeros(tensor: Tensor, _: torch.Generator) -> Tensor:
    return torch.zeros_like(tensor) if tensor.is_floating_point() or tensor.is_complex() else tensor


def _small(tensor: Tensor, _: torch.Generator) -> Tensor:
    return tensor * 0.01 if tensor.is_floating_point() or tensor.is_complex() else tensor


def _other_integers(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Draw integers between the example's smallest and largest, so that lookups stay in range; invert booleans."""
    if tensor.dtype is torch.bool:
        return ~tensor
    if tensor.is_floating_point() or tensor.is_complex() or not tensor.numel():
        return tensor
    low, high = min(int(tensor.min()), 0), int(tensor.max())
    return torch.randint(low, high + 1, tensor.shape, generator=generator).to(tensor.dtype)


VARIATIONS = (
    Variation("other numbers", _drawn),
    Variation("opposite signs", _flipped),
    Variation("zeros", _zeros),
    Variation("numbers a hundred times smaller", _small),
    Variation("other integers", _other_integers, keeps_integers=False),
)


def varied(example: Example) -> Iterator[tuple[Variation, Example]]:
    """Yield the example with other values, once for every variation that changes something."""
    for number, variation in enumerate(VARIATIONS):
        generator = torch.Generator().manual_seed(number + 1)

        def change(tensor: Tensor, variation: Variation = variation, generator: torch.Generator = generator) -> Tensor:
            return variation.change(tensor.detach().cpu(), generator).to(tensor.device)

        made = example.map_tensors(change)
        pairs = zip(example.tensors(), made.tensors(), strict=True)
        if any(not torch.equal(one.cpu(), other.cpu()) for one, other in pairs):
            yield variation, made
