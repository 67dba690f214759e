"""Which operators the ONNX runtimes keep at fp32, and why."""

import pytest

from ace_studio.engine.targets.onnx.op_support import onnxruntime_op_problem, openvino_op_problem, pairs_op_problem
from ace_studio.records.recipes.plan import Precision

CONV, LINEAR, SOFTMAX = "aten.conv2d.default", "aten.linear.default", "aten.softmax.int"


@pytest.mark.parametrize("problem", [onnxruntime_op_problem, openvino_op_problem])
def test_products_can_be_8_bit_and_a_softmax_cannot(problem):
    for precision in (Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT, Precision.INT4_WEIGHT):
        assert problem(LINEAR, precision) == ""
        assert "softmax" in problem(SOFTMAX, precision)
    assert problem(SOFTMAX, Precision.FP32) == ""


def test_only_openvino_stores_the_weights_of_convolutions_in_8_bits():
    assert openvino_op_problem(CONV, Precision.INT8_WEIGHT) == ""
    assert "conv2d is none" in onnxruntime_op_problem(CONV, Precision.INT8_WEIGHT)
    assert "slower than fp32" in onnxruntime_op_problem(CONV, Precision.INT8_DYNAMIC)


def test_an_operator_of_an_onnx_file_is_known_by_its_own_name():
    assert pairs_op_problem("onnx.Conv") == ""
    assert pairs_op_problem("onnx.Softmax")


def test_only_onnx_runtime_runs_gates_in_8_bits():
    for gate in ("aten.silu.default", "aten.sigmoid.default", "aten.mul.Tensor", "onnx.Sigmoid", "onnx.Mul"):
        assert onnxruntime_op_problem(gate, Precision.INT8_STATIC) == ""
        assert openvino_op_problem(gate, Precision.INT8_STATIC)
        assert onnxruntime_op_problem(gate, Precision.INT8_DYNAMIC)


def test_leaky_relu_and_nearest_upsampling_have_8_bit_kernels():
    for op in ("aten.leaky_relu_.default", "aten.upsample_nearest2d.vec", "onnx.LeakyRelu", "onnx.Resize"):
        assert onnxruntime_op_problem(op, Precision.INT8_STATIC) == ""
        assert openvino_op_problem(op, Precision.INT8_STATIC) == ""
    assert onnxruntime_op_problem("aten.upsample_bilinear2d.vec", Precision.INT8_STATIC)
