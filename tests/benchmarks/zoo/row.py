"""One row of the zoo: an architecture, and the calls that show which of its sizes change."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """An architecture with random weights, two examples or more, and one call at sizes that capture never sees."""

    name: str
    family: str
    build: Callable[[], nn.Module]
    example: Callable[..., Any]
    """Sizes -> a call: a tuple is args, a dict is kwargs."""
    sizes: tuple[Sizes, ...]
    """The sizes of every example; what differs between them must stay dynamic."""
    unseen: Sizes
    cost: int = 1
    """1: seconds, 2: tens of seconds, 3: more; rows run in this order."""
    rungs: tuple[str, ...] = field(default=())
    """Rungs of the ladder to try; empty for all."""

    def examples(self) -> list[Any]:
        """The calls that a user would give."""
        return [self.example(*sizes) for sizes in self.sizes]

    def unseen_example(self) -> Any:
        """The call that nobody gave."""
        return self.example(*self.unseen)

    def module(self) -> nn.Module:
        """The network in eval mode, the same numbers every time."""
        torch.manual_seed(0)
        return self.build().eval()


def generator(*sizes: int) -> torch.Generator:
    """Numbers that depend on the sizes only."""
    return torch.Generator().manual_seed(sum(sizes))


def image(batch: int, height: int, width: int) -> tuple[Tensor]:
    """x [batch, 3, height, width]."""
    return (torch.rand(batch, 3, height, width, generator=generator(batch, height, width)),)


def square(batch: int, side: int = 64) -> tuple[Tensor]:
    """x [batch, 3, side, side]."""
    return image(batch, side, side)


def tokens(batch: int, length: int, *, high: int = 99) -> Tensor:
    """Ids [batch, length] in [3, high)."""
    return torch.randint(3, high, (batch, length), generator=generator(batch, length))


def text(batch: int, length: int) -> dict[str, Tensor]:
    """``input_ids`` and ``attention_mask`` [batch, length]; the last row is padded by two."""
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, -2:] = 0
    return {"input_ids": tokens(batch, length), "attention_mask": mask}


def ids(batch: int, length: int) -> dict[str, Tensor]:
    """``input_ids`` [batch, length]."""
    return {"input_ids": tokens(batch, length)}


def features(*shape: int) -> tuple[Tensor]:
    """x of any shape."""
    return (torch.randn(*shape, generator=generator(*shape)),)
