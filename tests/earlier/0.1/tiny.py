import torch
from torch import nn


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(8, 16)
        self.last = nn.Linear(16, 4)

    def forward(self, x):
        return self.last(torch.relu(self.inner(x)))


def calibration():
    torch.manual_seed(1)
    return [(torch.randn(4, 8),) for _ in range(4)]
