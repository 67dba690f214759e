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


def test_without_subgraphs_every_op_is_left() -> None:
    ran = EagerOps(Counter({(("net.py", 4), "aten.add"): 6}), {})
    empty = Recording([], [], [], {}, lambda heard: ("", 0))
    assert left_eager(ran, [], empty) == {("net.py", 4): 6}
