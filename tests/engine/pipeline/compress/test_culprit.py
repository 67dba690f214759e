"""The first op that a runtime computes otherwise is found, with one value as output at a time."""

import pytest
import torch
from torch import nn

from ace_studio.engine.flow import Example
from ace_studio.engine.pipeline.compress.culprit import first_wrong
from ace_studio.engine.targets.onnx.program import SHARED_KEY, export_onnx
from tests.engine.captured import captured_of

pytest.importorskip("onnxruntime")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        return torch.sigmoid(self.two(torch.tanh(self.one(x)))).sum(1)


@pytest.fixture
def captured():
    return captured_of(Net().eval(), (torch.randn(2, 8),), (torch.randn(3, 8),))


def wrong_at(captured, kind, other):
    """The captured model's ONNX program with another op in the place of one."""
    program = export_onnx(captured)
    for node in program.model.graph.node:
        node.op_type = other if node.op_type == kind else node.op_type
    return {SHARED_KEY: program}


@pytest.mark.parametrize(("kind", "found"), [("Tanh", "tanh"), ("Sigmoid", "sigmoid"), ("Relu", "")])
def test_the_op_that_differs_is_named_and_none_where_all_are_right(captured, kind, found):
    shared = wrong_at(captured, kind, "Softsign")
    named = first_wrong(captured, "onnxruntime", Example((torch.randn(5, 8),)), shared=shared, threads=1)
    assert named.startswith(found) and bool(named) == bool(found)


def test_a_target_whose_values_cannot_be_seen_names_nothing(captured):
    assert first_wrong(captured, "inductor", captured.example, shared={}, threads=1) == ""
