"""The ONNX model for TensorRT has signed grids around 0 and float biases."""

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import helper, numpy_helper

from ace_studio.engine.targets.tensorrt.onnx import signed_model


def model_of(nodes, constants):
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], stored))


def pair(value, result, *, scale="scale", zero="zero"):
    return [
        helper.make_node("QuantizeLinear", [value, scale, zero], [f"{value}_q"], name=f"{value}_quantize"),
        helper.make_node("DequantizeLinear", [f"{value}_q", scale, zero], [result], name=f"{value}_dequantize"),
    ]


GRID = {"scale": np.float32(0.5), "zero": np.uint8(55)}


def constants_of(model):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def test_an_unsigned_grid_becomes_the_signed_one_that_covers_it():
    changed = signed_model(model_of(pair("x", "y"), GRID))
    stored = constants_of(changed)
    for node in changed.graph.node:
        assert stored[node.input[1]] == pytest.approx(200 * 0.5 / 127)
        assert stored[node.input[2]].dtype == np.int8
    onnx.checker.check_model(changed)


def test_a_stored_bias_becomes_a_float_constant():
    bias = helper.make_node("DequantizeLinear", ["b", "b_scale", "b_zero"], ["bias"], name="bias_dequantize")
    constants = {"b": np.int32([4, -2]), "b_scale": np.float32(0.25), "b_zero": np.int32(0)}
    changed = signed_model(model_of([bias, helper.make_node("Add", ["x", "bias"], ["y"], name="add")], constants))
    assert [node.op_type for node in changed.graph.node] == ["Add"]
    assert constants_of(changed)["bias"].tolist() == [1.0, -0.5]


def test_a_grid_that_is_computed_is_refused():
    with pytest.raises(ValueError, match="is computed, not stored"):
        signed_model(model_of(pair("x", "y", scale="elsewhere"), GRID))
