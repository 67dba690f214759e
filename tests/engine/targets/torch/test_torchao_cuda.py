"""torchao's layers without a GPU: each planned op is quantized and found again, and why the rest cannot be had here."""

import importlib.util

import pytest
import torch

from ace_studio.engine.flow import BoundPlan, tensor_leaves
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.torch import torchao_cuda
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from tests.engine.targets.conftest import captured_model, make_job
from tests.engine.targets.torch.exact_products import ExactProducts

TARGET = TARGETS["torchao-cuda"]
needs_torchao = pytest.mark.skipif(importlib.util.find_spec("torchao") is None, reason="torchao is missing")


def graph_of(plan: BoundPlan, captured, folder):
    return torchao_cuda.quantized_graph(make_job(captured, plan, folder))


@needs_torchao
@pytest.mark.parametrize(("precision", "word"), [(Precision.INT8_DYNAMIC, "_int_mm"), (Precision.INT8_WEIGHT, "")])
def test_planned_layers_are_quantized_and_every_size_still_runs(precision, word, tmp_path):
    captured = captured_model("text_model")
    plan = bind_plan(Plan(default=precision), captured.table, op_problem=TARGET.op_problem)
    found = graph_of(plan, captured, tmp_path)
    assert not found.refused
    assert torchao_cuda.stored_in_int8(found) == plan.ops_at(precision)
    names = " ".join(str(node.target) for node in found.graph_module.graph.nodes)
    assert word in names
    for example in captured.examples:
        with torch.no_grad(), ExactProducts():
            reference = tensor_leaves(example.call(captured.module))
            got = list(found.graph_module(*example.tensors()))
        assert sqnr_db(reference, got) > 25.0


@needs_torchao
def test_a_rule_reaches_one_layer_and_the_others_keep_their_names(tmp_path):
    captured = captured_model("mlp")
    plan = Plan(rules=(PlanRule(match="id:linear_1", precision=Precision.INT8_WEIGHT),))
    found = graph_of(bind_plan(plan, captured.table, op_problem=TARGET.op_problem), captured, tmp_path)
    assert torchao_cuda.stored_in_int8(found) == {"linear_1"}
    ids = [node.meta[OP_ID] for node in found.graph_module.graph.nodes if OP_ID in node.meta]
    assert list(dict.fromkeys(ids)) == ["linear", "relu", "linear_1"]


@needs_torchao
def test_layers_between_16_bit_ops_stay_in_16_bits(tmp_path):
    captured = captured_model("mlp")
    plan = Plan(default=Precision.BF16, rules=(PlanRule(match="op:aten.linear.*", precision=Precision.INT8_WEIGHT),))
    found = graph_of(bind_plan(plan, captured.table, op_problem=TARGET.op_problem), captured, tmp_path)
    (relu,) = (node for node in found.graph_module.graph.nodes if "relu" in str(node.target))
    assert not found.refused
    assert relu.meta["val"].dtype is torch.bfloat16
    assert relu.args[0].meta["val"].dtype is torch.bfloat16
    for example in captured.examples:
        with torch.no_grad():
            reference = tensor_leaves(example.call(captured.module))
            got = list(found.graph_module(*example.tensors()))
        assert [one.dtype for one in got] == [one.dtype for one in reference]
        assert sqnr_db(reference, got) > 25.0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_reason_is_the_gpu():
    found = TARGET.available()
    assert not found.ok
    assert "no CUDA device" in found.reason
    assert ("torchao" in found.install) == (torch.version.cuda is None)  # else nothing that is installed would help
    assert "no CUDA device" in TARGET.precision_problem(Precision.FP8)


def test_what_it_cannot_do_names_the_way_out():
    assert "int8-dynamic" in TARGET.precision_problem(Precision.INT8_STATIC)
    assert "linear layers" in TARGET.op_problem("aten.conv2d.default", Precision.INT8_DYNAMIC)
    assert TARGET.op_problem("aten.linear.default", Precision.INT4_WEIGHT) == ""
    assert TARGET.device_problem(torch.device("cpu"))
