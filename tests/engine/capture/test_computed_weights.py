"""Weights that forward computes from stored tensors alone are written out; all others stay computed."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from tests.engine.capture.captures import capture

EXPORT = Recipe(capture=CaptureChoice(rungs=("export",)))


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4))
        self.bias = nn.Parameter(torch.randn(6))


class Scaled(Base):
    def forward(self, x):
        return functional.linear(x, self.weight * 0.5, self.bias)


class Masked(Base):
    def forward(self, x):
        return functional.linear(x, self.weight * torch.tril(torch.ones(6, 4)), self.bias)


class LowRank(Base):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.randn(6, 2))

    def forward(self, x):
        return x @ (self.weight + self.up @ self.down).t() + self.bias


class Standardized(nn.Conv1d):
    def forward(self, x):
        mean, std = self.weight.mean((1, 2), keepdim=True), self.weight.std((1, 2), keepdim=True)
        return functional.conv1d(x.unsqueeze(1), (self.weight - mean) / std, self.bias)


class CalledTwice(Base):
    def forward(self, x):
        return self.layer(x) + self.layer(x * 2)

    def layer(self, x):
        return functional.linear(x, self.weight * 0.5, self.bias)


class Transposed(Base):
    def forward(self, x):
        return x @ self.weight.t()


class ReadTwice(Base):
    def forward(self, x):
        return functional.linear(x, self.weight * 2, self.bias) + self.weight.sum(1)


class FromBytes(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("stored", torch.randint(-127, 128, (6, 4), dtype=torch.int8))

    def forward(self, x):
        return functional.linear(x, self.stored.float() * 0.01, self.bias)


class Counted(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(6, 4))

    def forward(self, x):
        self.calls.add_(1)
        return functional.linear(x, self.weight / self.calls, self.bias)


class FromInput(Base):
    def forward(self, x):
        return functional.linear(x, self.weight * x.mean(), self.bias)


class NoWeight(Base):
    def forward(self, x):
        return functional.linear(x, self.weight) + self.bias.exp()


def captured_with(module):
    captured, _ = capture(module.eval(), [(torch.randn(2, 4),), (torch.randn(3, 4),)], EXPORT)
    return captured, [captured.table.op_id[row] for row in captured.table.op_rows()]


@pytest.mark.parametrize(
    ("module", "ops", "names"),
    [
        (Scaled(), ["linear"], {"weight_computed", "bias"}),
        (Masked(), ["linear"], {"weight_computed", "bias"}),
        (LowRank(), ["matmul_1", "add_1"], {"weight_computed", "bias"}),
        (CalledTwice(), ["linear", "mul_1", "linear_1", "add"], {"weight_computed", "bias"}),
        (Standardized(1, 3, 2), ["unsqueeze", "conv1d"], {"weight_computed", "bias"}),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, nn.Module) else "",
)
def test_a_weight_that_forward_computes_is_a_parameter_of_the_graph(module, ops, names):
    captured, found = captured_with(module)
    assert found == ops
    assert set(captured.program.state_dict) == names
    graph = captured.program.module()
    with torch.no_grad():
        x = torch.randn(7, 4)
        torch.testing.assert_close(graph(x), module(x))
    assert "weight" in module.state_dict()


@pytest.mark.parametrize(
    ("module", "op"),
    [
        (Transposed(), "t"), (ReadTwice(), "mul"), (FromBytes(), "mul"), (Counted(), "div"), (FromInput(), "mul"),
        (NoWeight(), "exp"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, nn.Module) else "",
)  # fmt: skip
def test_what_is_only_viewed_read_elsewhere_smaller_or_not_constant_stays_computed(module, op):
    captured, found = captured_with(module)
    assert op in found
    assert not any(name.endswith("_computed") for name in captured.program.state_dict)
