"""Counting the ops that stay eager."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor, nn

from ace_studio.engine.capture.eager import EagerRun
from ace_studio.engine.capture.partial.left_eager import EagerOps, left_eager, run_eager_ops
from ace_studio.engine.capture.partial.recording import Recording
from ace_studio.engine.flow import Example


class Twice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            x = x.sin().cos()
        return x + 1


def test_ops_are_counted_by_the_users_line() -> None:
    ran = run_eager_ops(EagerRun.of(Twice()), Example((torch.ones(2),)), [])
    first = Twice.forward.__code__.co_firstlineno
    assert (ran.lines()[__file__, first + 2], ran.lines()[__file__, first + 3]) == (4, 1)
    assert ran.times((__file__, first + 2)) == 2
    assert ran.times((__file__, 1)) == 1


class Asks(nn.Module):
    def __init__(self, *, wants_gradients: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.wants_gradients = wants_gradients

    def forward(self, x: Tensor) -> Tensor:
        if self.wants_gradients:
            with torch.enable_grad():
                x = x.requires_grad_()
                return torch.autograd.grad((x * x).sum(), x)[0]
        return self.inner(x)


def test_operators_are_counted_as_in_a_graph_and_copies_of_the_example_are_not() -> None:
    example = Example((torch.ones(2, 2),))
    ran = run_eager_ops(EagerRun.of(Asks(wants_gradients=False)), example, [])
    assert {op: count for (_, op), count in ran.counts.items()} == {"aten.linear.default": 1}
    ran = run_eager_ops(EagerRun.of(Asks(wants_gradients=True)), example, [])
    assert "aten.mul.Tensor" in {op for _, op in ran.counts}


def test_without_subgraphs_every_op_is_left() -> None:
    ran = EagerOps(Counter({(("net.py", 4), "aten.add"): 6}), {})
    empty = Recording([], [], [], {}, lambda heard: ("", 0))
    assert left_eager(ran, [], empty) == {("net.py", 4): 6}
