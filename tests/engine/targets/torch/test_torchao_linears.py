"""torchao's configurations, and linear ops that cannot be quantized."""

from __future__ import annotations

import pytest

pytest.importorskip("torchao")

from ace_studio.engine.plan import bind_plan
from ace_studio.engine.quantize.flat_graph import flat_graph
from ace_studio.engine.targets.torch.torchao_linears import quantize_linears, torchao_config
from ace_studio.records.recipes.plan import Plan, Precision
from tests.engine.targets.conftest import captured_model


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
