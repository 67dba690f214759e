"""``ace_studio.try_fixes``: controls for a module that is alive, tried from Python."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo import graph_break  # noqa: TID251 - stands for anything that cannot be read

import ace_studio
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.fixes import FixStatus


def unreadable(x: Tensor) -> Tensor:
    y = x * 2
    graph_break()
    return y + 1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return x
        return self.right(unreadable(self.left(x)))


class Branch(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.left(x) if x.sum() > 0 else self.right(x)


INPUTS = [(torch.ones(2, 4),), (torch.ones(5, 4),)]


def test_a_green_control_can_be_given_back() -> None:
    fixes = ace_studio.try_fixes(Net(), tracing_inputs=INPUTS, rungs=["dynamo"], device="cpu")
    best = fixes[0]
    assert best.status is FixStatus.GREEN and best.control is not None
    assert best.control.function == f"{__name__}:unreadable"
    given = [(best.control.function, str(best.control.treat_as))]
    assert ace_studio.try_fixes(Net(), tracing_inputs=INPUTS, rungs=["dynamo"], controls=given, device="cpu") == ()


def test_no_source_is_changed_of_a_module_that_is_alive() -> None:
    with pytest.raises(AceError) as caught:
        ace_studio.try_fixes(Branch(), tracing_inputs=INPUTS, rungs=["export"], device="cpu")
    assert caught.value.problem.code is ErrorCode.NOT_CAPTURED


def test_a_treatment_that_does_not_exist_is_a_mistake_of_usage() -> None:
    with pytest.raises(AceError) as caught:
        ace_studio.try_fixes(Net(), tracing_inputs=INPUTS, controls=[("a:b", "magic")])
    assert caught.value.problem.code is ErrorCode.USAGE
