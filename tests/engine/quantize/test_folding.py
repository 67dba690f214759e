from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.quantize.folding import fold_batch_norms
from ace_studio.engine.quantize.pt2e import quantize_int8
from tests.engine.quantize.graphs import op_ids, run, targets


@pytest.mark.parametrize("program", ["conv1d", "conv2d"])
def test_a_folded_batch_norm_changes_nothing_but_the_graph(program, request):
    given = request.getfixturevalue(program)
    graph_module = flat_graph(given.exported)
    assert fold_batch_norms(graph_module, op_ids(graph_module)) == {"batch_norm": program}
    assert "aten.batch_norm.default" not in targets(graph_module)
    assert sqnr_db([given.expected], list(run(graph_module, given.example))) > 100


def test_a_convolution_that_may_not_change_keeps_its_batch_norm(conv2d):
    graph_module = flat_graph(conv2d.exported)
    assert fold_batch_norms(graph_module, {"conv2d_1"}) == {}
    assert "aten.batch_norm.default" in targets(graph_module)


class Embedding(nn.Module):
    """The head of a face embedding network: a linear layer and a norm without gain, whose input may be read twice."""

    def __init__(self, *, is_read_twice: bool = False, dims: int = 2) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 4), nn.BatchNorm1d(4, affine=False)
        self.norm.running_var.uniform_(0.5, 1.5)
        self.norm.running_mean.uniform_(-1, 1)
        self.is_read_twice = is_read_twice
        self.example = torch.randn(*[3, 4, 5][: dims - 1], 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return self.norm(y) + y if self.is_read_twice else self.norm(y)


@pytest.mark.parametrize(
    ("head", "folded"),
    [
        (Embedding(), {"batch_norm": "linear"}),
        (Embedding(is_read_twice=True), {}),
        (Embedding(dims=3), {}),  # the norm's channels are not the outputs of the layer
    ],
    ids=["without-gain", "read-twice", "three-dimensions"],
)
def test_a_norm_behind_a_linear_layer_is_folded_where_it_can_be_and_int8_stays_right(head, folded, monkeypatch):
    head.eval()
    # What torchao does about a norm that is left: it exports patterns of training, for 40 s.
    monkeypatch.setattr("torchao.quantization.pt2e.qat_utils._fold_conv_bn_qat_helper", None)
    graph_module = flat_graph(torch.export.export(head, (head.example,)))
    expected = head(head.example)
    assert fold_batch_norms(graph_module, op_ids(graph_module)) == folded
    assert sqnr_db([expected], list(run(graph_module, head.example))) > 100
    quantized, refused = quantize_int8(
        graph_module, static={"linear"}, calibration=[[head.example]], reporter=Reporter()
    )
    assert not refused
    assert 25 < sqnr_db([expected], list(run(quantized, head.example))) < 100


def test_a_norm_whose_variances_are_small_beside_its_epsilon_is_folded_rightly():
    head = Embedding().eval()
    head.norm.running_var.fill_(1e-5)
    head.norm.eps = 1e-3
    graph_module = flat_graph(torch.export.export(head, (head.example,)))
    assert fold_batch_norms(graph_module, op_ids(graph_module)) == {"batch_norm": "linear"}
    assert sqnr_db([head(head.example)], list(run(graph_module, head.example))) > 100
