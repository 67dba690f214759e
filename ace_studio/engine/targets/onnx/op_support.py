"""Which operators of the captured graph ONNX Runtime and OpenVINO can run below fp32, as a table."""

from ace_studio.engine.ops.roles import stores_table
from ace_studio.records.ops import BATCH_NORMS, CONVOLUTIONS, MATRIX_PRODUCTS, RECURRENT_CELLS, SUMS, operator_name
from ace_studio.records.recipes.plan import Precision

_ABSORBED = BATCH_NORMS | frozenset({"relu", "relu_", "relu6", "hardtanh", "hardtanh_", "clamp", "clamp_min", "clamp_"})
_ABSORBED |= {"Relu", "Clip", "leaky_relu", "leaky_relu_", "LeakyRelu"}
_POOLS = frozenset({"max_pool1d", "max_pool2d", "max_pool3d", "avg_pool2d", "adaptive_avg_pool2d"})
_POOLS |= {"MaxPool", "AveragePool", "GlobalAveragePool"}
_MOVES = frozenset(
    {"view", "reshape", "flatten", "_unsafe_view", "transpose", "permute", "squeeze", "unsqueeze", "cat", "contiguous",
     "concat", "chunk", "split", "split_with_sizes", "t", "dropout", "alias", "detach", "clone", "Reshape", "Transpose",
     "Squeeze", "Unsqueeze", "Concat", "Flatten", "Split", "Identity", "upsample_nearest1d", "upsample_nearest2d",
     "upsample_nearest3d", "Resize"}
)  # fmt: skip
_GATES = frozenset({"sigmoid", "sigmoid_", "silu", "silu_", "mul", "mul_", "Sigmoid", "Mul"})
"""ONNX Runtime alone has 8-bit kernels for these. OpenVINO fuses them in float behind a convolution."""
_STATIC = CONVOLUTIONS | MATRIX_PRODUCTS | RECURRENT_CELLS | _ABSORBED | _POOLS | SUMS | _MOVES
_WEIGHTED = MATRIX_PRODUCTS | RECURRENT_CELLS
"""Cells become products and gates. Whole sequences (``lstm``) stay one float node, which nothing here quantizes."""


def onnxruntime_op_problem(op: str, precision: Precision) -> str:
    """Why ONNX Runtime leaves an operator at fp32; empty if it does not."""
    name = operator_name(op)
    if precision is Precision.FP32 or stores_table(op, precision):
        return ""
    if precision is Precision.INT8_STATIC:
        return "" if name in _GATES else pairs_op_problem(op)
    if precision is Precision.INT8_DYNAMIC and name in CONVOLUTIONS:
        return "ConvInteger, the only dynamic 8-bit convolution of ONNX Runtime, is slower than fp32"
    return "" if name in _WEIGHTED else f"{precision} is for products with a constant weight; {name} is none"


def pairs_op_problem(op: str) -> str:
    """Why an operator cannot be 8-bit between pairs of QuantizeLinear and DequantizeLinear; empty if it can."""
    name = operator_name(op)
    return "" if name in _STATIC else f"{name} has no 8-bit kernel worth using; it stays fp32"


def openvino_op_problem(op: str, precision: Precision) -> str:
    """Why OpenVINO leaves an operator at fp32; empty if it does not."""
    name = operator_name(op)
    if precision in {Precision.FP32, Precision.BF16, Precision.FP16} or stores_table(op, precision):
        return ""
    if precision is Precision.INT8_STATIC:
        return pairs_op_problem(op)
    if precision is Precision.INT8_WEIGHT and name in CONVOLUTIONS:
        return ""
    return "" if name in _WEIGHTED else f"{precision} is for products with a constant weight; {name} is none"
