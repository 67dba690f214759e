"""The graph of a TorchScript method is translated to Python."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.load.torchscript.source import write_method
from tests.engine.load.samples import load
from tests.engine.load.torchscript.test_program import is_equal, random, save

pytestmark = pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")


def halves(x: Tensor, times: int) -> Tensor:
    for _ in range(times):
        x = x / 2
    return x


class Awkward(nn.Module):
    """Branches on a flag and on a size, loops, a function of the user's, constants, and a table as the result."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.scale = 3
        self.shift = torch.tensor([1.0, 2.0, 3.0, 4.0])
        self.act = nn.Hardswish()

    def forward(self, x: Tensor, is_twice: bool = False) -> dict[str, Tensor]:
        for layer in self.layers:
            x = self.act(layer(x)) * self.scale + self.shift
        if is_twice:
            x = x * 2
        if x.shape[0] > 100:
            x = x[:100]
        count = 0
        while count < x.dim():
            x = x + count
            count += 1
        subgraphs: list[Tensor] = []
        for subgraph in x.unbind(1):
            subgraphs.append(subgraph.clamp(min=-1e9, max=float("inf")))  # noqa: PERF401 - a loop to be scripted
        return {"whole": halves(torch.stack(subgraphs, 1), 3).view(x.size(0), -1), "tail": x[..., -1]}


def test_a_scripted_program_is_written_statement_by_statement(tmp_path):
    program = torch.jit.script(Awkward().eval())
    module = load(tmp_path, save(program, tmp_path)).module
    x = random(3, 4)
    assert is_equal(module, program, x)
    assert is_equal(module, program, x, True)
    assert is_equal(module, program, random(120, 4))


def test_what_is_written_reads_like_the_original():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(self.linear(x))

    text = write_method(torch.jit.script(Net()), "forward").text
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "def forward(self, x_1):" or lines[0] == "def forward(self, x):"
    assert any(line.endswith("= self.linear") for line in lines)
    assert any("torch.ops.aten.relu.default(" in line for line in lines)


def test_the_result_can_be_compiled_whole(tmp_path):
    program = torch.jit.script(Awkward().eval())
    module = load(tmp_path, save(program, tmp_path)).module
    assert is_equal(torch.compile(module, backend="eager", fullgraph=True), program, random(3, 4))
