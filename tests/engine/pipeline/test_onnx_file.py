"""An ONNX file from the request to the verified artifact: shown, measured and compressed without a capture."""

import importlib.util

import msgspec
import numpy as np
import pytest

if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime", "onnxscript", "openvino", "nncf")):
    pytest.skip("ONNX or a runtime is not installed", allow_module_level=True)

from ace_studio.engine import pipeline
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import JobFinished, ModelCaptured, RunRequest, TraceRequest
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import CalibrationChoice, MeasureChoice, ModelChoice, Recipe, TargetsChoice
from ace_studio.records.results import ResultStatus, RunStatus
from ace_studio.records.tensors import DimVerdict, TensorSpec
from tests.engine.load.onnx_samples import numbers, write_classifier, write_embedding


def recipe_for(name, *, precision=Precision.FP32, targets=("auto",)):
    return Recipe(
        model=ModelChoice(source=name),
        plan=Plan(default=precision),
        measure=MeasureChoice(rounds=3),
        targets=TargetsChoice(names=targets),
    )


def run(folder, recipe):
    events = []
    request = RunRequest(job="j", recipe=recipe, folder=str(folder), output=str(folder / "out"))
    pipeline.run(request, Reporter(events.append))
    return next(event.result for event in events if isinstance(event, JobFinished))


def trace(folder, recipe):
    events = []
    pipeline.trace(TraceRequest(job="j", recipe=recipe, folder=str(folder)), Reporter(events.append))
    return next(event for event in events if isinstance(event, ModelCaptured))


def test_a_trace_shows_the_graph_and_runs_sizes_that_nobody_gave(tmp_path):
    write_embedding(tmp_path / "m.onnx")
    found = trace(tmp_path, recipe_for("m.onnx"))
    assert found.capture.rung == "onnx"
    assert found.graph.op_count == found.capture.ops == 5
    ids = found.capture.inputs[0]
    assert [(dim.verdict, dim.symbol) for dim in ids.dims] == [
        (DimVerdict.DYNAMIC, "batch"),
        (DimVerdict.DYNAMIC, "length"),
    ]
    assert set(ids.dims[1].verified_sizes) > {16, 24}


def test_a_size_that_the_file_claims_to_leave_open_but_does_not_is_told(tmp_path):
    import onnx
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xy"]
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [4, 2])
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "g", value[:1], value[1:], [shape])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "m.onnx")
    recipe = recipe_for("m.onnx")
    rows = ({"x": TensorSpec(shape=(4, 2))},)
    recipe = msgspec.structs.replace(recipe, inputs=msgspec.structs.replace(recipe.inputs, rows=rows))
    found = trace(tmp_path, recipe)
    assert [warning.code for warning in found.capture.warnings] == ["onnx-size"]
    assert found.capture.inputs[0].dims[0].verified_sizes == (4,)


@pytest.mark.slow
def test_both_runtimes_are_measured_against_the_file_as_it_is(tmp_path):
    write_classifier(tmp_path / "m.onnx")
    result = run(tmp_path, recipe_for("m.onnx"))
    assert result.status is ResultStatus.OK
    assert result.baseline.name == "ONNX Runtime"
    assert result.baseline.size_bytes > 0
    assert [one.target for one in result.runs] == ["onnxruntime", "openvino"]
    for one in result.runs:
        assert one.status is RunStatus.OK, one.error
        assert one.verified
        assert one.sqnr_db > 90
        assert one.latency_ms.p50 > 0
        assert (tmp_path / "out" / one.artifact).exists()
    assert "ONNX Runtime" in (tmp_path / "out" / "comparison.svg").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("opset", [11, 18])  # before 13 there is no scale per channel
def test_the_plan_reaches_the_nodes_of_a_file(opset, tmp_path):
    write_classifier(tmp_path / "m.onnx", opset=opset)
    np.savez(tmp_path / "data.npz", x=numbers(32, 3, 8, 8))
    recipe = recipe_for("m.onnx", precision=Precision.INT8_STATIC)
    result = run(tmp_path, msgspec.structs.replace(recipe, calibration=CalibrationChoice(inputs="data.npz")))
    for one in result.runs:
        assert one.status is RunStatus.OK, one.error
        assert one.verified
        assert 15 < one.sqnr_db < 90
        actual = {op.op: op.actual for op in one.ops}
        assert actual["onnx.Conv"] == "int8-static"
        assert actual["onnx.BatchNormalization"] in ("folded", "fused")


def test_a_target_that_needs_a_model_of_torch_is_refused(tmp_path):
    write_classifier(tmp_path / "m.onnx")
    with pytest.raises(AceError, match="inductor cannot run an ONNX file") as caught:
        run(tmp_path, recipe_for("m.onnx", targets=("inductor",)))
    assert caught.value.problem.code is ErrorCode.RECIPE
