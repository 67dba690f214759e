"""Small captured models and what improving them gives."""

import torch
from torch import nn

from ace_studio.engine.improve import improve
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import Simulator, float_graph
from tests.engine.captured import captured_of as captured_module


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def captured_of(make, *shape):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = make().eval()
    return captured_module(module, *(torch.randn(n, *shape, generator=seeded(n)) for n in (2, 3)))


def examples_of(count, *shape):
    return [[torch.randn(4, *shape, generator=seeded(100 + index))] for index in range(count)]


def improved_by(captured, plan, methods, examples):
    bound = bind_plan(plan, captured.table, op_problem=lambda op, precision: "")
    return improve(captured, bound, methods, examples, ranges=RangeChoice(), reporter=Reporter())


def outputs_of(captured, example):
    return Simulator(float_graph(captured)).float_outputs(example)[0]


class Convs(nn.Module):
    """Convolutions with a norm and ReLU between them, channels of very different size; the last is depthwise."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8)
        self.second, self.third = nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3, groups=8)
        self.head = nn.Linear(8, 5)
        with torch.no_grad():
            sizes = torch.logspace(-1.5, 1.5, 8)
            self.norm.weight.copy_(sizes)
            self.norm.bias.copy_(sizes / 3)
            self.second.weight.div_(sizes[None, :, None, None])

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        x = torch.relu(self.third(torch.relu(self.second(x))))
        return self.head(x.mean((2, 3)))


class Block(nn.Module):
    """A norm with outlier channels in front of two linear layers, as in an encoder."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.gate = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(32, 64)
        self.down = nn.Linear(64, 16)
        with torch.no_grad():
            self.norm.weight[3], self.norm.weight[17] = 60.0, 40.0
            for layer in (self.up, self.gate):
                layer.weight[:, 3] /= 60.0
                layer.weight[:, 17] /= 40.0

    def forward(self, x):
        y = self.norm(x)
        return self.down(torch.nn.functional.gelu(self.up(y)) * self.gate(y))
