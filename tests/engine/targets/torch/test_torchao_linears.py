"""torchao's configurations, and linear ops that cannot be quantized."""

import pytest
import torch
from torch import nn

pytest.importorskip("torchao")

from ace_studio.engine.plan import bind_plan
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.targets.torch.torchao_cuda import half_linears, quantize_linears, retraced, torchao_config
from ace_studio.records.recipes.plan import Plan, Precision
from tests.engine.targets.conftest import captured_model, captured_of
from tests.engine.targets.torch.exact_products import ExactProducts


def test_the_configuration_has_the_group_that_the_plan_asks_for():
    assert torchao_config(Precision.INT4_WEIGHT, group_size=100).group_size == 64
    assert torchao_config(Precision.INT4_WEIGHT, group_size=0).group_size == 256
    assert "Float8" in type(torchao_config(Precision.FP8, group_size=0)).__name__


def test_an_op_that_is_no_linear_layer_is_left_with_the_reason():
    captured = captured_model("mlp")
    plan = bind_plan(Plan(default=Precision.INT8_WEIGHT), captured.table, op_problem=lambda op, precision: "")
    refused = quantize_linears(flat_graph(captured.program), plan)
    assert list(refused) == ["relu"]
    assert "this op is none" in refused["relu"]


def test_few_rows_are_filled_up_for_the_8_bit_kernel_of_a_gpu():
    torch.manual_seed(0)
    net, x = nn.Linear(16, 24), torch.randn(3, 16)
    captured = captured_of(net, x)
    graph = flat_graph(captured.program)
    plan = bind_plan(Plan(default=Precision.INT8_DYNAMIC), captured.table, op_problem=lambda op, precision: "")
    assert not quantize_linears(graph, plan)
    found = retraced(graph, captured)
    (product,) = (node for node in found.graph.nodes if "_int_mm" in str(node.target))
    assert product.args[0].meta["val"].shape[0] >= 17
    with ExactProducts():
        torch.testing.assert_close(found(x)[0], net(x), rtol=0.1, atol=0.05)


def test_enough_rows_stay_as_they_are():
    captured = captured_of(nn.Linear(16, 24), torch.randn(17, 16))
    graph = flat_graph(captured.program)
    plan = bind_plan(Plan(default=Precision.INT8_DYNAMIC), captured.table, op_problem=lambda op, precision: "")
    quantize_linears(graph, plan)
    assert not any("pad" in str(node.target) for node in retraced(graph, captured).graph.nodes)


@pytest.mark.parametrize(("precision", "step"), [(Precision.INT8_DYNAMIC, 8), (Precision.FP8, 16)])
def test_a_weight_that_the_8_bit_kernel_cannot_take_is_left_in_its_type_with_the_reason(precision, step):
    captured = captured_of(nn.Linear(16, 10), torch.randn(17, 16))
    plan = bind_plan(Plan(default=precision), captured.table, op_problem=lambda op, precision: "")
    graph = flat_graph(captured.program)
    assert half_linears(graph, plan) == {}
    assert f"multiples of {step}; this weight is 10 x 16" in quantize_linears(graph, plan)["linear"]
