"""Reads ONNX's ``STFT`` as OpenVINO's own operation, at any batch and length.

OpenVINO's reader writes a transform for every frame of every signal, so it refuses signals whose sizes are not fixed.
Source: https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/signals/stft-15.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

STFT = "STFT"


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
