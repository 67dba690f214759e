"""Floating-point operations of every operator, one row of a table per kind of operator.

A multiply-add counts 2, a bias counts nothing (as in ``torch.utils.flop_counter``, which the tests compare with).
Elementwise ops count 1 per element, whatever the function; norms, softmax and pooling are the usual estimates.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ace_studio.records.ops import operator_name

Shape = tuple[int, ...]


@dataclass(frozen=True)
class OpCall:
    """One call of an operator with every tensor replaced by its shape."""

    op: str
    """``aten.conv2d.default``."""
    inputs: Mapping[str, Any]
    """Argument name of the operator's schema -> shape (a tuple), list of shapes, or plain value."""
    outputs: tuple[Shape, ...]
    is_pointwise: bool = False
    """Whether torch itself says that the operator works element by element."""

    def shape(self, *names: str) -> Shape:
        """The first of the named arguments that is a tensor's shape; empty if there is none."""
        for name in names:
            if isinstance(value := self.inputs.get(name), tuple):
                return value
        return ()

    @property
    def output_elements(self) -> int:
        """Elements of the first result."""
        return math.prod(self.outputs[0]) if self.outputs else 0


Formula = Callable[[OpCall], int]


def _conv(call: OpCall) -> int:
    """2 * outputs * (input channels per group) * kernel size; for a transposed one inputs instead of outputs."""
    per_element = math.prod(call.shape("weight")[1:])
    is_transposed = "transpose" in call.op or bool(call.inputs.get("transposed", False))
    elements = math.prod(call.shape("input")) if is_transposed else call.output_elements
    return 2 * elements * per_element


def _linear(call: OpCall) -> int:
    """2 * outputs * input features."""
    return 2 * call.output_elements * call.shape("input")[-1]


def _matmul(call: OpCall) -> int:
    """2 * outputs * length of the dimension that is summed over."""
    left = call.shape("mat1", "batch1", "self") if "add" not in call.op else call.shape("mat1", "batch1", "mat")
    return 2 * max(call.output_elements, 1) * left[-1]


def _attention(call: OpCall) -> int:
    """Two products: [L, E] x [E, S] and [L, S] x [S, V], for every head and every sequence."""
    query, key, value = call.shape("query"), call.shape("key"), call.shape("value")
    batch = math.prod(query[:-2])
    return 2 * batch * query[-2] * key[-2] * (query[-1] + value[-1])


def _cell(call: OpCall) -> int:
    """Both products of a recurrent cell: [n, inputs] and [n, hidden] with their stacked gates."""
    batch = call.shape("input")[0]
    return 2 * batch * (math.prod(call.shape("w_ih")) + math.prod(call.shape("w_hh")))


def _recurrent(call: OpCall) -> int:
    """Every weight matrix once per time step and sequence; [steps, n, inputs] or [n, steps, inputs]."""
    steps = math.prod(call.shape("input")[:-1])
    weights = call.inputs.get("params", ())
    return 2 * steps * sum(math.prod(shape) for shape in weights if isinstance(shape, tuple) and len(shape) == 2)


def _encoder_layer(call: OpCall) -> int:
    """A whole Transformer encoder layer: four projections, two products of attention, two linear layers."""
    n, t, width = call.shape("src")
    hidden = call.shape("ffn_weight_1")[0]
    return 2 * n * t * (4 * width * width + 2 * width * hidden) + 4 * n * t * t * width


def _multi_head(call: OpCall) -> int:
    """Four projections and the two products of attention."""
    n, t, width = call.shape("query")
    return 2 * n * t * 4 * width * width + 4 * n * t * t * width


def _einsum(call: OpCall) -> int:
    """2 * product of all labels' sizes, which holds for a contraction of two tensors."""
    left = str(call.inputs.get("equation", "")).partition("->")[0].replace(" ", "").split(",")
    tensors = [shape for shape in call.inputs.get("tensors", ()) if isinstance(shape, tuple)]
    sizes = {
        label: size
        for labels, shape in zip(left, tensors, strict=False)
        for label, size in zip(labels.replace("...", ""), shape, strict=False)
    }
    return 2 * math.prod(sizes.values()) if sizes else 0


def _per_input(factor: int) -> Formula:
    return lambda call: factor * math.prod(call.shape("input", "self"))


def _per_output(factor: int) -> Formula:
    return lambda call: factor * call.output_elements


def _pool(call: OpCall) -> int:
    """One operation per element of the window, for every output."""
    kernel = call.inputs.get("kernel_size", 1)
    source, output = call.shape("self", "input"), call.outputs[0] if call.outputs else ()
    window = math.prod(kernel) if isinstance(kernel, list | tuple) else int(kernel) ** max(len(output) - 2, 1)
    if isinstance(kernel, list | tuple) and len(kernel) == 1:
        window = kernel[0] ** max(len(source) - 2, 1)
    return call.output_elements * int(window)


_ROWS: tuple[tuple[Formula, str], ...] = (
    (_conv, "conv1d conv2d conv3d convolution conv_transpose1d conv_transpose2d conv_transpose3d"),
    (_linear, "linear"),
    (_matmul, "mm matmul bmm mv dot addmm baddbmm addmv"),
    (_attention, "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu"),
    (_cell, "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"),
    (_recurrent, "lstm gru rnn_tanh rnn_relu"),
    (_encoder_layer, "_transformer_encoder_layer_fwd"),
    (_multi_head, "_native_multi_head_attention"),
    (_einsum, "einsum"),
    (_per_input(2), "batch_norm _native_batch_norm_legit_no_training"),
    (_per_input(8), "layer_norm native_layer_norm group_norm native_group_norm instance_norm rms_norm"),
    (_per_input(5), "softmax _softmax log_softmax _log_softmax _safe_softmax"),
    (_per_input(1), "sum mean amax amin max min argmax argmin prod cumsum norm logsumexp any all std var var_mean"),
    (_per_input(1), "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d"),
    (_pool, "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool2d_with_indices"),
    (_per_output(1), "relu relu_ relu6 gelu silu hardswish hardtanh hardsigmoid leaky_relu elu prelu mish glu"),
    (_per_output(7), "upsample_bilinear2d upsample_bicubic2d"),
    (
        _per_output(0),
        "to _to_copy clone copy contiguous fill dropout feature_dropout alias detach lift_fresh_copy getitem",
    ),
)

FORMULAS: dict[str, Formula] = {name: formula for formula, names in _ROWS for name in names.split()}
"""Name of the operator, without namespace and overload -> formula."""


def count_flops(call: OpCall) -> int:
    """Floating-point operations of one call; 0 for an operator that only moves data, or that is not known."""
    formula = FORMULAS.get(operator_name(call.op))
    if formula is None:
        return call.output_elements if call.is_pointwise else 0
    try:
        return int(formula(call))
    except (IndexError, ValueError, TypeError):
        return 0  # a form that the formula does not cover, such as an unbatched input


def tensor_bytes(shape: Shape, dtype: torch.dtype) -> int:
    """Bytes of a tensor that is stored densely."""
    return math.prod(shape) * dtype.itemsize
