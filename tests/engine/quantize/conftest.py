"""Small programs to rewrite: tests take copies of their graphs, and change none of them."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from tests import tiny_models


class ConvPair(nn.Module):
    """Two convolutions, the first over one channel and with a batch norm, then a linear layer."""

    def __init__(self, conv: type[nn.Module], norm: type[nn.Module]) -> None:
        super().__init__()
        self.first, self.norm = conv(1, 8, 3), norm(8)
        self.second = conv(8, 6, 3)
        self.head = nn.Linear(6, 4)
        nn.init.uniform_(self.norm.running_mean, -0.5, 0.5)
        nn.init.uniform_(self.norm.running_var, 0.5, 1.5)

    def forward(self, x):
        x = self.second(torch.relu(self.norm(self.first(x))))
        return self.head(torch.relu(x).flatten(2).mean(2))


class Program:
    """A module, its example and what torch exports of it with a dynamic batch."""

    def __init__(self, module: nn.Module, example: torch.Tensor) -> None:
        self.module, self.example = module.eval(), example
        with torch.no_grad():
            self.exported = export_program(self.module, (example,), {}, dynamic_shapes=({0: DYNAMIC},), strict=False)
            self.expected = self.module(example)


def _seeded(make: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return make()


def _values(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="session")
def conv1d() -> Program:
    return Program(_seeded(lambda: ConvPair(nn.Conv1d, nn.BatchNorm1d)), _values(4, 1, 24))


@pytest.fixture(scope="session")
def conv2d() -> Program:
    return Program(_seeded(lambda: ConvPair(nn.Conv2d, nn.BatchNorm2d)), _values(4, 1, 12, 12))


@pytest.fixture(scope="session")
def mlp() -> Program:
    return Program(tiny_models.mlp().module, _values(5, 16))
