"""What operators are, by name: one table for plans, targets, advice and the window. Nothing here needs torch.

A graph names an operator with its namespace (``aten.conv2d.default``, ``onnx.Conv``); the sets hold the names without
(`operator_name`), of torch and of ONNX. Overloads and places of arguments are in `ace_studio.engine.ops`.
"""

from enum import StrEnum
from pathlib import Path

import msgspec


def operator_name(op: str) -> str:
    """``conv2d`` of ``aten.conv2d.default``, ``Conv`` of ``onnx.Conv``; a name without a namespace as it is."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else op


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TRANSPOSED_CONVOLUTIONS = _names("conv_transpose1d conv_transpose2d conv_transpose3d ConvTranspose")
CONVOLUTIONS = _names("conv1d conv2d conv3d convolution _convolution Conv") | TRANSPOSED_CONVOLUTIONS
BATCH_NORMS = _names("batch_norm _native_batch_norm_legit_no_training BatchNormalization")
SUMS = _names("add add_ Add")
"""Sums of two values, or of a value and a number."""
LINEAR = _names("linear addmm Gemm")
"""Matrix products that add a bias themselves."""
BATCHED_PRODUCTS = _names("bmm matmul baddbmm einsum MatMul")
"""Matrix products as attention is written with them: both factors may be computed."""
MATRIX_PRODUCTS = LINEAR | BATCHED_PRODUCTS | {"mm"}
"""All of them. ONNX's Einsum is none: no runtime compresses it."""
RECURRENT_CELLS = _names("lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell")
"""One time step of a recurrent layer."""
RECURRENT_LAYERS = _names("lstm gru rnn_tanh rnn_relu LSTM GRU RNN")
"""Recurrent layers over whole sequences."""
ATTENTION = _names("scaled_dot_product_attention Attention")
WEIGHTED = CONVOLUTIONS | MATRIX_PRODUCTS | RECURRENT_CELLS | RECURRENT_LAYERS | ATTENTION
"""Operators that hold the arithmetic of a network: their precision decides size and speed."""
TABLE_LOOKUPS = _names("embedding Gather")
"""Operators that pick rows of a stored table."""


def is_weighted(op: str) -> bool:
    """Whether an operator (``aten.conv2d.default``) of torch or ONNX holds arithmetic worth compressing."""
    return op.startswith(("aten.", "onnx.")) and operator_name(op) in WEIGHTED


class OpFamily(StrEnum):
    """Kinds of operators as the window colours them, in the order of its legend."""

    PRODUCT = "convolution, matrix product"
    ATTENTION = "attention, recurrence"
    NORM = "normalisation"
    ACTIVATION = "activation"
    REDUCTION = "pooling, reduction"
    LOOKUP = "embedding, gather"
    SHAPE = "shape"
    CONSTANT = "constant"
    OTHER = "other arithmetic"
    BORDER = "input, output"


_FILE = Path(__file__).with_name("op_families.json")
_STARTS = msgspec.json.decode(_FILE.read_bytes(), type=dict[str, tuple[str, ...]])
"""Name of a family -> starts of operator names; the longest one that fits decides."""
_BY_LENGTH = sorted(
    ((start, OpFamily[name]) for name, starts in _STARTS.items() for start in starts), key=lambda pair: -len(pair[0])
)
_EXACT = _names("t to mm max min all any sum var std mean")
"""Starts that are whole names: ``t`` is no start of ``tanh``."""


def family_of(name: str) -> OpFamily:
    """The family of an operator, by its name without a namespace (``conv2d``)."""
    for start, family in _BY_LENGTH:
        if name == start or (start not in _EXACT and name.startswith(start)):
            return family
    return OpFamily.OTHER
