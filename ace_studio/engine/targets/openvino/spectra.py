"""Reads ONNX's ``DFT`` and ``STFT`` as OpenVINO's own operations.

OpenVINO's reader writes a transform for every frame of an ``STFT``, so it refuses signals whose sizes are not fixed.
Of a ``DFT`` it counts the axis without the last one, which holds 1 or 2 numbers, and gives spectra of other shapes or
values (2026.4).
Sources: https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/signals.html,
https://onnx.ai/onnx/operators/onnx__DFT.html
"""

from typing import Any

import numpy as np

DFT = "DFT"
STFT = "STFT"
_ABSENT = "NullNode"
"""What the reader gives for an optional input that is not there."""


def converted_stft(node: Any) -> list[Any]:
    """OpenVINO's operation for an ``STFT`` of a real signal [B, T, 1]: [B, frames, frequencies, 2]."""
    from openvino import opset15

    signal, step, window, length = (node.get_input(index) for index in range(4))
    flat = opset15.squeeze(signal, opset15.constant(np.array([2])))
    found = opset15.stft(flat, window, length, step, transpose_frames=False)
    if not node.get_attribute("onesided", 1):  # the other side of a real signal's spectrum is the conjugate of this one
        frequencies = np.arange(int(length.get_node().get_data()))
        mirrored = -frequencies % len(frequencies)
        rows = opset15.constant(np.minimum(frequencies, mirrored))
        signs = np.where((frequencies > mirrored)[:, None], [1, -1], 1).astype(np.float32)
        found = opset15.multiply(opset15.gather(found, rows, opset15.constant(2)), opset15.constant(signs))
    outputs: list[Any] = found.outputs()
    return outputs


def converted_dft(node: Any) -> list[Any]:
    """OpenVINO's operation for a ``DFT`` over one axis of [..., 1] or [..., 2].

    It gives [..., 2], and [..., 1] for the inverse of a one-sided spectrum, which is real.
    """
    from openvino import opset15

    signal, last = node.get_input(0), opset15.constant(np.array([-1]))
    shape = signal.get_partial_shape()
    length, axis = _optional(node, 1), _optional(node, 2)
    # Before opset 20 the axis is an attribute.
    place = int(axis.get_node().get_data()) if axis else node.get_attribute("axis", -2)
    axes = opset15.constant(np.array([place % shape.rank.get_length()]))
    sizes = [opset15.reshape(length, last, special_zero=False)] if length else []
    is_inverse, is_onesided = bool(node.get_attribute("inverse", 0)), bool(node.get_attribute("onesided", 0))
    if is_onesided and is_inverse:
        found = opset15.unsqueeze(opset15.irdft(signal, axes, *sizes), last)
    elif is_onesided:
        found = opset15.rdft(opset15.squeeze(signal, last), axes, *sizes)
    else:
        pairs = signal if shape[-1] == 2 else opset15.concat([signal, opset15.multiply(signal, np.float32(0))], -1)
        found = (opset15.idft if is_inverse else opset15.dft)(pairs, axes, *sizes)
    outputs: list[Any] = found.outputs()
    return outputs


def _optional(node: Any, index: int) -> Any:
    """An input, or None if it is not there."""
    given = node.get_input(index) if index < node.get_input_size() else None
    return None if given is None or given.get_node().get_type_name() == _ABSENT else given
