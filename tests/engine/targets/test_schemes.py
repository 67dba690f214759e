"""Grids that a plan asks for: every target gives them, or says why not and what it does instead."""

import pytest
import torch

from ace_studio.engine.flow import BoundPlan, tensor_leaves
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.targets import TARGETS
from ace_studio.records.recipes.plan import ActivationGrid, Plan, PlanRule, Precision, WeightGranularity
from ace_studio.records.recipes.recipe import Observer
from tests.engine.targets.conftest import captured_model, make_job

HERE = [name for name in ("onnxruntime", "openvino") if TARGETS[name].available().ok]
GRIDS = [(granularity, grid) for granularity in WeightGranularity for grid in ActivationGrid]


def _in_turns(values):
    """Every value with one target, all pairs with ``--full``: both targets are built by the same code up to the end."""
    return [
        pytest.param(target, value, marks=[] if (at + place) % 2 == 0 else [pytest.mark.full])
        for at, target in enumerate(HERE)
        for place, value in enumerate(values)
    ]


def _lower(target, model, plan, folder, *, observer=Observer.MIN_MAX):
    captured = captured_model(model)
    found = bind_plan(plan, captured.table, op_problem=TARGETS[target].op_problem)
    job = make_job(captured, found, folder)
    job.ranges = RangeChoice(observer)
    return TARGETS[target].lower(job)


def _fidelity(lowered, model):
    captured = captured_model(model)
    with torch.no_grad():
        reference = [leaf for one in captured.examples for leaf in tensor_leaves(one.call(captured.module))]
    return sqnr_db(reference, [leaf for one in captured.examples for leaf in tensor_leaves(one.call(lowered))])


@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize(("granularity", "grid"), GRIDS)
def test_static_int8_works_on_every_grid(target, granularity, grid, tmp_path):
    plan = Plan(default=Precision.INT8_STATIC, weights=granularity, activations=grid)
    lowered = _lower(target, "conv_net", plan, tmp_path)
    assert _fidelity(lowered, "conv_net") > 15.0
    assert "int8-static" in {one.actual for one in lowered.read_back()}


@pytest.mark.parametrize(("target", "observer"), _in_turns(Observer))
def test_every_observer_gives_ranges_that_work(target, observer, tmp_path):
    lowered = _lower(target, "conv_net", Plan(default=Precision.INT8_STATIC), tmp_path, observer=observer)
    assert _fidelity(lowered, "conv_net") > 12.0
    assert "int8-static" in {one.actual for one in lowered.read_back()}


@pytest.mark.skipif("onnxruntime" not in HERE, reason="needs ONNX Runtime")
def test_a_rule_gives_one_layer_a_single_step(tmp_path):
    import onnx

    rule = PlanRule(match="module:0", precision=Precision.INT8_STATIC, weights=WeightGranularity.PER_TENSOR)
    lowered = _lower("onnxruntime", "mlp", Plan(default=Precision.INT8_STATIC, rules=(rule,)), tmp_path)
    model = onnx.load(lowered.save(tmp_path))
    scales = sorted(
        max(1, int(torch.tensor(tensor.dims).prod()))
        for tensor in model.graph.initializer
        if "weight" in tensor.name and tensor.name.endswith("_scale")
    )
    assert scales == [1, 4]


@pytest.mark.skipif("onnxruntime" not in HERE, reason="needs ONNX Runtime")
def test_dynamic_products_get_one_step_too_and_say_that_their_grid_is_affine(tmp_path):
    plan = Plan(
        default=Precision.INT8_DYNAMIC, weights=WeightGranularity.PER_TENSOR, activations=ActivationGrid.SYMMETRIC
    )
    lowered = _lower("onnxruntime", "mlp", plan, tmp_path)
    assert _fidelity(lowered, "mlp") > 20.0
    assert any("affine" in one.reason for one in lowered.read_back())


@pytest.mark.parametrize(("target", "group_size"), _in_turns([0, 16, 64]))
def test_groups_of_any_size_can_be_asked_for(target, group_size, tmp_path):
    plan = Plan(default=Precision.INT4_WEIGHT, group_size=group_size)
    assert _fidelity(_lower(target, "mlp", plan, tmp_path), "mlp") > 8.0


@pytest.mark.skipif("onnxruntime" not in HERE, reason="needs ONNX Runtime")
def test_a_group_that_no_kernel_has_is_told(tmp_path):
    lowered = _lower("onnxruntime", "mlp", Plan(default=Precision.INT4_WEIGHT, group_size=0), tmp_path)
    assert any("groups of 256" in one.reason for one in lowered.read_back())


@pytest.mark.skipif("openvino" not in HERE, reason="needs OpenVINO")
def test_without_the_quantizer_openvino_says_what_it_does_instead(tmp_path, monkeypatch):
    monkeypatch.setattr("ace_studio.engine.targets.openvino.compress._grids_problem", lambda: "it is not there")
    lowered = _lower(
        "openvino", "mlp", Plan(default=Precision.INT8_STATIC, weights=WeightGranularity.PER_TENSOR), tmp_path
    )
    assert any("it is not there" in one.reason for one in lowered.read_back())


def test_a_bound_plan_knows_the_grids_of_every_op():
    rule = PlanRule(match="module:0", precision=Precision.INT8_STATIC, group_size=64)
    table = captured_model("mlp").table
    found = bind_plan(Plan(default=Precision.INT8_STATIC, rules=(rule,)), table, op_problem=lambda op, precision: "")
    sizes = [found.scheme_of(table.op_id[row]).group_size for row in table.op_rows()]
    assert sizes == [64, 32, 32]
    assert BoundPlan(Plan(group_size=16)).scheme_of("x").group_size == 16
