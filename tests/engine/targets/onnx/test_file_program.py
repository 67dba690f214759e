"""A file is folded and computes what it did: no number is taken for 0 or 1, what the optimizer breaks is dropped."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")

import onnx
import onnxruntime
import onnxscript.optimizer
import torch
from onnx import TensorProto, helper, numpy_helper

from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.load.onnx.model import OnnxModule, read_model
from ace_studio.engine.pipeline.onnx_file import capture_onnx_file, program_of
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.onnx.program import SHARED_KEY
from ace_studio.engine.targets.openvino.attention import read_onnx
from ace_studio.engine.targets.openvino.library import import_openvino
from ace_studio.records.recipes.plan import Plan, Precision
from tests.engine.load.onnx_samples import write_classifier, write_old_classifier


def captured_from(path, *tensors):
    module = OnnxModule(read_model(path), path)
    loaded = LoadedModel(module=module, source=path, sha256="")
    return capture_onnx_file(loaded, [Example(args=tensors)], fingerprint="", reporter=Reporter())[0]


def program_from(path, *tensors):
    captured = captured_from(path, *tensors)
    return captured.module, program_of(captured)[SHARED_KEY]


def saved_at_int8(path, name, *calibration):
    """The module of the file, the folder of the artifact, and op -> precision."""
    captured, target = captured_from(path, calibration[0]), TARGETS[name]
    job = LoweringJob(
        captured=captured,
        plan=bind_plan(Plan(default=Precision.INT8_STATIC), captured.table, op_problem=target.op_problem),
        calibration=lambda: [Example(args=(one,)) for one in calibration],
        threads=1,
        device=captured.device,
        folder=path.parent,
        reporter=Reporter(),
        shared=program_of(captured),
    )
    built = target.lower(job)
    actual = {one.op_id: one.actual for one in built.read_back()}
    return (
        captured.module,
        built.save(path.parent),
        dict(zip(captured.table.op, map(actual.get, captured.table.op_id), strict=True)),
    )


def bare_outputs(artifact, x):
    """What the runtime alone gives for the artifact's only input."""
    if artifact.suffix == ".onnx":
        session = onnxruntime.InferenceSession(artifact, providers=["CPUExecutionProvider"])
        (only,) = session.get_inputs()
        return session.run(None, {only.name: x.numpy()})[0]
    compiled = import_openvino().Core().compile_model(artifact, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert len(compiled.inputs) == 1
    return compiled(x.numpy())[0]


def write_spectrum(path, *, opset):
    """x [N, 8] -> log(abs(x) + 1e-10) * 1.000005, two numbers that are nearly neutral."""
    steps = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Add", ["a", "epsilon"], ["b"]),
        helper.make_node("Log", ["b"], ["c"]),
        helper.make_node("Mul", ["c", "gain"], ["y"]),
    ]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 8]) for name in "xy"]
    numbers = {"epsilon": np.float32(1e-10), "gain": np.float32(1.000005)}
    stored = [numpy_helper.from_array(number, name) for name, number in numbers.items()]
    graph = helper.make_graph(steps, "g", value[:1], value[1:], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


@pytest.mark.parametrize("opset", [11, 18])
def test_small_and_nearly_neutral_numbers_of_a_file_stay(opset, tmp_path):
    path = write_spectrum(tmp_path / "m.onnx", opset=opset)
    module, program = program_from(path, torch.randn(2, 8, generator=torch.Generator().manual_seed(0)))
    assert [node.op_type for node in program.model.graph.node] == ["Abs", "Add", "Log", "Mul"]
    compiled = import_openvino().Core().compile_model(read_onnx(program.model), "CPU")
    for x in (torch.zeros(3, 8), torch.full((1, 8), 1e-9), torch.randn(4, 8)):
        torch.testing.assert_close(torch.from_numpy(compiled(x.numpy())[0]), module(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("fault", ["other numbers", "no valid node"])
def test_what_the_optimizer_breaks_is_dropped(fault, tmp_path, monkeypatch):
    def broken(model):
        changed = type(model)()
        changed.CopyFrom(model)
        if fault == "other numbers":
            changed.graph.node[2].op_type = "Neg"
        else:
            changed.graph.node[2].attribute.append(helper.make_attribute("allowzero", 1))
        return changed

    monkeypatch.setattr(onnxscript.optimizer, "optimize", broken)
    path = write_classifier(tmp_path / "m.onnx")
    _, program = program_from(path, torch.randn(2, 3, 8, 8))
    assert [node.op_type for node in program.model.graph.node][2] == "Relu"
    assert not program.model.graph.node[2].attribute
    onnx.checker.check_model(program.model)


def test_the_batch_norm_of_a_file_is_folded(tmp_path):
    _, program = program_from(write_classifier(tmp_path / "m.onnx"), torch.randn(2, 3, 8, 8))
    assert "BatchNormalization" not in {node.op_type for node in program.model.graph.node}


def pictures(count, *, seed=0):
    return [torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(seed + one)) for one in range(count)]


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_an_old_file_that_lists_weights_among_its_inputs_is_folded_and_quantized(name, tmp_path):
    path = write_old_classifier(tmp_path / "old.onnx")
    module, artifact, actual = saved_at_int8(path, name, *pictures(8))
    assert actual["onnx.Conv"] == Precision.INT8_STATIC
    assert actual["onnx.BatchNormalization"] in ("folded", "fused")
    (x,) = pictures(1, seed=99)
    assert sqnr_db([module(x)], [torch.from_numpy(bare_outputs(artifact, x))]) > 25


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_file_of_16_bit_floats_is_quantized(name, tmp_path):
    path = write_half_products(tmp_path / "half.onnx")
    numbers = [torch.randn(64, 16, generator=torch.Generator().manual_seed(seed)).half() for seed in range(9)]
    module, artifact, _ = saved_at_int8(path, name, *numbers[:8])
    found = torch.from_numpy(bare_outputs(artifact, numbers[8]))
    assert sqnr_db([module(numbers[8]).float()], [found.float()]) > 25


def write_half_products(path):
    """x [N, 16] -> y [N, 16] in float16: a product, a ReLU and another product."""
    weights = {name: np.random.default_rng(seed).standard_normal((16, 16)) / 4 for seed, name in enumerate("ab")}
    steps = [
        helper.make_node("MatMul", ["x", "a"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "b"], ["y"], "second"),
    ]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, ["N", 16]) for name in "xy"]
    stored = [numpy_helper.from_array(array.astype(np.float16), name) for name, array in weights.items()]
    graph = helper.make_graph(steps, "g", value[:1], value[1:], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path
