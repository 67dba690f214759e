"""Captured models and their scans."""

from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.sensitivity import Scan, ScanRequest
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe

BOTH = (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)


def captured_of(module, *examples):
    module.eval()
    with torch.no_grad():
        return capture_model(
            LoadedModel(module=module, source=Path(), sha256=""),
            [Example(args=one) for one in examples],
            Recipe(capture=CaptureChoice(rungs=("export",))),
            device=torch.device("cpu"),
            reporter=Reporter(),
        )[0]


def random_values(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def scan_of(captured, samples, *, precisions=BOTH, reporter=None, **options):
    return Scan(ScanRequest(captured=captured, samples=samples, precisions=precisions, **options), reporter)


def rank(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return torch.tensor(ranks, dtype=torch.float64)


def spearman(one, other):
    return float(torch.corrcoef(torch.stack([rank(one), rank(other)]))[0, 1])


class Chain(nn.Module):
    """Linear layers, some with an outlier channel, with norms and residual additions between them."""

    def __init__(self, outliers, *, width=16):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in outliers)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in outliers)
        with torch.no_grad():
            for layer, outlier in zip(self.layers, outliers, strict=True):
                layer.weight[3] *= outlier

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + F.gelu(layer(norm(x)))
        return x


class Mixed(nn.Module):
    """Eight residual blocks of convolutions, their means side by side as an output of its own, and a head."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(8))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for conv in self.convs:
            x = F.relu(x + conv(x))
        pooled = torch.cat([F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(F.leaky_relu(conv(x)), 1)], 1)
        return self.head(pooled.flatten(1)), pooled
