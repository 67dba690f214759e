"""Eager torch: images with their channels last."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from ace_studio.engine.quantize.flat_graph import constant_of
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.conftest import bound, captured_model, make_job
from tests.engine.targets.onnx_cases import capture, job_for, sqnr_db
from tests.tiny_models import TinyModel

TARGET = TARGETS["eager"]


class Viewed(nn.Module):
    """A convolution whose result is viewed as rows, which only the usual order of elements allows."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        found = self.conv(x)
        return found.view(found.shape[0], 8, -1).sum(dim=2)


def test_channels_last_is_offered_for_convolutions_only():
    for name, offered in (("conv_net", [{"memory_format": "channels_last"}]), ("mlp", [])):
        captured = captured_model(name)
        assert list(TARGET.options(bound("eager", captured, Precision.FP32), captured.table)) == offered


def test_channels_last_computes_the_same_from_weights_in_that_order_and_so_does_its_artifact(tmp_path):
    captured = captured_model("conv_net")
    job = make_job(captured, bound("eager", captured, Precision.FP32), tmp_path)
    lowered = TARGET.lower(replace(job, options={"memory_format": "channels_last"}))
    graph = lowered._rewritten.graph_module
    convolutions = [node for node in graph.graph.nodes if "conv2d" in str(node.target)]
    assert convolutions
    weights = [constant_of(graph, node.args[1].args[0]).permute(node.args[1].args[1]) for node in convolutions]
    assert all(one.is_contiguous(memory_format=torch.channels_last) for one in weights)
    assert [op.op_id for op in lowered.read_back()] == [captured.table.op_id[row] for row in captured.table.op_rows()]
    expected, got = (captured.examples[0].call(one) for one in (captured.module, lowered))
    torch.testing.assert_close(got, expected)
    opened = TARGET.load(lowered.save(tmp_path), threads=1)
    torch.testing.assert_close(opened(*captured.examples[0].tensors())[0], expected)


def test_views_of_what_lies_otherwise_are_copied():
    x = torch.randn(2, 3, 9, 9, generator=torch.Generator().manual_seed(0))
    captured = capture(TinyModel(Viewed().eval(), [(x,)]))
    job = replace(job_for(TARGET, captured), options={"memory_format": "channels_last"})
    lowered = TARGET.lower(job)
    torch.testing.assert_close(lowered(x), captured.module(x))


class WrittenThroughView(nn.Module):
    """Two layers; one column of the first one's results is written in place. x [n, 8]."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        hidden = self.first(x)
        torch.relu_(hidden)
        hidden[:, 0] = 5.0
        return self.second(hidden) + hidden


@pytest.mark.parametrize(
    ("target", "precision"),
    [("eager", Precision.BF16), ("eager", Precision.INT8_WEIGHT), ("inductor", Precision.INT8_STATIC)],
)
def test_a_write_through_a_view_is_seen_behind_a_layer_of_low_precision(target, precision):
    torch.manual_seed(0)
    captured = capture(TinyModel(WrittenThroughView().eval(), [(torch.randn(4, 8),), (torch.randn(6, 8),)]))
    lowered = TARGETS[target].lower(job_for(TARGETS[target], captured, precision))
    assert sqnr_db(captured.example.call(captured.module), captured.example.call(lowered)) > 35.0
