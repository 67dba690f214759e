"""Speed-ups over eager fp32 that are usual: for estimates where a run has nothing of its own to go by.

Measured with one thread on a Zen 4 processor (avx512_vnni, avx512_bf16) with torch 2.13, interleaved: ResNet50 and
MobileNetV2 for convolutions, MiniLM and BERT for matrices. Other processors differ; a card says that it is an estimate.
"""

from __future__ import annotations

from ace_studio.records.recipes.plan import Precision

_CONVOLUTIONS = {
    ("inductor", Precision.FP32): 1.5,
    ("inductor", Precision.BF16): 2.5,
    ("inductor", Precision.INT8_STATIC): 3.6,
    ("onnxruntime", Precision.FP32): 1.8,
    ("onnxruntime", Precision.INT8_STATIC): 4.9,
    ("openvino", Precision.FP32): 1.8,
    ("openvino", Precision.BF16): 3.4,
    ("openvino", Precision.INT8_STATIC): 5.3,
}
_MATRICES = {
    ("inductor", Precision.FP32): 1.05,
    ("inductor", Precision.BF16): 2.0,
    ("inductor", Precision.INT8_DYNAMIC): 2.8,
    ("inductor", Precision.INT8_STATIC): 2.9,
    ("onnxruntime", Precision.FP32): 1.1,
    ("onnxruntime", Precision.INT8_DYNAMIC): 2.7,
    ("onnxruntime", Precision.INT8_STATIC): 2.1,
    ("openvino", Precision.FP32): 1.2,
    ("openvino", Precision.BF16): 2.1,
    ("openvino", Precision.INT8_STATIC): 3.4,
}
ARITHMETIC_TO_TIME = 0.85
"""Part of the saved arithmetic of structured pruning that shows in the time. Measured 0.85 to 0.9 on ResNet50:
4.09 to 1.92 GMAC at 30 % of the channels is 1.82 times as fast in eager, 1.91 in OpenVINO."""


def typical_speedup(target: str, precision: str, *, is_convolutional: bool) -> float | None:
    """Usual speed-up over eager fp32; None where nothing was measured."""
    rows = _CONVOLUTIONS if is_convolutional else _MATRICES
    return next((value for (name, one), value in rows.items() if (name, str(one)) == (target, precision)), None)
