"""TensorRT without a GPU: the signed ONNX model, the sizes of an engine, what is read back, and why it is not here."""

import importlib.util
import json

import numpy as np
import pytest
import torch

from ace_studio.engine.flow import tensor_leaves
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.shared.kernels import heavy_ops
from ace_studio.engine.targets.shared.size_bounds import SMALLEST_BOUND
from ace_studio.engine.targets.tensorrt import target as tensorrt
from ace_studio.records.recipes.plan import Precision
from tests.engine.targets.conftest import bound, captured_model, make_job

TARGET = TARGETS["tensorrt"]
needs_onnx = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("onnxscript", "onnxruntime")), reason="ONNX is missing"
)


@needs_onnx
@pytest.mark.parametrize("model", ["conv_net", "mlp"])
def test_the_signed_model_has_only_grids_that_tensorrt_has_and_computes_the_same(model, tmp_path):
    import onnx

    from ace_studio.engine.targets.onnx.program import onnx_program_of
    from ace_studio.engine.targets.onnxruntime.target import make_session

    captured = captured_model(model)
    job = make_job(captured, bound("onnxruntime", captured, Precision.INT8_STATIC), tmp_path)
    program = onnx_program_of(job)
    signed, _ = tensorrt.quantized_onnx(program, job)
    onnx.checker.check_model(signed)
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in signed.graph.initializer}
    pairs = [node for node in signed.graph.node if node.op_type in {"QuantizeLinear", "DequantizeLinear"}]
    assert pairs
    for node in pairs:
        zero = stored[node.input[2]]
        assert zero.dtype == np.int8
        assert not zero.any()
    assert all(values.dtype not in (np.uint8, np.int32) for values in stored.values())
    session = make_session(signed.SerializeToString(), threads=1)
    for example in captured.examples:
        with torch.no_grad():
            reference = tensor_leaves(example.call(captured.module))
        feed = {name: leaf.numpy() for name, leaf in zip(program.input_names, example.tensors(), strict=True)}
        got = [torch.from_numpy(one) for one in session.run(None, feed)]
        assert sqnr_db(reference, got) > 20.0


def test_the_engine_covers_every_size_that_was_seen_and_more():
    captured = captured_model("mlp")
    ((least, usual, most),) = tensorrt.profile_sizes(captured)
    sizes = [example.tensors()[0].shape[0] for example in captured.examples]
    assert least == (min(sizes), 16)
    assert most == (SMALLEST_BOUND, 16)  # more than twice the largest here
    assert least[0] <= usual[0] <= most[0]


def test_the_engine_is_tuned_for_the_size_that_the_user_chose_as_usual():
    captured = captured_model("mlp")
    name = captured.inputs[0].name
    ((least, usual, most),) = tensorrt.profile_sizes(captured, {f"{name}.0": (1, 7, 200)})
    assert (least[0], usual[0], most[0]) == (1, 7, 200)


def test_what_an_engine_says_of_its_layers_becomes_kernels_of_ops():
    table = captured_model("mlp").table
    layers = [
        {"Name": "reformat", "LayerType": "Reformat", "Metadata": "[ONNX Layer: node_linear]",
         "Inputs": [{"Format/Datatype": "Row major linear FP32"}], "Outputs": []},
        {"Name": "fused", "LayerType": "gemm", "Metadata": "[ONNX Layer: node_linear]\x1e[ONNX Layer: node_relu]",
         "Inputs": [{"Format/Datatype": "Int8 NC/32HW32"}], "Outputs": [{"Format/Datatype": "Row major linear FP32"}]},
        {"Name": "last", "LayerType": "gemm", "Metadata": "[ONNX Layer: node_linear_1]",
         "Inputs": [{"Format/Datatype": "Row major linear FP16 format"}], "Outputs": []},
        "a layer without details",
    ]  # fmt: skip
    owners = {"node_linear": ("linear",), "node_relu": ("relu",), "node_linear_1": ("linear_1",)}
    found = tensorrt.engine_kernels(json.dumps({"Layers": layers}), owners, heavy_ops(table), device="cuda:0")
    assert [(one.op_ids, one.precision) for one in found] == [
        (("linear",), "fp32"),
        (("linear", "relu"), "int8-static"),
        (("linear_1",), "fp16"),
    ]
    assert [one.is_conversion for one in found] == [True, False, False]
    assert all(one.device == "cuda:0" for one in found)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_before_anything_else():
    found = TARGET.available()
    assert not found.ok
    assert "no CUDA device" in found.reason
    assert found.install == (TARGET.row.install if TARGET.missing() else "")


def test_without_a_gpu_the_packages_that_are_missing_are_named_too(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in ("tensorrt", "onnxscript") else name)
    assert TARGET.available().reason.endswith("; not installed: tensorrt, onnxscript")


def test_on_a_gpu_the_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "tensorrt" else name)
    assert TARGET.available().reason == "not installed: tensorrt"


def test_precisions_that_it_lacks_name_the_one_to_use():
    assert "int8-static" in TARGET.precision_problem(Precision.INT8_DYNAMIC)
    assert "torchao-cuda" in TARGET.precision_problem(Precision.FP8)
    assert TARGET.op_problem("aten.conv2d.default", Precision.INT8_STATIC) == ""
    assert TARGET.op_problem("aten.softmax.int", Precision.INT8_STATIC)
    assert TARGET.device_problem(torch.device("cpu"))
