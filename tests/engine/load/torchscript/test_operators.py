"""Operators of a TorchScript graph become calls of torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.load.torchscript.operators import UntranslatableError, operator_text
from ace_studio.records.errors import ErrorCode
from tests.engine.load.samples import problem_of
from tests.engine.load.torchscript.test_program import save

pytestmark = pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")


def test_a_statement_without_a_counterpart_is_named(tmp_path):
    class Forks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.jit.wait(torch.jit.fork(torch.relu, x))

    problem = problem_of(tmp_path, save(torch.jit.script(Forks()), tmp_path))
    assert problem.code is ErrorCode.UNSUPPORTED
    assert "prim::fork" in problem.what


def texts(function, *names: str) -> list[str]:
    """What every operator of a function is written as."""
    graph = torch.jit.script(function).graph
    nodes = [node for node in graph.nodes() if node.kind().startswith("aten::")]
    return [operator_text(node, [*names, "more", "and", "more"][: len(list(node.inputs()))]) for node in nodes]


def test_keyword_arguments_of_an_operator_are_written_by_name():
    def softmax(x: Tensor) -> Tensor:
        return torch.softmax(x, 1)

    def scaled(x: Tensor, y: Tensor) -> Tensor:
        return torch.sub(x, y, alpha=2)

    assert texts(softmax, "x", "1", "None") == ["torch.ops.aten.softmax.int(x, 1, None)"]
    assert texts(scaled, "x", "y", "2") == ["runtime.call('sub', torch.ops.aten.sub.Tensor, (x, y, ), {'alpha': 2})"]


def test_an_operator_on_numbers_alone_calls_none_of_torch():
    def add(x: int, y: int) -> int:
        return x + y

    assert texts(add, "x", "y") == ["runtime.ON_NUMBERS['add'](x, y)"]


def test_an_operator_that_nobody_has_is_refused():
    class Node:
        def kind(self):
            return "nobody::knows"

        def schema(self):
            return "nobody::knows(Tensor x) -> Tensor"

        def inputs(self):
            return []

        def __str__(self):
            return "%1 = nobody::knows() # model.py:7:3"

    with pytest.raises(UntranslatableError, match=r"nobody::knows \(model.py:7:3\)"):
        operator_text(Node(), [])
