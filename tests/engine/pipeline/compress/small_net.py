"""Two linear layers and their inputs, for whole jobs that take a second."""

import torch
from torch import nn


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval()


def points(n: int, seed: int, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(n, 8, generator=torch.Generator().manual_seed(seed)) * scale
