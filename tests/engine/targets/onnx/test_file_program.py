"""A file is folded and computes what it did: no number is taken for 0 or 1, what the optimizer breaks is dropped."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
pytest.importorskip("openvino")

import onnx
import onnxscript.optimizer
import torch
from onnx import TensorProto, helper, numpy_helper

from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.load.onnx.model import OnnxModule, read_model
from ace_studio.engine.pipeline.onnx_file import capture_onnx_file, program_of
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets.onnx.program import SHARED_KEY
from ace_studio.engine.targets.openvino.attention import read_onnx
from ace_studio.engine.targets.openvino.library import import_openvino
from tests.engine.load.onnx_samples import write_classifier


def program_from(path, *tensors):
    module = OnnxModule(read_model(path), path)
    loaded = LoadedModel(module=module, source=path, sha256="")
    captured, _ = capture_onnx_file(loaded, [Example(args=tensors)], fingerprint="", reporter=Reporter())
    return module, program_of(captured)[SHARED_KEY]


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
