"""Which operators XNNPACK gets in 8 bits, and why not the others."""

import pytest
import torch
from torch import nn

from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.targets.executorch.quantize import executorch_op_problem, quantize_for_xnnpack
from ace_studio.records.recipes.plan import Precision
from tests.engine.captured import captured_of
from tests.engine.targets.conftest import bound, make_job


def test_what_xnnpack_has_no_kernel_for_is_refused_with_the_reason():
    assert executorch_op_problem("aten.linear.default", Precision.INT8_DYNAMIC) == ""
    assert "linear ops only" in executorch_op_problem("aten.conv2d.default", Precision.INT8_DYNAMIC)
    assert "no int8 kernel of aten.softmax.int" in executorch_op_problem("aten.softmax.int", Precision.INT8_STATIC)
    assert executorch_op_problem("aten.add.Tensor", Precision.INT8_STATIC) == ""


class TwoReaders(nn.Module):
    """A ReLU reads the result of the layer; ``also`` says whether a second op reads it too."""

    def __init__(self, also):
        super().__init__()
        self.layer, self.also = nn.Linear(4, 4), also

    def forward(self, x):
        y = self.layer(x)
        return (y.relu(), y.sigmoid()) if self.also else y.relu()


@pytest.mark.parametrize(("also", "rounded"), [(False, "aten.relu.default"), (True, "aten.linear.default")])
def test_a_layer_hands_rounding_over_to_its_relu_unless_another_op_reads_it_too(tmp_path, also, rounded):
    pytest.importorskip("torchao")
    captured = captured_of(TwoReaders(also).eval(), torch.randn(2, 4), torch.randn(3, 4))
    job = make_job(captured, bound("executorch", captured, Precision.INT8_STATIC), tmp_path)
    graph = quantize_for_xnnpack(flat_graph(captured.program), job).graph_module.graph
    (layer,) = [node for node in graph.nodes if str(node.target) == "aten.linear.default"]
    behind = [layer, *(user for user in layer.users if "relu" in str(user.target))]
    found = [str(one.target) for one in behind if any("quantize_per_tensor" in str(user.target) for user in one.users)]
    assert found[:1] == [rounded]
